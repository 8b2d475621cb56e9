"""The similarity that a model takes from the config of its objective."""

import importlib
import inspect
import pkgutil

import pytest
from docjax.objectives.similarity import DOT, similarity_of

from docjax import objectives


def with_a_similarity() -> dict[str, str]:
    """The default of every objective that has a keyword `similarity`."""
    found = {}
    for module in pkgutil.iter_modules(objectives.__path__, "docjax.objectives."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if callable(value) and value.__module__ == module.name:
                keywords = inspect.signature(value).parameters
                if "similarity" in keywords and not name.startswith("_"):
                    found[f"{module.name}.{name}"] = keywords["similarity"].default
    return found


def test_the_defaults_are_those_of_the_objectives():
    found = with_a_similarity()
    found[DOT[0]] = "dot"  # compares by dot products, without a choice
    assert found == dict.fromkeys(DOT, "dot")


@pytest.mark.parametrize(
    "node, expected",
    [
        ({"fn": DOT[0]}, "dot"),
        ({"fn": DOT[0], "similarity": "cosine"}, "cosine"),
        ({"fn": "docjax.objectives.simsiam.simsiam"}, "cosine"),
        ({"fn": "mine.loss", "similarity": "dot"}, "dot"),
        ({"fn": "x.MaskedLM", "contrastive": {"fn": DOT[1]}}, "dot"),
        ({"fn": 5}, "cosine"),
        (None, "cosine"),
    ],
)
def test_a_config_says_how_vectors_are_compared(node, expected):
    assert similarity_of(node) == expected
