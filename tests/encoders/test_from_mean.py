"""The encoder that begins as the mean, and the word vectors beside a transformer."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.data import graphs
from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.document import fresh_params
from docjax.encoders.from_mean import FromMean
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.word_vectors import WordVectors
from docjax.errors import UserError
from docjax.types import Graphs

TEXTS = ["One short text.", "Many words of one kind and another. " * 150]
BRANCHES = {
    "none": None,
    "graph": GraphAttention(width=32),
    "chunks": ChunkEncoder(width=32, heads=2, hidden=16),
}


@pytest.fixture(scope="module")
def plain(minilm):
    """The plain folder's model, its vectors of TEXTS, and that of a query."""
    model = docjax.load(minilm)
    return model, model.encode(TEXTS), model.encode_queries(TEXTS[:1])


@pytest.mark.parametrize("name", BRANCHES)
def test_untrained_it_gives_the_vectors_of_the_plain_folder(plain, name):
    plain, expected, queries = plain
    document = FromMean(BRANCHES[name], normalize=plain.encoder.document.normalize)
    encoder = plain.encoder.clone(document=document)
    fresh = fresh_params(encoder.clone(segment=small(plain)), 0)
    params = plain.params | {k: v for k, v in fresh.items() if k == "document"}
    graph = graphs.full if name == "graph" else None
    model = dataclasses.replace(plain, encoder=encoder, params=params, graph=graph)
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(model.encode_queries(TEXTS[:1]), queries, atol=1e-6)


def small(plain):
    """An encoder of the same width, whose fresh parameters take no time."""
    return plain.encoder.segment.clone(layers=1, vocabulary=8, hidden=8)


def test_a_turn_leaves_all_cosines_as_they_are():
    encoder, vectors = FromMean(turn=True), drawn(4, 3, 16)
    lengths = jnp.full((4, 3), 5)
    params = jax.jit(encoder.init)(jax.random.key(0), vectors, lengths)
    turned, plain = jax.jit(encoder.apply)(params, vectors, lengths), vectors.mean(1)
    assert np.abs(turned - plain).max() > 0.1
    np.testing.assert_allclose(turned @ turned.T, plain @ plain.T, atol=1e-4)


def test_words_have_no_share_before_training_and_theirs_after_it_begins():
    encoder, vectors = FromMean(words=6, share=0.25), drawn(4, 3, 16)
    lengths = jnp.full((4, 3), 5)
    params = jax.jit(encoder.init)(jax.random.key(0), vectors, lengths)["params"]
    apply = lambda p: encoder.apply({"params": p}, vectors, lengths)
    before = apply(params)
    assert np.all(before[:, -6:] == 0)
    np.testing.assert_allclose(np.linalg.norm(before, axis=1), 1, rtol=1e-5)
    begun = encoder.begin({"document": params})["document"]
    after = apply(begun)
    np.testing.assert_allclose((after[:, -6:] ** 2).sum(1), 0.25, rtol=1e-5)
    gradient = jax.jit(jax.grad(lambda p: apply(p).sum()))(begun)
    assert np.all(gradient["share"] == 0)


def test_a_start_without_words_is_the_plain_vector_and_one_with_words_stays():
    encoder, vectors = FromMean(words=6, share=0.25, turn=True), drawn(4, 1, 16)
    lengths = jnp.full((4, 1), 5)
    params = jax.jit(encoder.init)(jax.random.key(0), vectors, lengths)["params"]
    start = encoder.plain({"document": params})
    found = encoder.apply({"params": start["document"]}, vectors, lengths)
    known = vectors[:, 0, :-6]
    known = known / np.linalg.norm(known, axis=1, keepdims=True)
    np.testing.assert_allclose(found, np.pad(known, ((0, 0), (0, 6))), atol=1e-6)
    begun = encoder.begin({"document": params})
    assert encoder.plain(begun) is begun


def test_words_count_by_their_logarithm_and_padding_not_at_all():
    table = drawn(9, 4)
    tokens = jnp.array([[3, 3, 5, 3, 0, 7], [2, 4, 0, 0, 0, 0]])
    lengths = jnp.array([4, 0])
    words = WordVectors(9, 4)
    found = jax.jit(words.apply)({"params": {"table": table}}, tokens, lengths)
    expected = ((1 + np.log(3)) * table[3] + table[5]) / 4
    np.testing.assert_allclose(found[0], expected, rtol=1e-5)
    assert np.all(found[1] == 0)


