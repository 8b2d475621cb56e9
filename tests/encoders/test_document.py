"""The two levels joined."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.pooling import Classifier, Mean
from docjax.encoders.transformer import Transformer
from docjax.types import DOCUMENT, QUERY, Graphs

SEGMENT = dict(vocabulary=20, layers=1, width=16, heads=2, hidden=16, positions=12)


def encoder(document=None, head=None) -> DocumentEncoder:
    document = document or GraphAttention(width=8)
    return DocumentEncoder(Transformer(**SEGMENT), document, head)


@pytest.fixture(scope="module")
def params():
    return fresh_params(encoder(head=Classifier(3)), seed=0)


@pytest.fixture(scope="module")
def apply(params):
    one = encoder(head=Classifier(3))
    return functools.partial(compiled, one, params)


def compiled(encoder, params, *given, method):
    """A method of the encoder as one program; operation by operation takes longer."""
    kinds = 5 if method == "views" else ()
    call = jax.jit(
        functools.partial(encoder.apply, method=method), static_argnums=kinds
    )
    return call({"params": params}, *given)


def light(views: int = 2, documents: int = 3, segments: int = 4) -> tuple:
    """Segment vectors, lengths, places and full graphs."""
    generator = np.random.default_rng(0)
    shape = views, documents, segments
    nodes = segments + 1
    return (
        jnp.asarray(generator.normal(size=(*shape, 16)), jnp.float32),
        jnp.asarray(generator.integers(1, 9, shape)),
        jnp.zeros((*shape, 2), int),
        Graphs(jnp.ones((views, documents, nodes, nodes), bool)),
    )


def part(given: tuple, view: int) -> tuple:
    """One view of `light`."""
    return jax.tree.map(lambda array: array[view], given)


def test_parameters_lie_under_the_names_of_the_parts(params):
    assert set(params) == {"segment", "document", "head"}
    bare = fresh_params(encoder(), seed=0)
    assert set(bare) == {"segment", "document"}
    assert set(fresh_params(encoder(Mean()), seed=0)) == {"segment"}


def test_a_sparse_document_encoder_has_the_parameters_of_a_dense_one(params):
    sparse = encoder(GraphAttention(width=8, sparse=True), Classifier(3))
    assert sparse.sparse and not encoder().sparse and not encoder(Mean()).sparse
    shapes = jax.eval_shape(lambda: fresh_params(sparse, 0))
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, params)


def test_first_parameters_follow_from_the_seed(params):
    one = encoder(head=Classifier(3))
    again, other = fresh_params(one, seed=0), fresh_params(one, seed=1)
    same = jax.tree.map(np.array_equal, params, again)
    assert all(jax.tree.leaves(same))
    assert not np.array_equal(
        params["document"]["node"]["kernel"], other["document"]["node"]["kernel"]
    )


def test_known_parameters_are_not_made_and_the_others_stay(params):
    one = encoder(head=Classifier(3))
    known = ["document/node/kernel", "segment/embeddings/tokens/embedding"]
    rest = flatten_dict(fresh_params(one, 0, known), sep="/")
    whole = flatten_dict(params, sep="/")
    assert whole.keys() - rest.keys() == set(known)
    for path, array in rest.items():
        np.testing.assert_array_equal(array, whole[path])


def test_views_are_the_document_vectors_through_the_head(apply, params):
    documents = apply(*light(), method="documents")
    expected = documents @ params["head"]["logits"]["kernel"]
    expected += params["head"]["logits"]["bias"]
    views = apply(*light(), (DOCUMENT,) * 2, method="views")
    np.testing.assert_allclose(views, documents, atol=1e-6)
    found = apply(views, method="outputs")
    assert found.shape == (2, 3, 3)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    classes = apply(documents, method="predictions")
    np.testing.assert_array_equal(classes, np.argmax(expected, -1))


def test_the_views_named_as_queries_are_encoded_as_queries(params):
    bare = {name: params[name] for name in ("segment", "document")}
    apply = functools.partial(compiled, encoder(), bare)
    queries = apply(light()[0][0, :, 0], method="queries")
    whole = apply(*part(light(), 1), method="documents")
    found = apply(*light(), (QUERY, DOCUMENT), method="views")
    np.testing.assert_allclose(found, jnp.stack([queries, whole]), atol=1e-6)
    neither = apply(*light(), (DOCUMENT, DOCUMENT), method="views")
    assert np.abs(found[0] - neither[0]).max() > 0.01
    both = apply(*light(), (QUERY, QUERY), method="views")
    np.testing.assert_allclose(both[0], queries, atol=1e-6)


def test_the_heads_dropout_needs_a_key(apply):
    views = apply(*light(), (DOCUMENT,) * 2, method="views")
    plain, again = (apply(views, method="outputs") for _ in range(2))
    dropped = apply(views, jax.random.key(0), method="outputs")
    np.testing.assert_array_equal(plain, again)
    assert not np.array_equal(plain, dropped)


def test_attention_is_that_of_each_layer(apply):
    vectors, lengths, _, graphs = part(light(views=1), 0)
    found = apply(vectors, lengths, graphs, method="attention")
    assert [layer.shape for layer in found] == [(3, 2, 5, 5)] * 2


def test_segment_vectors_do_not_depend_on_the_rows_beside_them(apply):
    generator = np.random.default_rng(1)
    tokens = jnp.asarray(generator.integers(0, 20, (4, 10)))
    lengths, places = jnp.asarray([10, 3, 7, 0]), jnp.zeros((4, 2), int)
    segments = functools.partial(apply, method="segments")
    together = segments(tokens, lengths, places)
    for i in range(4):
        alone = segments(*(array[i : i + 1] for array in (tokens, lengths, places)))
        np.testing.assert_allclose(together[i], alone[0], atol=1e-6)
    assert (together[3] == 0).all()
