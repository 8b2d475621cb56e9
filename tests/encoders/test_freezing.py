"""Which parameters are trained: patterns on their paths."""

import jax
import numpy as np
import pytest

from docjax.encoders import freezing
from docjax.errors import UserError

PARAMS = {
    "segment": {
        "embeddings": {"tokens": np.ones(2)},
        "layer_0": {"kernel": np.ones(3)},
        "layer_1": {"kernel": np.ones(4)},
    },
    "document": {"segment": {"kernel": np.ones(5)}},
}


@pytest.mark.parametrize(
    "frozen, trained, kept",
    [
        ("", {2, 3, 4, 5}, set()),
        ("segment/", {5}, {2, 3, 4}),  # from the beginning of the path on
        ("segment/(embeddings|layer_0)/", {4, 5}, {2, 3}),
        ("segment/(?!layer_1/)", {4, 5}, {2, 3}),  # all but the last layer
        (".*kernel", {2}, {3, 4, 5}),
        ("nothing", {2, 3, 4, 5}, set()),
    ],
)
def test_a_pattern_divides_the_parameters_and_joining_gives_them_back(
    frozen, trained, kept
):
    parts = freezing.divided(PARAMS, frozen)
    sizes = [{leaf.size for leaf in jax.tree.leaves(part)} for part in parts]
    assert sizes == [trained, kept]
    together = freezing.joined(*parts)
    assert jax.tree.structure(together) == jax.tree.structure(PARAMS)
    pairs = zip(jax.tree.leaves(together), jax.tree.leaves(PARAMS), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)


def test_patterns_that_match_a_part_or_are_empty_are_accepted():
    freezing.check(PARAMS, "")
    freezing.check(PARAMS, "segment/")


@pytest.mark.parametrize(
    "frozen, message",
    [
        ("segment/(", "frozen 'segment/\\(' is not a regular expression"),
        ("nothing", "matches no parameter; their paths are document/segment/kernel"),
        (".*", "matches all parameters"),
    ],
)
def test_a_pattern_that_divides_nothing_is_a_mistake(frozen, message):
    with pytest.raises(UserError, match=message) as error:
        freezing.check(PARAMS, frozen)
    assert "\n" not in str(error.value)
