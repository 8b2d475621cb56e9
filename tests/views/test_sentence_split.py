"""The coin-flip split: disjoint, complete, in order, binomial, no side empty."""

import math
from collections import Counter

import numpy as np
import pytest

from docjax.data.tokenizer import load_tokenizer, train_tokenizer
from docjax.data.units import Sentences, tokenize
from docjax.types import Document, Section, Units
from docjax.views.halves import Halves
from docjax.views.one_against_rest import OneAgainstRest
from docjax.views.sections import RandomSections, Sections
from docjax.views.sentence_split import SentenceSplit


def document(count: int) -> Units:
    numbers = np.arange(count, dtype=np.int32)
    return Units(numbers, np.arange(count + 1), numbers, np.zeros((0, 2), np.int32))


@pytest.mark.parametrize("count", [2, 3, 50])
def test_the_views_are_disjoint_complete_in_order_and_never_empty(count):
    generator = np.random.default_rng(0)
    for _ in range(200):
        views = SentenceSplit()(document(count), generator)
        own = [view.tokens.tolist() for view in views]
        assert all(own) and all(side == sorted(side) for side in own)
        assert sorted(own[0] + own[1]) == list(range(count))


def test_the_sizes_are_binomial_given_that_no_side_is_empty():
    generator, count, draws = np.random.default_rng(1), 5, 6000
    sizes = Counter(
        len(SentenceSplit()(document(count), generator)[0]) for _ in range(draws)
    )
    for size in range(1, count):
        share = math.comb(count, size) / (2**count - 2)
        deviation = (draws * share * (1 - share)) ** 0.5
        assert abs(sizes[size] - draws * share) < 5 * deviation
    assert set(sizes) == {1, 2, 3, 4}


@pytest.mark.parametrize("text", ["word " * 200_000, "abcdefghij" * 100_000])
def test_a_million_characters_without_the_end_of_a_sentence_are_split_all_the_same(
    text,
):
    """Units are what fits into a segment: both views are within the limit, at once."""
    tokenizer = train_tokenizer(["some words of a text"] * 9, 300)
    long = Document("a", (Section("", text),))
    [units] = tokenize([long], Sentences(), tokenizer, 512)
    assert len(units) > 700 and units.lengths.max() == 510
    views = SentenceSplit()(units, np.random.default_rng(0))
    assert sum(len(view.tokens) for view in views) == len(units.tokens)
    assert all(len(view) > 300 for view in views)


@pytest.mark.parametrize(
    "views",
    [SentenceSplit(), Halves(), OneAgainstRest(), Sections(), RandomSections()],
    ids=repr,
)
def test_a_sentence_that_wordpiece_removes_is_no_view(minilm, views):
    """BERT's tokenizers give no token for a zero-width space or a byte order mark."""
    tokenizer = load_tokenizer(minilm)
    blank = Section("\u200b", "\ufeff\n\n\u200b")
    two, one = (
        Document("a", (Section("", text), blank))
        for text in ("One sentence.\n\n\u200b\n\nAnother.", "One sentence.\n\n\u200b")
    )
    tokenized = tokenize([two, one], Sentences(), tokenizer, 128)
    assert [units.lengths.tolist() for units in tokenized] == [[3, 2], [3]]
    assert len(tokenized[1]) < views.least_units  # the document is not used
    generator = np.random.default_rng(0)
    for _ in range(20):
        assert all(len(view.tokens) for view in views(tokenized[0], generator))
