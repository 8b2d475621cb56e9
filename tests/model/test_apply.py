"""The model as a pure function: as `encode`, under jit, grad and vmap."""

import functools
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.data import graphs
from docjax.data.segments import Chunks, Joined, OneEach
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Passages, Sentences
from docjax.encoders.bigbird import BigBird
from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.first_segments import FirstSegments
from docjax.encoders.from_mean import FromMean
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.pooling import Mean
from docjax.encoders.t5 import T5
from docjax.encoders.towers import Towers
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.parts import named
from docjax.types import ModelBatch, ReadLimits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jax.md"
NAMES = sorted(docjax.config.shipped())
RIVER = "Rivers carry sand to the sea. The sea carries it away."
WIND = "Who has seen the wind? Neither you nor me. Leaves hang trembling."
DOCUMENTS = [  # of 1, 2 and 3 sections
    RIVER,
    {
        "sections": [
            {"heading": "One", "text": RIVER[:30]},
            {"heading": "", "text": "So."},
        ]
    },
    {
        "sections": [{"heading": "", "text": text} for text in (WIND, "?", RIVER * 3)],
        "edges": [[0, 2]],
    },
]
QUERIES = ["the wind", "Who carries the sand?"]
SIZES = dict(layers=1, width=16, heads=2, hidden=16, positions=26)
FIXED = ("share", "components")  # parameters without a gradient


@functools.cache
def tokenizer():
    return train_tokenizer([RIVER, WIND], 300)


def made(segment: Any = Transformer, document: Any = None, **fields: Any):
    """A model of random parameters, which reads passages of 8 words."""
    if isinstance(segment, type):
        segment = segment(vocabulary=300, pooling="mean", **SIZES)
    encoder = DocumentEncoder(segment, document or Mean())
    parts = dict(
        encoder=encoder,
        params=drawn(encoder),
        tokenizer=tokenizer(),
        units=Passages(8),
        segments=OneEach(),
        graph=None,
        limits=ReadLimits(24, 24, 6),
    )
    return DocumentModel(**parts | fields)


def drawn(encoder: DocumentEncoder) -> Any:
    """Random numbers in place of zeros and ones; the words have a share of .3."""
    generator = np.random.default_rng(0)

    def draw(path: Any, leaf: Any) -> np.ndarray:
        if is_fixed(path):
            return np.full(leaf.shape, 0.3, np.float32)
        return generator.normal(0, 0.3, leaf.shape).astype(np.float32)

    shapes = jax.eval_shape(lambda: fresh_params(encoder, 0))
    return jax.tree_util.tree_map_with_path(draw, shapes)


def is_fixed(path: Any) -> bool:
    return path[-1].key in FIXED


def smoke(name: str) -> DocumentModel:
    """The model of a shipped config at its smallest, without training."""
    config = named.plain(docjax.config.load(name, variant="smoke"))
    facts = {part: config[part] for part in ("encoder", "units", "segments", "graph")}
    facts["encoder"]["head"] = None
    facts["limits"] = ReadLimits.of(config["limits"])
    facts["tokenizer"] = config["tokenizer"]["train"]
    return _smoke(json.dumps(facts, sort_keys=True))


@functools.cache  # configs that differ in training alone have one model
def _smoke(facts: str) -> DocumentModel:
    config = json.loads(facts)
    own = named.build(config["tokenizer"])([RIVER, WIND] * 9)
    segment = config["encoder"]["segment"]
    segment.get("encoder", segment)["vocabulary"] = own.vocabulary
    encoder = named.build(config["encoder"])
    return DocumentModel(
        encoder=encoder,
        params=drawn(encoder),
        tokenizer=own,
        limits=ReadLimits(*config["limits"]),
        **{part: named.build(config[part]) for part in ("units", "segments", "graph")},
    )


@functools.cache
def check(model: DocumentModel, tolerance: float = 1e-3) -> None:
    """The vectors are those of `encode`, and the gradient is that of the vectors: it
    equals the difference along a random direction, and padding has none."""
    batch = model.batch(DOCUMENTS)
    function = with_gradient(model)
    (_, vectors), gradient = function(model.params, batch)
    check_equal(vectors, model.encode(DOCUMENTS))
    value = lambda params: weighted(function(params, batch)[0][1])
    check_gradient(value, model.params, gradient, tolerance)
    padded = with_other_padding(batch, model)
    again = function(model.params, padded)[1]
    jax.tree.map(np.testing.assert_array_equal, gradient, again)
    queries = jax.jit(model.apply)(model.params, model.batch_queries(QUERIES))
    check_equal(queries, model.encode_queries(QUERIES))


def check_equal(vectors: jax.Array, expected: np.ndarray) -> None:
    assert vectors.dtype == jnp.float32
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    error = 1e-6 * max(1, np.abs(expected).max())
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=error)


def with_gradient(model: DocumentModel) -> Callable:
    """A function that gives the weighted sum of the vectors, the vectors, and the
    gradient of the sum."""

    def value(params: Any, batch: ModelBatch) -> tuple[jax.Array, jax.Array]:
        vectors = model.apply(params, batch)
        return (vectors * weights(vectors.shape)).sum(), vectors

    return jax.jit(jax.value_and_grad(value, has_aux=True))


