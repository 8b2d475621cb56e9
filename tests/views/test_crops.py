"""Random crops: their lengths, their places, what is deleted, and impossible values."""

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.types import Units
from docjax.views.crops import Crops


def document(count: int, unit: int = 10) -> Units:
    """Token i is i, in units of 10 tokens with a section each."""
    starts = np.arange(0, count, unit)
    return Units(
        np.arange(count, dtype=np.int32),
        np.append(starts, count),
        np.arange(len(starts), dtype=np.int32),
        np.zeros((0, 2), np.int32),
        np.full(len(starts), 7),
    )


def test_a_crop_is_a_run_of_tokens_of_the_length_that_is_asked_for():
    views = Crops(span=100, shortest=0.2, longest=0.4, deletion=0.0)
    lengths, ends = [], []
    for seed in range(400):
        pair = views(document(300), np.random.default_rng(seed))
        for view in pair:
            np.testing.assert_array_equal(np.diff(view.tokens), 1)
            assert view.offsets.tolist() == [0, len(view.tokens)] and len(view) == 1
            assert view.sections == view.tokens[0] // 10 and view.documents == 7
            lengths.append(len(view.tokens))
        ends += [min(view.tokens[0] for view in pair)]
        assert max(v.tokens[-1] for v in pair) - min(v.tokens[0] for v in pair) < 100
    assert set(lengths) == set(range(20, 40))
    assert abs(np.mean(lengths) - 29.5) < 0.6  # uniform
    assert min(ends) < 10 and max(ends) > 240  # the span may be anywhere


def test_the_crops_are_independent():
    views = Crops(span=100, deletion=0.0)
    pairs = [views(document(100), np.random.default_rng(seed)) for seed in range(600)]
    sizes = np.array([[len(view.tokens) for view in pair] for pair in pairs])
    assert abs(np.corrcoef(sizes.T)[0, 1]) < 0.15


def test_a_tenth_of_the_tokens_is_deleted():
    whole = Crops(span=1000, shortest=1.0, longest=1.0, deletion=0.1)
    kept = [
        len(view.tokens)
        for seed in range(50)
        for view in whole(document(1000), np.random.default_rng(seed))
    ]
    assert abs(np.mean(kept) - 900) < 5
    view = whole(document(1000), np.random.default_rng(0))[0]
    assert (np.diff(view.tokens) > 0).all()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_short_document_keeps_a_token(count):
    views = Crops(deletion=0.99)
    for seed in range(50):
        for view in views(document(count), np.random.default_rng(seed)):
            assert len(view.tokens) >= 1


def test_a_document_without_tokens_stays_empty():
    empty = document(1)
    empty = Units(empty.tokens[:0], np.array([0, 0]), empty.sections, empty.edges)
    for view in Crops()(empty, np.random.default_rng(0)):
        assert view.offsets.tolist() == [0, 0] and view.sections.tolist() == [0]


@pytest.mark.parametrize(
    "keywords, words",
    [
        (dict(span=0), "span 0"),
        (dict(shortest=0.0), "shortest 0.0"),
        (dict(shortest=0.6), "shortest 0.6 and longest 0.5"),
        (dict(longest=1.5), "longest 1.5"),
        (dict(deletion=1.0), "deletion 1.0"),
    ],
)
def test_impossible_values_are_refused(keywords, words):
    with pytest.raises(UserError, match=words):
        Crops(**keywords)
