"""The batches of a run: exact order, views by document, limits, few shapes."""

import dataclasses
import itertools

import grain
import jax
import numpy as np
import pytest

from docjax.data import corpus as corpus_lib
from docjax.data import graphs
from docjax.data.examples import Examples
from docjax.data.packing import Layout, padding
from docjax.data.segment_batches import Reader, TrainingBatches, first_tokens
from docjax.data.segments import Joined, OneEach
from docjax.data.sources.jsonl import jsonl
from docjax.data.tokenizer import load_tokenizer
from docjax.data.units import Passages, Sentences
from docjax.errors import UserError
from docjax.types import DOCUMENT, QUERY, Frame, Units
from docjax.views.halves import Halves
from docjax.views.one_against_rest import OneAgainstRest
from docjax.views.sentence_split import SentenceSplit

NOTHING = np.zeros(0, np.int32)
FRAME = Frame(NOTHING, NOTHING, 40)
EACH = OneEach()


def document(*lengths: int, first: int = 1) -> Units:
    """Units of these lengths whose tokens count up from `first`."""
    return Units(
        np.arange(first, first + sum(lengths), dtype=np.int32),
        np.cumsum([0, *lengths]),
        np.arange(len(lengths), dtype=np.int32) // 2,
        np.zeros((0, 2), np.int32),
    )


def documents(count: int, seed: int = 0) -> list[Units]:
    """Documents of 2 to 7 units of 1 to 40 tokens; no two tokens are the same."""
    generator, found, first = np.random.default_rng(seed), [], 1
    for _ in range(count):
        lengths = generator.integers(1, 41, generator.integers(2, 8))
        found.append(document(*lengths, first=first))
        first += lengths.sum()
    return found


class Corpus(corpus_lib.Corpus):
    """A corpus in memory."""

    def __init__(self, documents: list[Units]):
        self.documents = documents
        self.lengths = np.concatenate([one.lengths for one in documents])
        self.counts = np.array([len(one) for one in documents])

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int) -> Units:
        return self.documents[index]


def training(  # noqa: PLR0913
    corpus,
    chosen=None,
    batch=4,
    microbatch=8,
    views=None,
    seed=7,
    limit=None,
    cutter=EACH,
    frame=FRAME,
    most=None,
) -> TrainingBatches:
    rows = np.arange(len(corpus)) if chosen is None else np.array(chosen)
    frames = {DOCUMENT: frame, QUERY: frame}
    corpora = {DOCUMENT: corpus}
    views = views or Halves()
    reader = Reader(corpora, frames, views, cutter, limit, most, seed)
    examples = Examples((DOCUMENT,), rows[:, None], rows)
    layout = Layout(microbatch, reader.widths(examples), frame.limit, graphs.full)
    return TrainingBatches(reader, examples, batch, layout)


def read(spec: TrainingBatches, steps: int) -> list:
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return list(spec.dataset(steps).to_iter_dataset(options))


def same(one, other) -> bool:
    """Whether two batches hold the same numbers."""
    flat = lambda batch: [
        *(array for m in batch.microbatches for array in m),
        *jax.tree.leaves((batch.rows, batch.lengths, batch.graphs, batch.targets)),
    ]
    return all(map(np.array_equal, flat(one), flat(other)))


def test_an_epoch_visits_each_document_once_but_for_the_remainder():
    chosen = [*range(0, 22, 2)]  # 11 documents: 2 batches of 4, 3 left out
    spec = training(Corpus(documents(22)), chosen)
    assert spec.epoch_steps == 2
    found = [list(rows[:, 0]) for _, rows in read(spec, steps=8)]
    epochs = [found[i] + found[i + 1] for i in range(0, 8, 2)]
    for epoch in epochs:
        assert len(set(epoch)) == 8 and set(epoch) <= set(chosen)
    assert len({tuple(epoch) for epoch in epochs}) == 4  # each in another order
    assert len({frozenset(epoch) for epoch in epochs}) > 1  # others are left out


def test_labels_and_tokens_are_those_of_the_documents():
    corpus = Corpus(documents(8))
    for batch, rows in read(training(corpus), steps=2):
        assert batch.targets.labels.tolist() == rows[:, 0].tolist()
        for b, row in enumerate(rows[:, 0]):
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
            for b, row in enumerate(rows[:, 0])
        }

    trimmed = lambda d: {k: [[n for n in v if n] for v in d[k]] for k in d}
    four, two = trimmed(by_document(4)), trimmed(by_document(2))
    assert four == two and len(four) == 16
    epochs = [[four[epoch, row] for row in range(8)] for epoch in range(2)]
    assert epochs[0] != epochs[1]


def test_a_training_limit_keeps_the_first_units_before_the_views():
    corpus = Corpus([document(1, 2, 4, 8, 16)] * 4)
    for batch, _ in read(training(corpus, limit=3), steps=2):
        assert (batch.lengths.sum(axis=(0, 2)) == 1 + 2 + 4).all()


