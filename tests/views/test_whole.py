"""The document as its only view."""

import numpy as np

from docjax.types import DOCUMENT, Units
from docjax.views.whole import Whole


def test_the_only_view_is_the_document():
    numbers = np.arange(3, dtype=np.int32)
    one = Units(numbers, np.arange(4), numbers, np.zeros((0, 2), np.int32))
    views = Whole()(one, np.random.default_rng(0))
    assert views == (one,)
    assert (Whole.kinds, Whole.least_units) == ((DOCUMENT,), 1)
