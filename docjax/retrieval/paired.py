"""Is one system better than another? Compared query by query."""

from collections.abc import Mapping

import numpy as np

from docjax.errors import UserError

RESAMPLES = 10_000
DRAWN = 10_000_000  # resampled differences that are held at once


def gain(better: Mapping[str, float], base: Mapping[str, float]) -> dict[str, float]:
    """How much a metric of the same queries is higher in `better` than in `base`.

    `gain` is the mean difference, `gain_low` and `gain_high` the 95 % interval of a
    bootstrap over the queries, `gain_p` the two-sided p-value of the paired t-test (1
    if all differences are 0). Raises UserError for fewer than two queries.
    """
    from scipy import stats  # loads slowly

    queries = list(better)
    if len(queries) < 2:
        raise UserError(f"{len(queries)} query is too few to compare systems: give 2")
    differences = np.array([better[query] - base[query] for query in queries])
    draws = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=max(1, DRAWN // len(queries)),
        method="percentile",
        rng=np.random.default_rng(0),
    )
    p = float(abs(differences[0]) < 1e-12)
    if np.ptp(differences) >= 1e-12:  # else the t statistic would divide by 0
        p = stats.ttest_1samp(differences, 0).pvalue
    return {
        "gain": float(differences.mean()),
        "gain_low": float(draws.confidence_interval.low),
        "gain_high": float(draws.confidence_interval.high),
        "gain_p": float(p),
    }