def test_a_batch_larger_than_the_data_is_a_mistake_with_its_numbers():
    with pytest.raises(UserError, match="batch 5 .* 4 training examples.*batch"):
        training(Corpus(documents(4)), batch=5)


def test_widths_follow_the_training_documents_alone():
    short, long = document(5, 6), document(30, 20)
    spec = training(Corpus([short, long, short]), chosen=[0, 2], batch=1)
    assert spec.layout.widths == (6, 30)  # the last has room for any document


def test_a_view_keeps_the_first_segments():
    corpus = Corpus([document(4, 4, 4, 4, 4, 4)] * 4)
    for batch, _ in read(training(corpus, most=1), steps=1):
        assert (batch.lengths > 0).sum(axis=2).tolist() == [[1] * 4] * 2


# Real text.


@pytest.mark.parametrize(
    "name, kind", [("20news", "passages"), ("openstax", "joined sentences")]
)
def test_little_of_real_segments_is_padding_in_few_shapes(
    name, kind, shared, minilm, tmp_path
):
    """The bars are 8 % and 16 shapes: 24 micro-batches a step or more reach them."""
    path = shared / f"data/{name}.jsonl.xz"
    some = list(itertools.islice(jsonl(str(path)), 320))
    joined, limit = (
        kind == "joined sentences",
        512 if kind == "joined sentences" else 256,
    )
    tokenizer = load_tokenizer(minilm)
    corpus = corpus_lib.Corpus.build(
        tmp_path / "corpus",
        some,
        Sentences() if joined else Passages(words=100),
        tokenizer,
        limit,
        "",
    )
    usable = np.flatnonzero(corpus.counts >= 2)
    spec = training(
        corpus,
        usable,
        batch=128,
        microbatch=8 if joined else 16,
        limit=None if joined else 50,
        views=SentenceSplit() if joined else Halves(),
        cutter=Joined() if joined else OneEach(),
        frame=tokenizer.frame(limit),
        most=1 if joined else None,
    )
    found = [batch for batch, _ in read(spec, spec.epoch_steps)]
    shapes = {m.tokens.shape for batch in found for m in batch.microbatches}
    assert len(shapes) <= 16
    computed, real = np.sum([padding(batch) for batch in found], axis=0)
    assert 1 - real / computed <= 0.08


def test_tokens_beyond_the_cap_on_segments_are_counted():
    corpus = Corpus(documents(8))
    ((whole, _),) = read(training(corpus, batch=8), steps=1)
    ((batch, _),) = read(training(corpus, batch=8, most=1), steps=1)
    assert whole.cut == 0 and batch.lengths.shape[-1] == 1
    assert batch.cut == whole.lengths.sum() - batch.lengths.sum() > 0


def test_tokens_of_a_view_beyond_their_limit_are_counted():
    corpus = Corpus(documents(8))
    spec = training(corpus, batch=8, cutter=Joined())
    ((whole, _),) = read(spec, steps=1)
    short = dataclasses.replace(spec, reader=dataclasses.replace(spec.reader, tokens=9))
    ((batch, _),) = read(short, steps=1)
    of_views = whole.lengths.sum(-1)
    assert (batch.lengths.sum(-1) == np.minimum(of_views, 9)).all()
    assert batch.cut == of_views.sum() - batch.lengths.sum() > 0
    assert whole.lengths.max() > 9 == short.reader.widths(short.examples)[-1]


def test_the_first_tokens_end_inside_of_a_unit_or_between_units():
    own = document(4, 3, 5)
    for most in range(1, 13):
        kept = first_tokens(own, most)
        assert kept.tokens.tolist() == own.tokens[:most].tolist()
        assert kept.lengths.sum() == most and (kept.lengths > 0).all()
        assert kept.sections.tolist() == own.sections[: len(kept)].tolist()
    assert first_tokens(own, 12) is own and first_tokens(own, None) is own


def test_related_documents_share_batches_and_each_comes_once_an_epoch():
    corpus, group = Corpus(documents(24)), np.arange(24) % 6
    neighbours = {
        row: np.flatnonzero(group == group[row]).tolist() for row in range(24)
    }
    spec = training(corpus, batch=4)
    near = dataclasses.replace(spec.examples, together=neighbours)
    spec = dataclasses.replace(spec, examples=near)
    rows = [rows[:, 0].tolist() for _, rows in read(spec, steps=12)]
    assert len(rows) == 12
    for epoch in (rows[:6], rows[6:]):
        assert sorted(itertools.chain(*epoch)) == list(range(24))
        assert all(len({group[row] for row in batch}) == 1 for batch in epoch)
    assert rows[:6] != rows[6:]
    again = [rows[:, 0].tolist() for _, rows in read(spec, steps=12)]
    assert again == rows
