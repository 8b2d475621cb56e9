"""The papers' claims follow from their tables."""

import pytest

from benchmarks.docsplit_published import (
    DATASETS,
    FEW,
    FULL,
    LINKS,
    REDUNDANCY,
    average_improvement,
)
from docjax.tasks import redundancy


@pytest.mark.parametrize(
    "table, ours, baseline, claimed",
    [
        (FULL, "DocSplit", "SimCSE", 3.9),
        (FULL, "DocSplit_long", "Longformer", 9.4),
        (FEW, "DocSplit", "SimCSE", 12.0),
        (FEW, "DocSplit_long", "Longformer", 24.3),
    ],
)
def test_claims_are_means_of_ratios(table, ours, baseline, claimed):
    assert (
        round(average_improvement(*(table["F1"][x] for x in (ours, baseline))), 1)
        == claimed
    )


def test_the_claim_over_instructor_leaves_20_newsgroups_out():
    ours, baseline = FULL["F1"]["DocSplit"], FULL["F1"]["INSTRUCTOR"]
    assert round(average_improvement(ours, baseline, ["20News"]), 1) == 3.4
    assert round(average_improvement(ours, baseline), 2) == 1.71


def test_different_datasets_are_refused():
    with pytest.raises(ValueError, match="scores of a and of b without none"):
        average_improvement({"a": 1.0}, {"b": 1.0})
    with pytest.raises(ValueError, match="without a"):
        average_improvement({"a": 1.0}, {"a": 1.0}, ["a"])


def test_every_model_has_all_figures():
    models = set(LINKS)
    assert {"INSTRUCTOR", "Longformer", "BigBird", "DocSplit_long"} < models
    for table in (FULL, FEW):
        assert set(table["Acc"]) == set(table["F1"]) == models
    assert FULL["Acc"]["DocSplit"]["FakeNews"] == 60.04
    assert FEW["F1"]["DocSplit_long"]["BBC"] == 86.66


def test_published_bins_are_those_of_the_task():
    assert set(REDUNDANCY) == set(DATASETS)
    for row in REDUNDANCY.values():
        assert tuple(row) == (*redundancy.BINS, redundancy.ALL)
