"""Similarities of sections: which papers are compared, and by what."""

import numpy as np
import pytest

from benchmarks import colde_sections
from docjax.data.pairs import Pair


def test_a_paper_is_compared_with_a_linked_and_another_paper():
    pairs = [Pair("b", "a", True), Pair("c", "a", False), Pair("d", "x", True)]
    assert colde_sections.triples(pairs, 9) == [("a", "b", "c")]


def test_a_section_is_not_compared_with_itself():
    axis = np.eye(3)
    vectors = {"a": axis[[0, 1]], "b": axis[[0, 2]], "c": axis[[2, 2]]}
    found = colde_sections.similarities(vectors, [("a", "b", "c")])
    means = [found[kind]["a"] for kind in colde_sections.KINDS]
    assert means == pytest.approx([0, 0.25, 0])
