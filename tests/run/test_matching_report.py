import dataclasses

import pytest

from docjax.explain.run_page import Analyses, Report, write
from docjax.run.matching_report import published, table


def test_no_models_make_no_table():
    assert table({}) == {}


def test_a_run_of_an_older_docjax_shows_what_it_has():
    old = dict(f1=0.5, accuracy=0.25, threshold=0.3)
    assert table({"after training": old}) == {
        "P": {},
        "R": {},
        "F1": {"after training, above 0.30 (chosen)": 0.5},
        "Acc": {"after training, above 0.30 (chosen)": 0.25},
    }


def test_the_published_table_says_where_it_contradicts_itself():
    """The figures of the specification, section 3.9."""
    found = published()
    assert len(found["P"]) == 30
    for row, printed, exchanged in (
        ("AAN: CoLDE", 0.480, 0.504),
        ("WIKI: CoLDE", 0.559, 0.499),
        ("WIKI: CoLDE w/o CL", 0.961, 0.520),
        ("AAN: CoLDE w/o LSTM", 0.512, 0.500),
        ("AAN: S-LONG", 0.432, 0.493),
        ("WIKI: S-LONG", 0.542, 0.500),
        ("PAT: S-LONG", 0.852, 0.536),
    ):
        assert found["similar pairs"][row] == pytest.approx(printed, abs=6e-4), row
        assert found["P and R exchanged"][row] == pytest.approx(exchanged, abs=6e-4)
    for model in ("HAN", "ARC-I", "SMITH"):
        assert found["similar pairs"][f"AAN: {model}"] == pytest.approx(0.5, abs=6e-4)
    assert found["F1 by P and R"]["AAN: DSSM"] == pytest.approx(0.6959, abs=5e-5)
    assert "AAN: HAN" not in found["F1 by P and R"]


def test_the_page_shows_both_tables(tmp_path):
    ours = table({"after training": dict(f1=0.7321, accuracy=0.5, threshold=0.3)})
    empty = {field.name: {} for field in dataclasses.fields(Analyses)}
    pairs = dict(pairs=ours, published_pairs=published())
    analyses = Analyses(**empty | dict(curve=None, bars=None) | pairs)
    report = Report(name="colde", config={}, analyses=analyses)
    page = write(tmp_path, report).read_text("utf-8")
    for words in ("0.7321", "above 0.30 (chosen)", "WIKI: S-LONG", "0.8006", "0.6959"):
        assert words in page, words
    assert page.count("not finite") == 0 and "<details><summary>Published" in page
