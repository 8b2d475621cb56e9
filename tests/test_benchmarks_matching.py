"""The benchmark of pairs: what is read of a paper, and the systems without a model."""

import lzma

import numpy as np
import pytest

from benchmarks import matching
from docjax.data.documents import to_line
from docjax.data.pairs import Pair
from docjax.types import Document, Section


@pytest.mark.parametrize(
    "heading, is_dropped",
    [
        ("Abstract", True),
        ("REFERENCES", True),
        ("1. Abstract", True),
        ("7 References:", True),
        ("Abstract*", True),
        ("Coreference", False),
        ("Abstract 1 Introduction", False),  # holds the introduction
        ("", False),
    ],
)
def test_papers_lose_abstract_and_references(heading, is_dropped, tmp_path):
    paper = Document("a", (Section(heading, "x"), Section("2 Model", "y")))
    (tmp_path / "acl").mkdir()
    with lzma.open(tmp_path / "acl/papers.jsonl.xz", "wt") as stream:
        stream.write(to_line(paper) + "\n")
    (found,) = matching.acl_papers(tmp_path)
    kept = [section.text for section in found.sections]
    assert kept == (["y"] if is_dropped else ["x", "y"])


def test_rules_read_ids_and_training_pairs_alone():
    cited = [Pair(f"A0{i}-1000", "P95-1000", True) for i in range(8)]
    cited += [Pair(f"A0{i}-1000", "P96-1000", i < 7) for i in range(9)]
    rules = matching.rules(cited)
    scored = [Pair("P96-1000", "P95-1000", False), Pair("C00-1", "P96-1000", True)]
    assert rules["cited more than 7 times"](scored).tolist() == [True, False]
    scored += [Pair("P95-1001", "P95-1000", True), Pair("P99-1", "W00-1", True)]
    assert rules["a year newer"](scored).tolist() == [True, True, False, False]


def test_words_in_common_score_and_training_pairs_choose_the_threshold():
    topics = ["parse trees of grammars", "align words of phrases"]
    papers = [
        Document(f"P0{i}-1", (Section("", f"{topics[i % 2]} number{i} {'and ' * i}"),))
        for i in range(8)
    ]
    pairs = [
        Pair(a.id, b.id, (i - j) % 2 == 0)
        for i, a in enumerate(papers)
        for j, b in enumerate(papers)
        if i != j
    ]
    scorers = matching.of_words(papers)
    found = dict(matching.rows(pairs[::2], pairs[1::2], {}, scorers))
    for name in ("TF-IDF cosine", "BM25"):
        assert found[name]["f1"] == found[name]["accuracy"] == 1
        assert 0 < found[name]["threshold"] < 1
        assert np.all(scorers[name](pairs) < 1 + 1e-6)
    lines = matching.table(iter(found.items())).splitlines()
    assert lines[-1] == (
        f"| BM25 | 1.0000 | 1.0000 | 1.0000 | 1.0000 | {found['BM25']['threshold']:.2f} |"
    )
