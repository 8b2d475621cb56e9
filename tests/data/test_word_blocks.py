"""Blocks of words: every word once, documents apart, draws from the whole document."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.units import Whole
from docjax.data.word_batches import WordBatches, parts, stack
from docjax.data.word_blocks import Layout, Words, group, pack, subsampled
from docjax.data.word_tokenizer import word_tokenizer
from docjax.errors import UserError
from docjax.objectives.negative_sampling import NegativeSampling
from docjax.types import Document, Section

LAYOUT = Layout(
    blocks=1,
    words=32,
    column=8,
    window=3,
    pieces=4,
    drawn=5,
    negatives=2,
    windows=3,
    chunks=1,
)
NOISE = np.cumsum([0, 0.5, 0, 0.25, 0.25])


def documents(sizes, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.integers(1, 50, size).astype(np.int32) for size in sizes]


def together(documents):
    return Words(np.concatenate(documents), np.array([len(one) for one in documents]))


def packed(sizes):
    generator = np.random.default_rng(1)
    return pack(together(documents(sizes)), LAYOUT, NOISE, generator)


def in_order(columns):
    """Blocks [r w] whose columns are laid end to end again."""
    return columns.swapaxes(1, 2).reshape(len(columns), -1)


def test_every_word_lies_in_a_block_once_and_in_order():
    sizes = [5, 29, 1, 80, 12, 3, 3, 3, 3, 3]
    found = packed(sizes)
    words = in_order(found.words)
    np.testing.assert_array_equal(words[words > 0], np.concatenate(documents(sizes)))
    assert found.total == sum(sizes)
    assert not found.words[found.used :].any() and found.words[found.used - 1].any()


def test_documents_of_a_block_are_a_window_apart():
    found = packed([5, 9, 2, 40, 7, 7, 7])
    both = in_order(found.words), in_order(found.estimates) // LAYOUT.drawn
    for words, pieces in zip(*both, strict=True):
        real = np.flatnonzero(words)
        gaps = np.diff(real)[np.diff(pieces[real]) != 0]
        assert (gaps > LAYOUT.window).all()
        assert not words[-LAYOUT.window :].any()


def test_words_are_drawn_from_the_whole_of_a_long_document():
    layout = dataclasses.replace(LAYOUT, drawn=400)
    long = np.arange(1, 101, dtype=np.int32)
    found = pack(together([long]), layout, NOISE, np.random.default_rng(0))
    assert found.used == 4
    for block in range(4):
        counts = np.bincount(found.drawn[block, 0], minlength=101)[1:]
        assert counts.sum() == 400
        # Each word is drawn 4 times on average; halves of the document equally often.
        assert abs(counts[:50].sum() - 200) < 4 * 10  # four standard deviations


def test_words_are_drawn_from_their_own_document():
    sizes = (5, 29, 80, 12)
    texts = [np.full(size, word, np.int32) for word, size in enumerate(sizes, 1)]
    found = pack(together(texts), LAYOUT, NOISE, np.random.default_rng(0))
    real = found.words > 0
    drawn = found.drawn[np.nonzero(real)[0], found.estimates[real] // LAYOUT.drawn]
    assert (drawn == found.words[real][:, None]).all()


def test_the_estimates_of_a_document_are_unbiased():
    """All draws of many steps: mean and variance of what a word is predicted from."""
    objective = NegativeSampling(sample=5)
    layout = dataclasses.replace(LAYOUT, drawn=objective.drawn)
    generator = np.random.default_rng(0)
    table = generator.normal(size=51).astype(np.float32)
    (document, other), tries = documents([40, 30]), 400
    found = []
    for seed in range(tries):
        words = together([other, document])
        step = pack(words, layout, NOISE, np.random.default_rng(seed))
        means = objective._estimates(jnp.asarray(table[step.drawn[1], None]))
        owners = step.estimates[1] // layout.drawn
        last = owners == owners[step.words[1] > 0].max()
        found.append(means[step.estimates[1][last], 0].mean())
    deviation = table[document].std() / np.sqrt(5)
    error = np.mean(found) - table[document].mean()
    assert abs(error) < 4 * deviation / np.sqrt(tries)


def test_no_more_pieces_lie_in_a_block_than_the_layout_has():
    found = packed([1] * 30)
    real, pieces = found.words > 0, found.estimates // LAYOUT.drawn
    assert pieces[real].max() < LAYOUT.pieces
    assert max(np.bincount(p[r]).max() for p, r in zip(pieces, real) if r.any()) == 1


def test_noise_and_windows_are_drawn_by_their_chances():
    found = packed([2000])
    assert found.noise.shape == (len(found.words), LAYOUT.column, LAYOUT.negatives)
    shares = np.bincount(found.noise.ravel(), minlength=5) / found.noise.size
    np.testing.assert_allclose(shares, [0, 0.5, 0, 0.25, 0.25], atol=0.06)
    assert set(found.windows) == {0, 1, 2}
    turns = np.bincount(found.estimates.ravel() % LAYOUT.drawn, minlength=5)
    np.testing.assert_allclose(turns / turns.sum(), np.full(5, 0.2), atol=0.05)


@pytest.mark.parametrize("sizes", [(4, 2), (9, 1, 8, 17, 40)])
def test_views_come_in_groups_of_words_of_their_documents(sizes):
    views = [documents(sizes, seed) for seed in (1, 2)]
    found = group([together(view) for view in views], LAYOUT)
    assert found.lengths.tolist() == [list(sizes)] * 2
    for number, document in enumerate(views[0] + views[1]):
        words = found.words[found.owners == number].ravel()
        np.testing.assert_array_equal(words[: len(document)], document)
        assert not words[len(document) :].any()
    assert not found.words[found.owners == 2 * len(sizes)].any()
    assert not found.words[found.used :].any()


def test_documents_of_several_units_are_words_in_one_piece(corpus):
    chosen = np.array([11, 3, 9])
    found = corpus.concatenated(chosen)
    assert len(found) > 3 and found.documents.tolist() == [11, 11, 3, 9, 9]
    expected = together([corpus[i].tokens for i in chosen.tolist()])
    for one, other in zip(Words.of(found), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_layout_has_room_for_the_documents_that_there_are():
    sizes = dict(window=5, drawn=16, negatives=5, windows=5)
    layout = Layout.of(np.full(100, 20), 8, 1024, **sizes)
    assert layout.pieces >= 1024 // 25
    for words in (64, 1000):
        with pytest.raises(UserError, match=f"microbatch {words}: .* 32, at least 128"):
            Layout.of(np.full(100, 20), 8, words, **sizes)


def test_words_are_read_as_often_as_their_chances_say():
    chances = np.array([0, 1, 0.5, 0.1])
    tokens = np.tile([1, 2, 3, 3], 1000).astype(np.int32)
    sizes = np.array([1, 3, 1996, 2000])
    found = subsampled(Words(tokens, sizes), chances, np.random.default_rng(0))
    assert found.lengths.sum() == len(found.tokens) and found.lengths[0] == 1
    counts = np.bincount(found.tokens)
    assert counts[1] == 1000
    for word, tries in ((2, 1000), (3, 2000)):
        expected = tries * chances[word]
        assert abs(counts[word] - expected) < 4 * np.sqrt(expected)  # deviations


def test_a_document_keeps_one_word_and_no_word_of_another():
    documents = [np.full(size, word + 1) for word, size in enumerate([1, 5, 30])]
    found = subsampled(together(documents), np.full(4, 1e-9), np.random.default_rng(0))
    assert found.tokens.tolist() == [1, 2, 3] and found.lengths.tolist() == [1, 1, 1]


@pytest.mark.parametrize("sizes", [[9, 1, 8, 17, 40], [500, 1, 1], [2], [1] * 50])
@pytest.mark.parametrize("number", [1, 2, 4])
def test_parts_have_every_document_once_and_about_as_many_words(sizes, number):
    words = together(documents(sizes))
    found = parts(words, number)
    assert len(found) == number
    for one, all_parts in zip(words, zip(*found, strict=True), strict=True):
        np.testing.assert_array_equal(one, np.concatenate(all_parts))
    assert all(len(part.tokens) == part.lengths.sum() for part in found)
    most = max(len(part.tokens) for part in found)
    assert most <= sum(sizes) / number + max(sizes)


def test_replicas_of_unequal_length_are_stacked_without_loss():
    """One of them without a document."""
    words = together(documents([200, 3]))
    generator = np.random.default_rng(0)
    made = [pack(part, LAYOUT, NOISE, generator) for part in parts(words, 3)]
    found = stack(made)
    assert found.used.tolist() == [0, 7, 1] and found.total.tolist() == [0, 200, 3]
    for number, one in enumerate(made):
        for field, stacked in zip(one, found, strict=True):
            own = stacked[number][: len(field)] if field.ndim else stacked[number]
            np.testing.assert_array_equal(own, field)
        assert not found.words[number, one.used :].any()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """12 documents of 1 to 12 words; word i is of document i."""
    tokenizer = word_tokenizer("abcdefghijkl", r"[a-z]+")
    made = [
        Document(letter, (Section("", f"{letter} " * (i + 1)),))
        for i, letter in enumerate("abcdefghijkl")
    ]
    folder = tmp_path_factory.mktemp("blocks") / "corpus"
    return Corpus.build(folder, made, Whole(), tokenizer, 8, "")


def batches(corpus, seed=0, limit=None):
    return WordBatches(corpus, np.arange(2, 12), None, NOISE, LAYOUT, 4, limit, seed)


def test_an_epoch_reads_every_document_once_and_the_next_in_another_order(corpus):
    spec = batches(corpus)
    assert spec.epoch_steps == 3
    chosen = [documents for _, documents in spec.dataset(6)]
    assert [len(some) for some in chosen] == [4, 4, 2] * 2
    first, second = np.concatenate(chosen[:3]), np.concatenate(chosen[3:])
    assert sorted(first) == sorted(second) == list(range(2, 12))
    assert first.tolist() != second.tolist()


def test_a_step_is_a_function_of_the_seed_and_its_number(corpus):
    found = batches(corpus).dataset(6)[4][0].blocks
    again = batches(corpus).dataset(6)[4][0].blocks
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(one, other)
    other = batches(corpus, seed=1).dataset(6)[4][0].blocks
    assert not np.array_equal(found.words, other.words)


def test_a_word_that_is_not_read_is_not_predicted(corpus):
    """Word i of these documents has the chance 0 but for one occurrence, if i is even."""
    spec = batches(corpus)
    chances = np.where(np.arange(13) % 2, 1.0, 1e-9)
    fewer = dataclasses.replace(spec, chances=chances)
    for step in range(3):
        found, documents = fewer.dataset(3)[step]
        counts = np.bincount(found.blocks.words.ravel(), minlength=13)
        for document in documents:
            word = document + 1
            assert counts[word] == (word if word % 2 else 1)
        assert found.blocks.total == counts[1:].sum()


@pytest.mark.parametrize("limit", [None, 1])
def test_a_document_of_several_units_is_read_as_one_up_to_the_limit(corpus, limit):
    steps = batches(corpus, limit=limit).dataset(3)
    words = [steps[i][0].blocks.words.ravel() for i in range(3)]
    read = sum(np.bincount(some, minlength=13) for some in words)
    assert corpus.counts.max() == 2
    # Word i is in document i, i times; a unit has 8 words.
    expected = [min(i, 8) if limit else i for i in range(3, 13)]
    assert read[3:].tolist() == expected
    assert corpus.sizes(np.arange(2, 12), limit).tolist() == expected
