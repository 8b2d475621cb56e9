import math

import numpy as np
import pytest

from docjax.tasks.matching import measures
from docjax.tasks.matching_consistency import consistency


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_the_share_of_similar_pairs_is_found_again(share):
    generator = np.random.default_rng(0)
    similar = generator.random(1000) < share
    predicted = similar ^ (generator.random(1000) < 0.3)
    figures = measures(similar, predicted)
    found = consistency(**figures)
    assert found.similar == pytest.approx(similar.mean())
    assert found.fits and found.f1 == pytest.approx(figures["f1"])
    exchanged = figures | dict(precision=figures["recall"], recall=figures["precision"])
    assert consistency(**exchanged).exchanged == pytest.approx(similar.mean())
    assert consistency(**exchanged).fits


def test_rounding_to_four_digits_still_fits():
    generator = np.random.default_rng(0)
    for _ in range(300):
        precision, recall = generator.uniform(0.01, 1, 2)
        f1 = 2 * precision * recall / (precision + recall)
        rounded = [round(value, 4) for value in (precision, recall, f1)]
        assert consistency(*rounded, accuracy=0.5).fits
        assert not consistency(*rounded[:2], rounded[2] - 4e-4, 0.5).fits


def test_figures_that_say_nothing_of_the_share_are_nan():
    assert math.isnan(consistency(1.0, 1.0, 1.0, 1.0).similar)  # nothing is wrong
    nothing = consistency(0.0, 0.0, 0.0, 0.5)
    assert math.isnan(nothing.similar) and nothing.fits


def test_percent_are_refused():
    with pytest.raises(ValueError, match="71.9.* give fractions from 0 to 1"):
        consistency(71.99, 75.62, 73.44, 74.2)
