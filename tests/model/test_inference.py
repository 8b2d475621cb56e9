"""Vectors of documents: the same whatever is read beside them, and on what devices."""

import dataclasses
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from docjax.data import graphs
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.pooling import Classifier, Mean
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.model import inference
from docjax.model.inference import MANY, TOKENS, Inference
from docjax.types import QUERY, Graphs, Segments

LIMIT = 21  # tokens of a segment; the position table has no more room
SEGMENT = Transformer(
    vocabulary=30, layers=1, width=16, heads=2, hidden=16, positions=LIMIT + 2
)


def document(generator: np.random.Generator, count: int) -> Segments:
    """Segments of 5 or 21 tokens, so that few widths are compiled."""
    lengths = generator.choice([5, LIMIT], count)
    return Segments(
        generator.integers(1, 30, lengths.sum()).astype(np.int32),
        np.cumsum([0, *lengths]),
        places(np.sort(generator.integers(0, 3, count))),
        np.zeros((0, 2), np.int32),
    )


def places(sections: np.ndarray) -> np.ndarray:
    """Section and number inside it, of segments in order of their section."""
    numbers = np.arange(len(sections)) - np.searchsorted(sections, sections)
    return np.stack([sections, numbers], axis=1).astype(np.int32)


@pytest.fixture(scope="module")
def documents() -> list[Segments]:
    generator = np.random.default_rng(0)
    return [document(generator, count) for count in (3, 1, 7, 2, 12, 1, 5, 4, 9)]


@pytest.fixture(scope="module")
def params():
    """Of all encoders here: Mean needs none of the document encoder's."""
    encoder = reader().encoder
    tokens, lengths = jnp.zeros((1, 8), int), jnp.full(1, 8)
    shapes = jax.eval_shape(encoder.init, jax.random.key(0), tokens, lengths)
    generator = np.random.default_rng(1)
    draw = lambda leaf: generator.normal(0, 0.3, leaf.shape).astype(np.float32)
    return jax.tree.map(draw, shapes["params"])


def reader(document=None, devices: int = 1, batch: int | None = None) -> Inference:
    document = document or GraphAttention(width=8)
    encoder = DocumentEncoder(SEGMENT, document, Classifier(3))
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    return Inference(encoder, graphs.section, mesh, LIMIT, batch)


def encode(one: Inference, params, documents) -> np.ndarray:
    return np.stack(list(one.encode(params, iter(documents))))


@pytest.fixture(scope="module")
def vectors(params, documents) -> np.ndarray:
    return encode(reader(), params, documents)


def test_vectors_are_those_of_each_document_alone(params, documents, vectors):
    """Straight through the encoder: no sorting, no windows, no groups."""
    apply = jax.jit(reader().encoder.apply, static_argnames="method")
    for one, found in list(zip(documents, vectors, strict=True))[:3]:
        tokens = np.zeros((len(one), LIMIT), np.int32)
        for i, length in enumerate(one.lengths):
            tokens[i, :length] = one.tokens[one.offsets[i] : one.offsets[i + 1]]
        graph = graphs.section(len(one), one.sections, one.edges)
        graph = Graphs(graphs.adjacency(graph, len(one) + 1))
        given = {"params": params}
        lengths = one.lengths.astype(np.int32)
        segments = apply(given, tokens, lengths, one.places, method="segments")
        read = segments, lengths, one.places, graph
        expected = apply(given, *read, method="documents")
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_order_of_documents_does_not_matter(params, documents, vectors):
    order = np.random.default_rng(2).permutation(len(documents))
    found = encode(reader(), params, [documents[i] for i in order])
    np.testing.assert_allclose(found, vectors[order], atol=1e-5)


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_the_batch_size_does_not_matter(params, documents, vectors, batch):
    found = encode(reader(batch=batch), params, documents)
    np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_windows_and_groups_do_not_matter(params, documents, vectors, monkeypatch):
    monkeypatch.setattr(inference, "WINDOW", 9)
    monkeypatch.setattr(inference, "GROUPS", (1, 2))
    assert len(list(inference.windows(documents))) == 4
    found = encode(reader(), params, documents)
    np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_the_next_window_is_made_while_one_is_read():
    made, wanted = [], threading.Event()

    def numbers():
        for number in range(3):
            made.append(number)
            if number == 1:
                wanted.set()
            yield number
        raise UserError("the last document has no text")

    found = inference.ahead(numbers())
    assert next(found) == 0
    assert wanted.wait(10)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(UserError, match="no text"):
        next(found)


