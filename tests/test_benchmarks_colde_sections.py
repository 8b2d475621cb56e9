"""Similarities of sections: which papers are compared, and by what."""

import json
import lzma

import numpy as np
import pytest

from benchmarks import colde_sections
from docjax.data.pairs import Pair, write_pairs


def test_a_paper_is_compared_with_a_linked_and_another_paper():
    pairs = [Pair("b", "a", True), Pair("c", "a", False), Pair("d", "x", True)]
    assert colde_sections.triples(pairs, 9) == [("a", "b", "c")]


def test_a_section_is_not_compared_with_itself():
    axis = np.eye(3)
    vectors = {"a": axis[[0, 1]], "b": axis[[0, 2]], "c": axis[[2, 2]]}
    found = colde_sections.similarities(vectors, [("a", "b", "c")])
    means = [found[kind]["a"] for kind in colde_sections.KINDS]
    assert means == pytest.approx([0, 0.25, 0])


class Given:
    """A model that knows a direction for each paper."""

    def encode(self, documents):
        vectors = {"a": [1, 0, 0], "b": [1, 1, 0], "c": [0, 0, 1], "d": [1, 0, 0]}
        return np.array([vectors[each.id[0]] for each in documents], np.float32)


def test_short_sections_are_left_out_and_the_means_are_printed(
    tmp_path, monkeypatch, capsys
):
    part = lambda count: {"heading": "h", "text": "word " * count}
    papers = [
        {"id": name, "sections": [part(60), part(60), part(9)]} for name in "abcd"
    ]
    (tmp_path / "acl").mkdir()
    with lzma.open(tmp_path / "acl/papers.jsonl.xz", "wt") as file:
        file.writelines(json.dumps(paper) + "\n" for paper in papers)
    table = tmp_path / "pairs.tsv"
    pairs = [Pair("b", "a", True), Pair("c", "a", False)]
    pairs += [Pair("d", "b", True), Pair("c", "b", False)]
    write_pairs(table, {"train": pairs, "test": pairs})
    monkeypatch.setattr(colde_sections.docjax, "load", lambda model: Given())
    given = ["--data", str(tmp_path), "--model", "m", "--pairs", str(table)]
    colde_sections.main(given)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 papers, 8 sections of 4 papers"
    means = ["same paper: 1.000", "linked papers: 0.707", "other papers: 0.000"]
    assert lines[1:4] == means
