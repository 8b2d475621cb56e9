"""Long documents: their words, and their links."""

import itertools

import pytest

from benchmarks import colde_long as long
from docjax.types import Document, Section


def papers(words: int = 1000):
    """Papers of this many words, one after the other."""
    for number in itertools.count():
        own = (f"word{number * words + i}" for i in range(words))
        yield Document(f"p{number}", (Section("All", " ".join(own)),))


def test_documents_have_the_words_in_order_and_are_linked_in_pairs():
    made = list(long.documents(papers(), 4, 2_500))
    words = [w for d in made for s in d.sections for w in s.text.split()]
    assert words == [f"word{i}" for i in range(10_000)]
    assert {len(each.sections) for each in made} == {long.SECTIONS}
    assert [each.links for each in made] == [("d1",), ("d0",), ("d3",), ("d2",)]


def test_too_few_words_are_told():
    few = itertools.islice(papers(), 30)
    with pytest.raises(SystemExit, match="words for 1 of 2 documents"):
        list(long.documents(few, 2, 23_629))