def test_a_reader_that_stops_early_does_not_wait_for_a_slow_source():
    written, wanted = threading.Event(), []

    def numbers():
        yield 1
        wanted.append(2)
        written.wait()
        yield 2

    found = inference.ahead(numbers())
    assert next(found) == 1
    found.close()
    written.set()
    join()
    assert wanted == [2]


def join() -> None:
    """Waits for the threads of `ahead`."""
    for thread in threading.enumerate():
        if thread.name == "ahead":
            thread.join()


def test_a_call_has_the_rows_of_its_documents_and_few_if_they_are_long(monkeypatch):
    lengths = [600, 1, 2, *[90] * 40]
    window = [document(np.random.default_rng(0), count) for count in lengths]
    groups = [
        ([lengths[i] for i in group], rows) for group, rows in reader()._groups(window)
    ]
    assert groups == [([600], 1), ([90] * 27, 27), ([90] * 13 + [2, 1], 27)]
    assert [rows for _, rows in reader()._groups(window[1:2])] == [1]
    assert [rows for _, rows in reader()._groups(window[1:4])] == [8]


def test_the_number_of_devices_does_not_matter(params, documents, vectors):
    found = encode(reader(devices=8), params, documents)
    np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_sparse_graphs_give_the_same_vectors(params, documents, vectors):
    found = encode(reader(GraphAttention(width=8, sparse=True)), params, documents)
    np.testing.assert_allclose(found, vectors, atol=1e-5)


def test_a_mean_without_graph_is_weighted_by_tokens(params, documents):
    one = dataclasses.replace(reader(Mean()), graph=None)
    segments = one.segments(params, documents)
    found = encode(one, params, documents)
    for vector, own, document in zip(found, segments, documents, strict=True):
        expected = np.average(own, axis=0, weights=document.lengths)
        np.testing.assert_allclose(vector, expected, atol=1e-6)


def test_nothing_gives_nothing(params):
    assert list(reader().encode(params, iter([]))) == []
    assert reader().queries(params, []).shape[0] == 0


def test_documents_are_read_as_they_are_needed(params, documents, monkeypatch):
    monkeypatch.setattr(inference, "WINDOW", 3)
    read = []
    stream = (read.append(i) or one for i, one in enumerate(documents))
    vectors = reader().encode(params, stream)
    next(vectors)
    vectors.close()
    join()
    assert read == [0, 1, 2]  # 3 segments fill a window, and 1 and 7 the next one


def shapes_of(one: Inference, params, documents, monkeypatch) -> list[tuple]:
    """The shapes that the segment encoder is called with."""
    found, call = [], inference._segment_vectors

    def record(*arguments):
        tokens, _, _ = arguments[-3:]
        found.append(tokens.shape)
        return call(*arguments)

    monkeypatch.setattr(inference, "_segment_vectors", record)
    encode(one, params, documents)
    return found


@pytest.mark.parametrize("devices", [1, 8])
def test_one_short_text_is_read_in_few_rows(params, documents, monkeypatch, devices):
    at = [int(one.lengths[0]) for one in documents].index(5)
    short = documents[at].first(1)
    shapes = shapes_of(reader(devices=devices), params, [short], monkeypatch)
    (rows, width), *more = shapes
    assert not more and rows == 8 and width == 8


