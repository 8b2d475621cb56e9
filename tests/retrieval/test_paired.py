"""Two systems, query by query: against SciPy's paired test, and degenerate cases."""

import numpy as np
import pytest
from scipy import stats

from docjax.errors import UserError
from docjax.retrieval.paired import gain


def named(values):
    return {str(i): float(value) for i, value in enumerate(values)}


def test_the_gain_is_that_of_the_paired_t_test():
    generator = np.random.default_rng(0)
    base = generator.random(60)
    better = base + generator.normal(0.05, 0.1, 60)
    found = gain(named(better), named(base))
    assert found["gain"] == pytest.approx((better - base).mean())
    assert found["gain_p"] == pytest.approx(stats.ttest_rel(better, base).pvalue)
    normal = 1.96 * (better - base).std(ddof=1) / 60**0.5
    half = (found["gain_high"] - found["gain_low"]) / 2
    assert half == pytest.approx(normal, rel=0.1)
    assert gain(named(base), named(better))["gain"] == pytest.approx(-found["gain"])


def test_equal_differences_have_no_spread():
    same, more = named([0.1, 0.4, 0.2]), named([0.6, 0.9, 0.7])
    assert gain(same, same) == {
        "gain": 0,
        "gain_low": 0,
        "gain_high": 0,
        "gain_p": 1,
    }
    found = gain(more, same)
    assert found["gain_low"] == pytest.approx(0.5) and found["gain_p"] < 1e-3


def test_one_query_is_too_few():
    with pytest.raises(UserError, match="1 query is too few to compare"):
        gain({"q": 1.0}, {"q": 0.0})
