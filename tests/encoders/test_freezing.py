"""Which parameters are trained: patterns on their paths."""

import importlib
import re

import jax
import numpy as np
import pytest

from docjax.encoders import freezing
from docjax.encoders.document import fresh_params
from docjax.errors import UserError
from docjax.parts import named

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


def test_the_patterns_of_colde_leave_the_tables_of_places_trained():
    """Their rows begin at random: frozen, they would be noise for good."""
    config = importlib.import_module("configs.colde")
    patterns = re.findall('"(segment/[^"]*)"', config.__doc__)
    node = named.plain(config.get_config("acl"))["encoder"]
    node["segment"] |= {"layers": 12}
    shapes = jax.eval_shape(lambda: fresh_params(named.build(node), 0))
    last = "segment/layer_11/"
    for pattern, free in zip(patterns, ((), (last,)), strict=True):
        trained, _ = freezing.divided(shapes, pattern)
        paths = {
            jax.tree_util.keystr(path, simple=True, separator="/")
            for path, _ in jax.tree_util.tree_leaves_with_path(trained)
        }
        of_segment = {path for path in paths if path.startswith("segment/")}
        tables = {
            f"segment/embeddings/{each}/embedding" for each in ("sections", "chunks")
        }
        assert tables <= of_segment
        assert all(path.startswith(free) for path in of_segment - tables)
        assert not free or len(of_segment) > len(tables)


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