@pytest.mark.parametrize("devices", [1, 8])
def test_a_call_has_as_many_tokens_whatever_the_width(devices):
    height = functools.partial(reader(devices=devices).height, MANY, remaining=99)
    most = TOKENS * devices
    for width in (16, 512, 1000, 1032, 2048, 4096, 8192, 10_000):
        rows = height(width=width)
        assert rows * width <= most or rows == devices
        assert rows % devices == 0 and (rows % 8 == 0 or width > most // 8)
        assert (rows + 8) * width > most


def test_a_rest_after_many_micro_batches_has_their_shape(params, monkeypatch):
    """Memory stays flat: every further shape is compiled, and kept."""
    many = [document(np.random.default_rng(0), 9 * 16 + rest) for rest in (3, 10)]
    for one in many:
        shapes = shapes_of(reader(batch=16), params, [one], monkeypatch)
        assert {rows for rows, _ in shapes} == {16}


def test_no_row_is_wider_than_the_position_table(params, documents, monkeypatch):
    """Widths are multiples of 8, and the limit itself: here 8, 16 and 21."""
    shapes = shapes_of(reader(batch=8), params, documents, monkeypatch)
    assert {width for _, width in shapes} == {8, LIMIT}


def test_a_gpu_compiles_few_widths_and_reads_more_in_a_call():
    @dataclasses.dataclass(frozen=True)
    class Gpu:
        platform: str = "gpu"
        id: int = 0

    one = dataclasses.replace(reader(), limit=512)
    assert one.widths == list(range(32, 513, 32))
    gpu = dataclasses.replace(one, mesh=Mesh(np.array([Gpu()]), ("data",)))
    assert gpu.widths == [32, 64, 128, 256, 384, 512]
    assert [each.height(MANY, 512, remaining=999) for each in (one, gpu)] == [16, 128]


def test_two_readers_of_a_model_share_what_is_compiled(params, documents, vectors):
    compiled = inference._segment_vectors, Inference._apply
    before = [program._cache_size() for program in compiled]
    encode(reader(), params, documents)
    assert before == [program._cache_size() for program in compiled]
    encode(reader(Mean()), params, documents)
    assert before[0] == inference._segment_vectors._cache_size()


def test_a_query_is_encoded_without_attention(params, documents):
    queries = [one.first(1) for one in documents]
    found = reader().queries(params, queries)
    segments = np.concatenate(reader().segments(params, queries, QUERY))
    node = params["document"]["node"]
    expected = np.tanh(segments @ node["kernel"] + node["bias"])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_predictions_are_the_heads_highest_logit(params, vectors):
    logits = params["head"]["logits"]
    expected = (vectors @ logits["kernel"] + logits["bias"]).argmax(-1)
    np.testing.assert_array_equal(reader().predictions(params, vectors), expected)


def test_attention_has_a_row_for_each_receiver(params, documents):
    one = documents[4]
    found = reader().attention(params, one)
    nodes = len(one) + 1
    assert found.shape == (2, 2, nodes, nodes)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-6)
    graph = graphs.section(len(one), one.sections, one.edges)
    absent = ~graphs.adjacency(graph, nodes)
    assert absent.any() and (found[..., absent] == 0).all()


def test_a_mean_has_no_attention_to_explain(params, documents):
    with pytest.raises(UserError, match="Mean has no attention to explain, or"):
        reader(Mean()).attention(params, documents[0])


def test_few_calls_run_ahead_of_the_devices(params, documents, monkeypatch):
    """A CPU of several devices hangs when more than 32 calls wait for each other."""
    made, waited = [], set()

    class Call:
        def __init__(self, vectors):
            made.append(self)
            self.vectors = vectors
            first = len(made) - 1 - inference.AHEAD
            assert all(number in waited for number in range(first))

        def __array__(self, *_, **__):
            waited.add(made.index(self))
            return np.asarray(self.vectors)

    one = reader(batch=1)
    expected = one.segments(params, documents)
    segments = inference._segment_vectors
    monkeypatch.setattr(
        inference, "_segment_vectors", lambda *arguments: Call(segments(*arguments))
    )
    found = one.segments(params, documents)
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
    assert len(made) > 32