def weights(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def weighted(vectors: jax.Array) -> float:
    """The weighted sum of the vectors, in float64."""
    return (np.asarray(vectors, np.float64) * weights(vectors.shape)).sum()


def check_gradient(
    value: Callable, params: Any, gradient: Any, tolerance: float
) -> None:
    """Against the difference of two values along a random direction.

    Its error is a part of the standard deviation that the products have as a sum.
    """
    generator = np.random.default_rng(2)

    def draw(path: Any, leaf: Any) -> np.ndarray:
        step = generator.normal(0, 1, leaf.shape) * np.std(leaf)
        return np.asarray(step * (not is_fixed(path)), np.float32)

    direction = jax.tree_util.tree_map_with_path(draw, params)
    size = 3e-3
    move = lambda p, d, s: np.asarray(p + s * d, np.float32)
    ahead, behind = (
        value(jax.tree.map(functools.partial(move, s=s), params, direction))
        for s in (size, -size)
    )
    product = lambda g, d: np.asarray(g, np.float64) * d
    products = jax.tree.leaves(jax.tree.map(product, gradient, direction))
    along = sum(each.sum() for each in products)
    spread = sum((each**2).sum() for each in products) ** 0.5
    assert spread > 1e-3
    assert abs((ahead - behind) / (2 * size) - along) < tolerance * spread


def with_other_padding(batch: ModelBatch, model: DocumentModel) -> ModelBatch:
    """The batch with the last token of the vocabulary where it has no tokens."""
    real = np.arange(batch.tokens.shape[1]) < batch.lengths[:, None]
    assert not real.all()
    other = np.where(real, batch.tokens, model.tokenizer.vocabulary - 1)
    assert (other != batch.tokens).any()
    return batch._replace(tokens=other.astype(np.int32))


@pytest.mark.parametrize("name", NAMES)
def test_each_system_is_a_pure_function(name):
    check(smoke(name))


def no_edges(segments: int, sections: np.ndarray, edges: np.ndarray) -> Any:
    """A graph without any edge."""
    whole = graphs.full(segments, sections, edges)
    none = np.zeros(0, np.int32)
    return whole._replace(senders=none, receivers=none, n_edge=np.array([0]))


BERT = Transformer(vocabulary=300, pooling="mean", **SIZES)
PROMPTS = dict(prompts={"document": "so: ", "query": "ask me: "}, include_prompt=False)
OF_CHUNKS = dict(units=Sentences(), segments=Chunks())
KINDS = {
    "first numbers": lambda: made(truncate_dim=5),
    "prompts left out": lambda: made(**PROMPTS),
    "joined sentences": lambda: made(units=Sentences(), segments=Joined()),
    "words and branch": lambda: made(
        BERT.clone(words=8),
        FromMean(GraphAttention(8), words=8, turn=True, components=True),
        graph=graphs.section,
    ),
    "edges": lambda: made(
        document=GraphAttention(8, sparse=True), graph=graphs.user_edges
    ),
    "no edges": lambda: made(document=GraphAttention(8, sparse=True), graph=no_edges),
    "chunks": lambda: made(
        BERT.clone(sections=2, chunks=2), ChunkEncoder(8, 2, 8), **OF_CHUNKS
    ),
    "several vectors": lambda: made(document=FirstSegments(2, projected=True)),
    "towers": lambda: made(Towers(BERT)),
    "longformer": lambda: made(Longformer(vocabulary=300, window=4, **SIZES)),
    "bigbird": lambda: made(BigBird(vocabulary=300, block=2, random=0, **SIZES)),
    "modernbert": lambda: made(ModernBert(vocabulary=300, window=4, **SIZES)),
    "t5": lambda: made(T5(vocabulary=300, pooling="mean", **SIZES)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_encoder_is_a_pure_function(kind):
    check(KINDS[kind](), 5e-3 if kind == "t5" else 1e-3)  # ReLU has kinks


def test_a_checkpoint_is_a_pure_function(minilm):
    check(docjax.load(minilm))


@pytest.mark.parametrize("kind", ["words and branch", "edges", "chunks", "bigbird"])
def test_stacked_parameters_give_the_vectors_of_each(kind):
    model = KINDS[kind]()
    batch = model.batch(DOCUMENTS)
    other = jax.tree.map(lambda leaf: leaf * np.float32(0.9), model.params)
    both = jax.tree.map(lambda *leaves: np.stack(leaves), model.params, other)
    found = jax.jit(jax.vmap(model.apply, in_axes=(0, None)))(both, batch)
    for params, vectors in zip((model.params, other), found, strict=True):
        expected = model.replace(params=params).encode(DOCUMENTS)
        np.testing.assert_allclose(vectors, expected, atol=2e-6)
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.parametrize("kind", ["edges", "chunks"])
def test_batches_like_the_largest_are_compiled_once(kind):
    model = KINDS[kind]()
    apply, batch = jax.jit(model.apply), model.batch([DOCUMENTS[2]])
    for document in DOCUMENTS[:2]:
        alone = model.batch([document])
        assert alone.rows.shape != batch.rows.shape
        found = apply(model.params, model.batch([document], like=batch))
        expected = model.encode([document])
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert apply._cache_size() == 1


def test_graphs_are_of_the_kind_of_like():
    limits = ReadLimits(24, 24, None)
    model = made(document=GraphAttention(width=16), graph=graphs.section, limits=limits)
    many = {"sections": [{"heading": "", "text": "So."}] * 130}
    dense = model.batch([many])
    assert dense.graphs.adjacency.shape == (1, 257, 257)
    few = model.batch([RIVER], like=dense)  # whose graph alone would be edges
    assert few.graphs.adjacency.shape == dense.graphs.adjacency.shape
    edges = model.batch([{"sections": [{"heading": "", "text": RIVER * 7}] * 28}])
    assert edges.graphs.edges is not None
    assert model.batch([RIVER], like=edges).graphs.edges is not None


def test_the_axes_of_a_batch_are_powers_of_two():
    model = KINDS["edges"]()
    batch = model.batch(DOCUMENTS)
    segments = [len(segments) for segments in model.read(DOCUMENTS, {})]
    assert segments == [2, 2, 6]
    assert (*batch.tokens.shape, *batch.rows.shape) == (16, 24, 3, 8)  # 24: the limit
    assert batch.rows[0].tolist() == [0, 1, *[-1] * 6]
    count = batch.graphs.edges.shape[1]
    assert count & (count - 1) == 0 and (batch.graphs.edges[0, -1] == -1).all()
    queries = model.batch_queries(QUERIES)
    assert queries.rows is None and queries.tokens.shape == (2, 16)
    assert model.batch_queries(QUERIES, like=batch).tokens.shape == (2, 24)


def test_other_parameters_are_those_that_encode():
    model = made()
    other = jax.tree.map(lambda leaf: leaf * np.float32(2), model.params)
    changed = model.replace(params=other)
    assert changed.params is other and changed.fingerprint() != model.fingerprint()
    vectors = changed.encode(DOCUMENTS)
    assert np.abs(vectors - model.encode(DOCUMENTS)).max() > 1e-3
    again = changed.replace(params=model.params)
    np.testing.assert_array_equal(again.encode(DOCUMENTS), model.encode(DOCUMENTS))


def test_parameters_of_another_model_are_one_line():
    model = made()
    stacked = jax.tree.map(lambda leaf: leaf[None], model.params)
    words = "segment/embeddings/norm/bias is (1, 16), expected (16,)"
    some = {"segment": {**model.params["segment"], "more": np.zeros(3)}}
    for params, expected in (
        (stacked, words),
        ({}, "segment/embeddings/norm/bias is missing, expected (16,)"),
        (some, "segment/more is (3,), expected none"),
    ):
        with pytest.raises(UserError) as error:
            model.replace(params=params)
        assert expected in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("ask", ["encode", "encode_queries", "segment_vectors"])
def test_what_cannot_be_traced_says_so(ask):
    model = made()
    traced = lambda params: getattr(model.replace(params=params), ask)(["a river"])
    with pytest.raises(UserError, match=r"cannot trace encode.*call model\.apply\("):
        jax.jit(traced)(model.params)


def test_what_is_no_batch_is_told_in_one_line():
    model = made()
    batch, texts = model.batch([RIVER]), [RIVER, RIVER]
    own = DocumentModel.apply, DocumentModel.batch, DocumentModel.batch_queries
    apply, of_texts, of_queries = map(inspect.unwrap, own)  # types are not checked
    for ask, words in (
        (
            lambda: apply(model, batch, model.params),
            "argument of apply is a dict, not a",
        ),
        (
            lambda: apply(model, model.params, texts),
            "argument of apply is a list, not a",
        ),
        (lambda: of_texts(model, texts, like=texts), "like is a list, not a batch"),
        (lambda: of_queries(model, texts, like=RIVER), "like is a str, not a batch"),
        (lambda: of_queries(model, texts, like=[]), "like is a list, not a batch"),
        (lambda: of_texts(model, texts, like=np.ones(3)), "like is a ndarray, not a b"),
    ):
        with pytest.raises(UserError, match=words) as error:
            ask()
        assert "\n" not in str(error.value)


def test_no_batch_is_made_of_nothing():
    model = made()
    queries = model.batch_queries(QUERIES)
    for ask, words in (
        (lambda: model.batch([]), "a batch of no texts: give at least one"),
        (lambda: model.batch_queries([]), "a batch of no texts: give at least one"),
        (lambda: model.batch(RIVER), "a str is no list of documents"),
        (lambda: model.batch([RIVER, ""]), "document 1"),
        (lambda: model.batch([RIVER], like=queries), "like is a batch of queries"),
    ):
        with pytest.raises(UserError, match=words):
            ask()


def test_the_examples_of_the_page_run(run):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    found: dict[str, Any] = {}
    exec("\n".join(blocks).replace("runs/demo", str(run)), found)  # noqa: S102
    assert found["value"] < found["before"]
    assert found["vectors"].shape == (2, found["model"].width)
    assert found["step"]._cache_size() == 1
