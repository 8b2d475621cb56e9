"""Dropout twice: the same units, and different masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from docjax.data.packing import Layout, pack
from docjax.data.segments import OneEach, segments
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer
from docjax.training.gradient_cache import GradientCache
from docjax.types import Frame, Targets, Units
from docjax.views.twice import Twice

NOTHING = np.zeros(0, np.int32)
FRAME = Frame(NOTHING, NOTHING, 8)


def document(number: int) -> Units:
    tokens = np.arange(6, dtype=np.int32) + 6 * number
    sections = np.zeros(1, np.int32)
    return Units(tokens, np.array([0, 6]), sections, np.zeros((0, 2), np.int32))


def test_both_views_are_the_document():
    first, second = Twice()(document(0), np.random.default_rng(0))
    np.testing.assert_array_equal(first.tokens, document(0).tokens)
    np.testing.assert_array_equal(second.tokens, document(0).tokens)


@pytest.mark.parametrize("microbatch", [1, 3, 8])
@pytest.mark.parametrize("dropout", [False, True])
def test_the_views_of_a_batch_differ_by_dropout_alone(microbatch, dropout):
    """In a step as it is trained, whatever the size of its micro-batches."""
    encoder = DocumentEncoder(
        Transformer(
            vocabulary=30, layers=1, width=16, heads=2, hidden=16, positions=10
        ),
        Mean(),
    )
    views = [
        tuple(
            segments(view, OneEach(), FRAME)
            for view in Twice()(document(number), np.random.default_rng(number))
        )
        for number in range(4)
    ]

    def apart(vectors, targets):
        return vectors.sum(), {"apart": jnp.abs(vectors[0] - vectors[1]).max(-1)}

    batch = pack(views, Layout(microbatch, (8,), 8), Targets(jnp.zeros(4, jnp.int32)))
    mesh = Mesh(jax.devices()[:1], ("data",))
    cache = GradientCache(encoder, apart, mesh, Twice.kinds)
    key = jax.random.key(0) if dropout else None
    _, metrics, _ = cache.gradient(fresh_params(encoder, 0), batch, key)
    differences = np.asarray(metrics["apart"])
    assert (differences > 1e-2).all() if dropout else not differences.any()
