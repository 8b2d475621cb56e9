"""Two copies of a segment encoder: whose parameters read what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean
from docjax.encoders.towers import NAMES, Towers, read_by_inference
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.types import DOCUMENT, QUERY

SEGMENT = WordAverage(20, 4)
TOKENS = jnp.asarray(np.random.default_rng(0).integers(1, 20, (3, 5)))
READ = TOKENS, jnp.array([5, 2, 4]), jnp.zeros((3, 2), int)


def encoder(by: str) -> DocumentEncoder:
    return DocumentEncoder(Towers(SEGMENT, by), Mean())


@pytest.mark.parametrize("by", list(NAMES))
def test_every_tower_has_parameters_of_its_own_under_its_name(by):
    params = fresh_params(encoder(by), 0)["segment"]
    assert set(params) == set(NAMES[by])
    one, other = (params[name]["words"] for name in NAMES[by])
    assert one.shape == other.shape == (20, 4)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("by", list(NAMES))
def test_a_tower_reads_with_its_own_parameters_alone(by):
    params = fresh_params(encoder(by), 0)

    def vectors(params, tower):
        return encoder(by).apply(
            {"params": params}, *READ, None, tower, method="segments"
        )

    for tower, name in enumerate(NAMES[by]):
        alone = {"params": params["segment"][name]}
        expected = jax.jit(SEGMENT.apply)(alone, *READ)
        np.testing.assert_array_equal(vectors(params, tower), expected)
        own = {"segment": {name: params["segment"][name]}}
        np.testing.assert_array_equal(vectors(own, tower), expected)
        loss = lambda params, tower=tower: vectors(params, tower).sum()
        for other, leaves in jax.jit(jax.grad(loss))(params)["segment"].items():
            assert (leaves["words"] != 0).any() == (other == name)


def test_towers_by_kind_read_queries_and_documents_apart():
    one = encoder("kind")
    assert one.towers((QUERY, DOCUMENT)) == (0, 1)
    assert one.towers((DOCUMENT, DOCUMENT)) == (1, 1)
    assert (one.tower(QUERY), one.tower(DOCUMENT)) == (0, 1)


def test_towers_by_view_read_the_first_view_apart_and_all_else_with_the_second():
    one = encoder("view")
    assert one.towers((DOCUMENT,) * 3) == (0, 1, 1)
    assert (one.tower(QUERY), one.tower(DOCUMENT)) == (1, 1)


def test_a_single_segment_encoder_has_no_towers():
    one = DocumentEncoder(SEGMENT, Mean())
    assert one.towers((QUERY, DOCUMENT)) == () and one.tower(QUERY) is None


def test_an_unknown_division_is_said_with_the_valid_ones():
    with pytest.raises(UserError, match="towers.by 'author' is not one of kind, view"):
        jax.jit(Towers(SEGMENT, "author").init)(jax.random.key(0), *READ)


def test_inference_keeps_the_copy_that_it_reads():
    towers = encoder("view")
    params = fresh_params(towers, 0)
    single, kept = read_by_inference(towers, params)
    assert single.segment == SEGMENT and not single.segment.has_towers
    apply = lambda encoder, params, **tower: encoder.apply(
        {"params": params}, *READ, **tower, method="segments"
    )
    expected = apply(towers, params, tower=towers.tower(DOCUMENT))
    np.testing.assert_array_equal(apply(single, kept), expected)
    for other in (encoder("kind"), DocumentEncoder(SEGMENT, Mean())):
        assert read_by_inference(other, params) == (other, params)
