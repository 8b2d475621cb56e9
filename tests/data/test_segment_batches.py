"""Batches: every segment once, where its document points; little padding; exact order."""

import dataclasses
import functools
import itertools
from collections import Counter

import grain
import numpy as np
import pytest

from docjax.data import corpus as tokens
from docjax.data import graphs
from docjax.data import segment_batches as batches
from docjax.data import units as segments
from docjax.data.sources.jsonl import jsonl
from docjax.data.tokenizer import load_tokenizer
from docjax.errors import UserError
from docjax.types import Microbatch, Segments
from docjax.views.halves import Halves
from docjax.views.one_against_rest import OneAgainstRest


def document(*lengths: int, first: int = 1) -> Segments:
    """Segments of these lengths whose tokens count up from `first`."""
    return Segments(
        np.arange(first, first + sum(lengths), dtype=np.int32),
        np.cumsum([0, *lengths]),
        np.arange(len(lengths), dtype=np.int32) // 2,
        np.zeros((0, 2), np.int32),
    )


def documents(count: int, seed: int = 0) -> list[Segments]:
    """Documents of 2 to 7 segments of 1 to 40 tokens; no two tokens are the same."""
    generator, found, first = np.random.default_rng(seed), [], 1
    for _ in range(count):
        lengths = generator.integers(1, 41, generator.integers(2, 8))
        found.append(document(*lengths, first=first))
        first += lengths.sum()
    return found


class Corpus(tokens.Corpus):
    """A corpus in memory."""

    def __init__(self, documents: list[Segments]):
        self.documents = documents
        self.lengths = np.concatenate([one.lengths for one in documents])
        self.counts = np.array([len(one) for one in documents])

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> Segments:
        return self.documents[index]


# Widths.


def computed(lengths, widths) -> int:
    return sum(min(w for w in widths if w >= length) for length in lengths)


