"""Sections as views: consecutive, complete, about equally long."""

import dataclasses
import itertools
import json

import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.sources.jsonl import jsonl
from docjax.data.units import Sentences
from docjax.data.word_tokenizer import train_words
from docjax.errors import UserError
from docjax.types import Units
from docjax.views.sections import NamedSections, RandomSections, Sections, balanced


def document(lengths, sections) -> Units:
    offsets = np.cumsum([0, *lengths])
    tokens = np.arange(offsets[-1], dtype=np.int32)
    edges = np.array([[0, 1]], np.int32)
    return Units(tokens, offsets, np.array(sections, np.int32), edges)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_views_are_the_document_in_order(count):
    generator = np.random.default_rng(0)
    for _ in range(50):
        size = int(generator.integers(count, 20))
        lengths = generator.integers(1, 30, size)
        own = document(lengths, np.sort(generator.integers(0, 6, size)))
        views = Sections(count)(own, generator)
        assert np.concatenate([v.tokens for v in views]).tolist() == own.tokens.tolist()
        assert [set(v.sections.tolist()) for v in views] == [{i} for i in range(count)]
        assert all(len(view) for view in views)


def test_a_view_begins_where_a_section_begins():
    own = document([5, 5, 5, 20, 5], [0, 0, 1, 2, 2])
    first, second = Sections(2)(own, np.random.default_rng(0))
    assert (len(first.tokens), len(second.tokens)) == (15, 25)


@pytest.mark.parametrize("count", [2, 5])
def test_500_sections_all_find_their_place(count):
    lengths = np.random.default_rng(0).integers(1, 40, 500)
    views = Sections(count)(document(lengths, range(500)), np.random.default_rng(0))
    tokens = [int(view.offsets[-1]) for view in views]
    assert sum(map(len, views)) == 500 and sum(tokens) == lengths.sum()
    assert max(tokens) - min(tokens) < 80  # two sections


def test_too_few_sections_are_cut_between_units():
    first, second = Sections(2)(
        document([4, 4, 4], [7, 7, 7]), np.random.default_rng(0)
    )
    assert sorted([len(first.tokens), len(second.tokens)]) == [4, 8]


def test_balanced_is_nearest_to_equal_sizes_of_two_groups():
    generator = np.random.default_rng(2)
    for _ in range(30):
        lengths = generator.integers(1, 50, 9)
        starts, total = np.cumsum(lengths) - lengths, int(lengths.sum())
        chosen = balanced(starts, total, 2)
        best = min(abs(starts[cut] - total / 2) for cut in range(1, 9))
        assert abs(starts[chosen[1]] - total / 2) == best
        for groups in (3, 5):
            cuts = balanced(starts, total, groups)
            assert cuts[0] == 0 and len(cuts) == groups
            assert all(a < b for a, b in itertools.pairwise(cuts))


def test_a_number_of_sections_out_of_range_is_refused():
    with pytest.raises(UserError, match="count 6.* 2 to 5"):
        Sections(6)


def test_random_sections_are_whole_distinct_and_drawn_anew():
    own = document([5, 5, 7, 3, 4], [0, 0, 1, 3, 3])
    whole = {0: 10, 1: 7, 3: 7}
    first = {
        number: own.take(np.flatnonzero(own.sections == number)) for number in whole
    }
    generator, drawn = np.random.default_rng(0), set()
    for _ in range(40):
        views = RandomSections(2)(own, generator)
        assert [set(view.sections.tolist()) for view in views] == [{0}, {1}]
        numbers = [
            number
            for view in views
            for number, section in first.items()
            if view.tokens.tolist() == section.tokens.tolist()
        ]
        assert len(numbers) == 2
        drawn.add(tuple(numbers))
    assert drawn == set(itertools.permutations(whole, 2))


def test_a_document_with_too_few_sections_to_draw_is_cut_in_groups():
    own = document([4, 4, 4], [2, 2, 2])
    drawn = RandomSections(2)(own, np.random.default_rng(0))
    cut = Sections(2)(own, np.random.default_rng(0))
    assert [v.tokens.tolist() for v in drawn] == [v.tokens.tolist() for v in cut]


class Headings(list):
    """A corpus of which views read the headings alone."""

    headings = property(iter)


ABOUT = Headings(
    [
        ["1 Introduction", "Methods", "2.1 Related work", "INTRODUCTION, again"],
        ["Introduction", "Methods"],
    ]
)


def of(row: int, own: Units) -> Units:
    return dataclasses.replace(own, documents=np.full(len(own), row))


def test_named_sections_are_those_with_the_word_in_their_heading(caplog):
    views = NamedSections(("introduction", "related work")).fitted(None, ABOUT)
    assert "1 of 2 documents lack a section named introduction or rel" in caplog.text
    own = of(0, document([5, 5, 7, 3, 4], [0, 1, 2, 2, 3]))
    first, second = views(own, np.random.default_rng(0))
    assert first.tokens.tolist() == [*range(5), *range(20, 24)]
    assert second.tokens.tolist() == [*range(10, 20)]
    assert [set(view.sections.tolist()) for view in (first, second)] == [{0}, {1}]
    lacking = of(1, document([5, 5], [0, 1]))
    cut = Sections(2)(lacking, np.random.default_rng(0))
    for view, expected in zip(views(lacking, np.random.default_rng(0)), cut):
        assert view.tokens.tolist() == expected.tokens.tolist()


def test_documents_with_too_few_sections_are_counted(caplog):
    for kind in (Sections, RandomSections):
        caplog.clear()
        with caplog.at_level("INFO"):
            views = kind(3).fitted(None, ABOUT)
        assert views == kind(3)
        assert "1 of 2 documents have fewer than 3 sections" in caplog.text
    caplog.clear()
    Sections(3).fitted(None, ABOUT, np.array([0]))
    assert not caplog.text


def test_names_that_no_document_has_are_refused():
    views = NamedSections(("claims", "description"))
    with pytest.raises(UserError, match="none of 2 documents has sections with all"):
        views.fitted(None, ABOUT)
    with pytest.raises(UserError, match="count 1: give 2 to 5"):
        NamedSections(("claims",))


def test_named_sections_of_a_corpus_are_those_with_their_texts(tmp_path):
    """Empty sections and sections that are not read leave no heading behind."""
    texts = {"Claims": "claim one. claim two.", "2 Description": "detail here."}
    sections = [
        *({"heading": "Abstract", "text": "short."}, {"heading": "Field", "text": ""}),
        *({"heading": heading, "text": text} for heading, text in texts.items()),
    ]
    path = tmp_path / "patents.jsonl"
    lines = [json.dumps({"id": str(i), "sections": sections[i:]}) for i in range(3)]
    path.write_text("\n".join(lines) + "\n")
    read = jsonl(str(path), without=("Abstract",))
    words = (
        "abstract field claims description short claim one two detail here 2".split()
    )
    tokenizer = train_words(words, least_count=1, stop_words=False)
    corpus = Corpus.build(tmp_path / "corpus", read, Sentences(), tokenizer, 99, "")
    views = NamedSections(("claims", "description")).fitted(tokenizer, corpus)
    for row in range(3):
        found = views(corpus[row], np.random.default_rng(0))
        for view, (heading, text) in zip(found, texts.items(), strict=True):
            tokens = np.concatenate(tokenizer.encode([heading, text]))
            assert view.tokens.tolist() == tokens.tolist()
