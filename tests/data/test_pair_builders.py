"""Pairs from links: which are similar, how the others are drawn, what is left out."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from docjax import cli
from docjax.data.pair_builders import from_citations, from_shared_links, split
from docjax.data.pairs import Pair, linked_pairs, read_pairs, write_pairs
from docjax.errors import UserError
from docjax.types import Document

NAMES = [f"d{i}" for i in range(60)]


def jaccard(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


@pytest.fixture(scope="module")
def groups() -> dict[str, list[str]]:
    """Documents whose links are mostly those of their group, and a hub for all."""
    generator = np.random.default_rng(0)
    links = {}
    for number, name in enumerate(NAMES):
        own = [f"link{number // 4}-{i}" for i in range(8)]
        kept = generator.random(8) < 0.8
        links[name] = ["hub", *itertools.compress(own, kept)]
    return links | {"bare": [], "self": ["self"], "lone": ["x", "y"], "alone": ["hub"]}


def kinds(pairs: list[Pair]) -> list[list[Pair]]:
    return [[pair for pair in pairs if pair.similar is kind] for kind in (True, False)]


def both(pairs) -> set[frozenset[str]]:
    return {frozenset(pair[:2]) for pair in pairs}


def test_shared_links_find_what_a_comparison_of_all_pairs_finds(groups):
    sets = {name: set(links) - {name} for name, links in groups.items()}
    alike = [
        frozenset(two)
        for two in itertools.combinations(sets, 2)
        if jaccard(*(sets[name] for name in two)) > 0.5
    ]
    counts = Counter(itertools.chain(*alike))
    expected = {two for two in alike if all(counts[name] >= 2 for name in two)}
    similar, others = kinds(from_shared_links(groups, seed=0).pairs)
    assert len(expected) > 30 and both(similar) == expected
    assert len(both(similar)) == len(similar) == len(others) == len(both(others))
    assert both(others).isdisjoint(alike)


def test_a_similarity_of_exactly_one_half_is_not_similar():
    three = dict(a="123", b="1234", c="12345", half="126")  # half and a: 2/4
    built = from_shared_links({name: list(some) for name, some in three.items()}, 0)
    assert both(kinds(built.pairs)[0]) == set(map(frozenset, ("ab", "ac", "bc")))


def test_documents_with_one_similar_document_are_left_out_and_counted(groups):
    some = {name: groups[name] for name in ("bare", "self", "lone")}
    pair = {"p": list("uvw"), "q": list("uvw")}
    three = {name: list("abc") for name in ("x", "y", "z")}
    built = from_shared_links(some | pair | three, seed=0)
    assert both(kinds(built.pairs)[0]) == set(map(frozenset, ("xy", "xz", "yz")))
    assert built.left_out == {
        "documents without links": 2,
        "documents with one similar document": 2,
        "similar pairs with such a document": 1,
        "documents without a pair": 5,
        "random pairs that could not be drawn": 3,
    }


@pytest.fixture(scope="module")
def citations() -> dict[str, list[str]]:
    """Later documents cite earlier ones, above all the first ones."""
    generator = np.random.default_rng(0)
    return {
        name: [NAMES[int(number * generator.random() ** 3)] for _ in range(3)]
        for number, name in enumerate(NAMES)
    } | {"stray": ["nobody", "stray"]}


def test_uniform_negatives_keep_the_sources_and_draw_from_all(citations):
    similar, others = kinds(from_citations(citations, 0, "uniform").pairs)
    cited = {
        frozenset((a, b)) for a in citations for b in citations[a] if b in citations
    }
    assert both(similar) == {two for two in cited if len(two) == 2}
    assert [pair.source for pair in others] == [pair.source for pair in similar]
    assert both(others).isdisjoint(cited) and len(both(others)) == len(others)
    drawn = {pair.target for pair in others}
    assert len(drawn) > len({pair.target for pair in similar})


def test_other_negatives_are_those_of_the_task_without_a_table(citations):
    documents = [Document(n, (), links=tuple(some)) for n, some in citations.items()]
    found = from_citations(citations, 3, "targets").pairs
    assert found == linked_pairs(documents, 3)
    similar, others = kinds(found)
    assert Counter(p.target for p in others) <= Counter(p.target for p in similar)


@pytest.mark.parametrize("negatives", ["uniform", "targets"])
def test_what_citations_leave_out_adds_up(citations, negatives):
    built = from_citations(citations, 0, negatives)
    similar, _ = kinds(built.pairs)
    out = built.left_out
    given = sum(map(len, citations.values()))
    assert out["links to documents that are not there"] == 1
    reasons = [count for reason, count in out.items() if reason.startswith("links")]
    assert given == len(similar) + sum(reasons)
    used = {name for pair in built.pairs for name in pair[:2]}
    assert out["documents without a pair"] == len(citations) - len(used)


def test_the_splits_have_80_10_and_10_percent_of_each_kind(citations):
    pairs = from_citations(citations, 0, "uniform").pairs
    splits = split(pairs, seed=1)
    assert sorted(itertools.chain(*splits.values())) == sorted(pairs)
    for kind in (True, False):
        total = sum(pair.similar is kind for pair in pairs)
        for name, share in {"train": 0.8, "validation": 0.1, "test": 0.1}.items():
            count = sum(pair.similar is kind for pair in splits[name])
            assert abs(count - share * total) <= 1 and count
    assert split(pairs, 1) == splits != split(pairs, 2)


def test_too_few_pairs_are_told(citations):
    few = from_citations(dict(a=["b"], b=["c"], c=[]), 0, "uniform").pairs
    with pytest.raises(UserError, match="2 pairs of documents that are similar: at"):
        split(few, 0)
    ten = [Pair(str(i), "x", True) for i in range(10)]
    with pytest.raises(UserError, match="0 pairs of documents that are not similar"):
        split(ten, 0)


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\u2028b", ""])
def test_an_id_that_no_table_can_hold_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="has a tab or a line break"):
        write_pairs(tmp_path / "pairs.tsv", {"train": [Pair("a", name, True)]})
    assert not list(tmp_path.iterdir())


@pytest.fixture
def file(tmp_path, citations):
    path = tmp_path / "papers.jsonl"
    rows = [dict(id=n, text="words", links=some) for n, some in citations.items()]
    rows.append(dict(id="empty", text=""))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command_writes_the_table_and_says_what_it_left_out(capsys, file):
    output = file.with_name("pairs.tsv")
    flags = ["--output", str(output), "--max-bad-fraction", "0.1"]
    assert cli.main(["pair", str(file), *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    pairs = read_pairs(output)
    assert told["pairs"] == {name: len(rows) for name, rows in pairs.items()}
    assert told["documents"] == len(NAMES) + 1
    assert told["left_out"]["empty text"] == 1
    assert sum(told["pairs"].values()) == told["similar"] + told["not_similar"]
    assert cli.main(["pair", str(file), *flags]) == 2
    assert "exists already: name another --output" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--by", "shared-links", "--negatives", "uniform"], "--negatives uniform is"),
        (["--seed", "-1"], "--seed -1 is too small; give at least 0"),
        ([], "empty text"),
    ],
)
def test_mistakes_are_one_line(capsys, file, flags, message):
    output = file.with_name("pairs.tsv")
    assert cli.main(["pair", str(file), "--output", str(output), *flags]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and not output.exists()


def test_documents_without_links_are_told(capsys, tmp_path):
    file = tmp_path / "papers.jsonl"
    file.write_text('{"id": "a", "text": "words"}\n')
    output = str(tmp_path / "pairs.tsv")
    assert cli.main(["pair", str(file), "--output", output]) == 2
    assert 'give more documents with "links"' in capsys.readouterr().err


def test_a_folder_that_is_missing_is_told_before_anything_is_read(capsys, tmp_path):
    output = str(tmp_path / "no" / "pairs.tsv")
    assert cli.main(["pair", "no.jsonl", "--output", output]) == 2
    assert "there is no such folder" in capsys.readouterr().err