@pytest.mark.parametrize("shapes", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_widths_pad_less(seed, shapes):
    lengths = np.random.default_rng(seed).integers(1, 60, 30)
    found = batches.bucket_widths(lengths, shapes, multiple=8)
    longest = int(lengths.max())
    candidates = {int(w) for w in -(-lengths // 8) * 8 if w < longest}
    least = min(
        computed(lengths, (*chosen, longest))
        for size in range(shapes)
        for chosen in itertools.combinations(sorted(candidates), size)
    )
    assert computed(lengths, found) == least
    assert len(found) <= shapes
    assert list(found) == sorted(set(found))


def test_the_last_width_is_the_longest_length_though_it_is_no_multiple():
    assert batches.bucket_widths(np.array([3, 9, 21])) == (8, 16, 21)
    assert batches.bucket_widths(np.array([0])) == (1,)


def test_there_are_at_most_sixteen_widths():
    lengths = np.arange(1, 513)
    assert len(batches.bucket_widths(lengths)) == 16
    assert max(batches.bucket_widths(lengths)) == 512


def test_widths_follow_the_training_documents_alone():
    short, long = document(5, 6), document(100, 90)
    spec = training(Corpus([short, long, short]), chosen=[0, 2], batch=1)
    assert spec.widths() == (6,)


# Micro-batches and batches.


def test_every_segment_lies_at_its_place_once_and_the_rest_is_empty():
    some = documents(9)
    widths = (8, 16, 24, 40)
    micro, place = batches.microbatches(some, lambda *_: 5, widths)
    rows = [
        m.tokens[i, : m.lengths[i]].tolist()
        for m in micro
        for i in range(len(m.tokens))
    ]
    pieces = [
        one.tokens[a:b].tolist()
        for one in some
        for a, b in itertools.pairwise(one.offsets)
    ]
    assert [rows[at] for at in place] == pieces
    assert len(set(place.tolist())) == len(pieces)
    assert sum(len(row) > 0 for row in rows) == len(pieces)
    for m in micro:
        assert m.tokens.shape == (5, m.tokens.shape[1]) and m.tokens.shape[1] in widths
        behind = np.arange(m.tokens.shape[1]) >= m.lengths[:, None]
        assert (m.tokens[behind] == 0).all()


def test_micro_batches_come_longest_first_at_the_narrowest_width():
    widths = (8, 16, 24, 40)
    micro, _ = batches.microbatches(documents(9), lambda *_: 5, widths)
    longest = [int(m.lengths.max()) for m in micro]
    assert longest == sorted(longest, reverse=True)
    for m, length in zip(micro, longest):
        assert m.tokens.shape[1] == min(w for w in widths if w >= length)
    assert all((m.lengths > 0).all() for m in micro[:-1])


def test_the_height_may_follow_from_number_width_and_rest():
    asked = []

    def height(number: int, width: int, remaining: int) -> int:
        asked.append((number, width, remaining))
        return 2 if width == 16 else 4

    micro, _ = batches.microbatches([document(3, 9, 5, 10, 2, 12, 1)], height, (8, 16))
    assert asked == [(0, 16, 7), (1, 16, 5), (2, 8, 3)]
    assert [m.tokens.shape for m in micro] == [(2, 16), (2, 16), (4, 8)]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_points_from_view_document_and_position_to_the_tokens(sparse):
    views = [(one, two) for one, two in zip(documents(6), documents(6, seed=1))]
    batch = batches.pack(
        views, 4, (8, 40), graphs.section, labels=np.arange(6), sparse=sparse
    )
    flat = [
        m.tokens[i, : m.lengths[i]].tolist()
        for m in batch.microbatches
        for i in range(len(m.tokens))
    ]
    seen = Counter()
    for b, v in itertools.product(range(6), range(2)):
        one = views[b][v]
        assert batch.lengths[v, b].tolist()[: len(one)] == one.lengths.tolist()
        assert not batch.lengths[v, b, len(one) :].any()
        for p in range(len(one)):
            expected = one.tokens[one.offsets[p] : one.offsets[p + 1]].tolist()
            assert flat[batch.rows[v, b, p]] == expected
            seen[int(batch.rows[v, b, p])] += 1
        graph = graphs.section(len(one), one.sections, one.edges)
        expected = {*zip(graph.senders.tolist(), graph.receivers.tolist())}
        if sparse:
            found = {tuple(edge) for edge in batch.edges[v, b].tolist()}
            assert found - {(-1, -1)} == expected and batch.adjacency is None
        else:
            found = {(s, r) for r, s in np.argwhere(batch.adjacency[v, b]).tolist()}
            assert found == expected and batch.edges is None
    assert set(seen.values()) == {1}
    assert len(seen) == sum(len(row) > 0 for row in flat)
    assert batch.labels.tolist() == list(range(6))


def test_a_batch_without_graph_and_labels():
    batch = batches.pack([(document(2, 3),)], 2, (8,), None)
    assert batch.adjacency is None and batch.edges is None
    assert batch.labels.tolist() == [-1]
    assert batch.rows.shape == (1, 1, 2)


def test_padding_is_the_share_of_positions_without_token():
    batch = batches.pack([(document(8, 3, 1),)], 2, (4, 8), None)
    assert [m.tokens.shape for m in batch.microbatches] == [(2, 8), (2, 4)]
    assert batches.padding(batch) == 1 - 12 / 24
    full = batch._replace(microbatches=(Microbatch(np.ones((1, 2)), np.array([2])),))
    assert batches.padding(full) == 0


def test_round_up_gives_few_sizes_that_waste_less_than_a_quarter():
    sizes = [batches.round_up(n) for n in range(1, 2000)]
    assert all(n <= size < 1.25 * n + 1 for n, size in enumerate(sizes, 1))
    assert sizes[:10] == [1, 2, 3, 4, 5, 6, 7, 8, 10, 10]
    assert all(size == batches.round_up(size) for size in sizes)
    assert len(set(sizes)) < 45
    assert batches.round_up(0) == 1


def test_a_cap_keeps_the_first_segments():
    one = document(2, 3, 4)
    assert batches.cap(one, 2).tokens.tolist() == one.tokens[:5].tolist()
    assert batches.cap(one, 3) is one
    several = dataclasses.replace(one, numbers=np.array([4, 4, 7]))
    assert batches.cap(several, 1).numbers.tolist() == [4, 7]
    assert batches.cap(several, 2) is several
    assert batches.cap(one, None) is one


# The batches of a training run.


def training(
    corpus, chosen=None, batch=4, microbatch=8, views=None, seed=7, limit=None
) -> batches.TrainingBatches:
    return batches.TrainingBatches(
        corpus=corpus,
        documents=np.arange(len(corpus)) if chosen is None else np.array(chosen),
        labels=np.arange(len(corpus)),
        views=views or Halves(),
        graph=graphs.full,
        batch=batch,
        microbatch=microbatch,
        limit=limit,
        seed=seed,
    )


def read(spec: batches.TrainingBatches, steps: int) -> list:
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return list(spec.dataset(steps).to_iter_dataset(options))


def same(one, other) -> bool:
    """Whether two batches hold the same numbers."""
    flat = lambda batch: [
        *(array for m in batch.microbatches for array in m),
        *(batch.rows, batch.lengths, batch.adjacency, batch.labels),
    ]
    return all(map(np.array_equal, flat(one), flat(other)))


def test_an_epoch_visits_each_document_once_but_for_the_remainder():
    chosen = [*range(0, 22, 2)]  # 11 documents: 2 batches of 4, 3 left out
    spec = training(Corpus(documents(22)), chosen)
    assert spec.epoch_steps == 2
    found = [list(rows) for _, rows in read(spec, steps=8)]
    epochs = [found[i] + found[i + 1] for i in range(0, 8, 2)]
    for epoch in epochs:
        assert len(set(epoch)) == 8 and set(epoch) <= set(chosen)
    assert len({tuple(epoch) for epoch in epochs}) == 4  # each in another order
    assert len({frozenset(epoch) for epoch in epochs}) > 1  # others are left out


def test_labels_and_tokens_are_those_of_the_documents():
    corpus = Corpus(documents(8))
    for batch, rows in read(training(corpus), steps=2):
        assert batch.labels.tolist() == list(rows)
        for b, row in enumerate(rows):
            assert batch.lengths[:, b].sum() == corpus[row].lengths.sum()


def test_the_same_arguments_give_the_same_batches_and_another_seed_others():
    corpus = Corpus(documents(9))
    once, again = (read(training(corpus), 4) for _ in range(2))
    assert all(same(a, b) for (a, _), (b, _) in zip(once, again, strict=True))
    other = read(training(corpus, seed=8), 4)
    assert not any(same(a, b) for (a, _), (b, _) in zip(once, other, strict=True))


def test_a_restored_position_goes_on_with_the_same_batches():
    spec = training(Corpus(documents(9)))
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    steps = iter(spec.dataset(6).to_iter_dataset(options))
    states, found = [], []
    for batch, rows in steps:
        found.append((batch, rows))
        states.append(steps.get_state())
    assert len(found) == 6
    for at in (0, 2, 4):
        resumed = iter(spec.dataset(6).to_iter_dataset(options))
        resumed.set_state(states[at])
        for batch, rows in found[at + 1 :]:
            next_batch, next_rows = next(resumed)
            assert same(batch, next_batch) and np.array_equal(rows, next_rows)


@pytest.mark.parametrize("views", [Halves(), OneAgainstRest()])
def test_views_follow_from_seed_epoch_and_document_alone(views):
    """Not from the batch that a document comes in."""
    corpus = Corpus(documents(8))

    def by_document(batch: int) -> dict:
        return {
            (step * batch // 8, int(row)): tuple(map(tuple, found.lengths[:, b]))
            for step, (found, rows) in enumerate(
                read(training(corpus, batch=batch, views=views), 16 // batch)
            )
            for b, row in enumerate(rows)
        }

    trimmed = lambda d: {k: [[n for n in v if n] for v in d[k]] for k in d}
    four, two = trimmed(by_document(4)), trimmed(by_document(2))
    assert four == two and len(four) == 16
    epochs = [[four[epoch, row] for row in range(8)] for epoch in range(2)]
    assert epochs[0] != epochs[1]


def test_a_training_limit_keeps_the_first_segments_before_the_views():
    corpus = Corpus([document(1, 2, 4, 8, 16)] * 4)
    for batch, _ in read(training(corpus, limit=3), steps=2):
        assert (batch.lengths.sum(axis=(0, 2)) == 1 + 2 + 4).all()


def test_a_batch_larger_than_the_data_is_a_mistake_with_its_numbers():
    with pytest.raises(UserError, match="batch 5 .* 4 .* at least 2 segments.*batch"):
        training(Corpus(documents(4)), batch=5)


# Real text.


@pytest.mark.parametrize("name", ["20news", "openstax"])
def test_little_of_real_passages_is_padding(name, shared, minilm, tmp_path):
    """The bar is 8 %: 24 micro-batches a step or more reach it."""
    path = shared / f"data/{name}.jsonl.xz"
    some = list(itertools.islice(jsonl(str(path)), 320))
    corpus = tokens.Corpus.build(
        tmp_path / "corpus",
        some,
        functools.partial(segments.passages, words=100),
        load_tokenizer(minilm),
        256,
        "",
    )
    usable = np.flatnonzero(corpus.counts >= 2)
    spec = training(corpus, usable, batch=128, microbatch=16, limit=50)
    found = [batch for batch, _ in read(spec, spec.epoch_steps)]
    shapes = {m.tokens.shape for batch in found for m in batch.microbatches}
    assert len(shapes) <= 16
    assert np.mean([batches.padding(batch) for batch in found]) <= 0.08
