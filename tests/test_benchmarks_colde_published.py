"""CoLDE's table, and what its figures say of each other."""

import math
import sys

import numpy as np
import pytest

from benchmarks import colde_published
from benchmarks.colde_published import consistency
from docjax.tasks.matching import measures


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


def test_the_table_says_where_it_contradicts_itself(monkeypatch, capsys):
    """The figures of the specification, section 3.9."""
    monkeypatch.setattr(sys, "argv", ["colde_published"])
    colde_published.main()
    _, _, *lines = capsys.readouterr().out.splitlines()
    found = {}
    for line in lines:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found[name] = [float(cell) if cell else math.nan for cell in cells]
    assert len(found) == 30
    for row, printed, exchanged in (
        ("AAN: CoLDE", 0.480, 0.504),
        ("WIKI: CoLDE", 0.559, 0.499),
        ("WIKI: CoLDE w/o CL", 0.961, 0.520),
        ("AAN: CoLDE w/o LSTM", 0.512, 0.500),
        ("AAN: S-LONG", 0.432, 0.493),
        ("WIKI: S-LONG", 0.542, 0.500),
        ("PAT: S-LONG", 0.852, 0.536),
    ):
        assert found[row][4] == pytest.approx(printed, abs=6e-4), row
        assert found[row][5] == pytest.approx(exchanged, abs=6e-4), row
    for model in ("HAN", "ARC-I", "SMITH"):
        assert found[f"AAN: {model}"][4] == pytest.approx(0.5, abs=6e-4)
    assert found["AAN: DSSM"][6] == pytest.approx(0.6959, abs=1e-4)
    assert math.isnan(found["AAN: HAN"][6])


def test_an_unknown_data_set_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["colde_published", "NYT"])
    with pytest.raises(SystemExit):
        colde_published.main()
    assert "no data set NYT: give one of AAN, WIKI, PAT" in capsys.readouterr().err