def test_a_share_outside_of_0_to_1_is_refused():
    with pytest.raises(UserError, match="share 1.5 is not between 0 and 1"):
        jax.jit(FromMean(words=2, share=1.5).init)(
            jax.random.key(0), drawn(1, 1, 4), jnp.ones((1, 1))
        )


def drawn(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def test_attention_to_another_document_is_that_of_the_branch():
    branch, vectors = BRANCHES["chunks"], drawn(2, 4, 16)
    encoder, lengths = FromMean(branch), jnp.full((2, 1, 4), 5)
    read = vectors[:, None], lengths, jnp.zeros((2, 1, 4, 2), int), Graphs()
    init = jax.jit(functools.partial(encoder.init, method="views"))
    params = init(jax.random.key(0), *read)["params"]
    given = vectors[0], vectors[1, :3], jnp.ones(3, bool)
    found, expected = (
        jax.jit(functools.partial(of.apply, method="cross_attention"))(own, *given)
        for of, own in (
            (encoder, {"params": params}),
            (branch, {"params": params["branch"]}),
        )
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.fixture(scope="module")
def nested():
    """An encoder whose mean learns alone, its parameters, and four documents of views."""
    branch = GraphAttention(width=8)
    encoder = FromMean(branch, nested=True, words=6, share=0.25, turn=True)
    vectors, lengths = drawn(2, 4, 3, 16), jnp.full((2, 4, 3), 5)
    places = jnp.zeros((2, 4, 3, 2), int)
    graph = Graphs(adjacency=jnp.ones((2, 4, 4, 4), bool))
    read = vectors, lengths, places, graph
    init = jax.jit(functools.partial(encoder.init, method="views"))
    params = init(jax.random.key(0), *read)["params"]
    params = encoder.begin({"document": params})["document"]
    kernel = drawn(*params["add"]["kernel"].shape)
    return encoder, params | {"add": {"kernel": kernel}}, read


def test_a_mean_that_learns_alone_learns_nothing_of_the_branch(nested):
    encoder, params, read = nested
    alone = encoder.clone(branch=None, nested=False)
    weight = drawn(2, 4, 16)

    def loss(encoder, params, vectors, part=None):
        given = {"params": params}, vectors, *read[1:]
        views = encoder.apply(*given, method="views")
        views = views if part is None else jnp.split(views, 2)[part]
        return (jnp.sin(views) * weight).sum()

    grad = lambda of, part: jax.grad(functools.partial(loss, of, part=part), (0, 1))
    of_params, of_vectors = grad(alone, None)(
        {name: params[name] for name in ("share", "turn")}, read[0]
    )
    mean, from_mean = grad(encoder, 0)(params, read[0])
    np.testing.assert_allclose(
        mean["turn"]["kernel"], of_params["turn"]["kernel"], rtol=1e-6
    )
    np.testing.assert_allclose(from_mean, of_vectors, rtol=1e-5, atol=1e-6)
    assert not mean["add"]["kernel"].any()
    whole, from_whole = grad(encoder, 1)(params, read[0])
    assert not whole["turn"]["kernel"].any() and not from_whole.any()
    assert whole["add"]["kernel"].any()
    assert jax.tree.reduce(lambda a, b: a or bool(b.any()), whole["branch"], False)


def test_a_branch_that_is_left_out_leaves_the_mean(nested):
    encoder, params, (vectors, lengths, places, graph) = nested
    read = vectors[0], lengths[0], places[0], jax.tree.map(lambda g: g[0], graph)
    given = {"document": params}
    without = encoder.without_branch(given)
    assert encoder.explains(given) and not encoder.explains(without)
    found = encoder.apply({"params": without["document"]}, *read)
    alone = encoder.clone(branch=None, nested=False)
    mean = alone.apply({"params": {n: params[n] for n in ("share", "turn")}}, *read)
    np.testing.assert_allclose(found, mean, rtol=1e-6)
    views = encoder.apply({"params": params}, *nested[2], method="views")
    both = encoder.apply({"params": params}, *read)
    np.testing.assert_allclose(views[2], both, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(views[0], mean, rtol=1e-6)
