import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.matching import matching

TUNING = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False])


def test_the_threshold_is_that_of_the_tuning_pairs():
    test = np.array([0.7, 0.6, 0.52, 0.2]), np.array([True, False, True, True])
    found = matching(TUNING, test)
    assert found["threshold"] == pytest.approx(0.55)  # between 0.3 and 0.8
    assert found["f1"] == pytest.approx(2 * 1 / (2 + 3))
    assert found["accuracy"] == 0.25


def test_the_best_f1_decides_not_the_accuracy():
    cosines = np.linspace(0, 1, 11)
    similar = np.array([False, True, False, True] + [True] * 7)
    found = matching((cosines, similar), (cosines, similar))
    assert 0 <= found["threshold"] < 0.1
    assert found["f1"] == pytest.approx(2 * 9 / (10 + 9))


@pytest.mark.parametrize("labels", [[], [True, True], [False]])
def test_pairs_of_one_kind_are_refused(labels):
    part = np.zeros(len(labels)), np.array(labels, bool)
    for parts in ((part, TUNING), (TUNING, part)):
        with pytest.raises(UserError, match=f"{len(labels)} .* pairs, .* both kinds"):
            matching(*parts)
