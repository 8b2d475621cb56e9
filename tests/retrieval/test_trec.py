import ir_measures
import pytest

from docjax.errors import UserError
from docjax.retrieval import trec

RUN = {"q": {"b": 0.1 + 0.2, "a": -1e-7}, "r": {"b": 2.0}}


def test_a_written_run_is_read_back_by_others(tmp_path):
    trec.write(RUN, tmp_path / "a.trec", "mine")
    found = list(ir_measures.read_trec_run(str(tmp_path / "a.trec")))
    assert [(one.query_id, one.doc_id) for one in found] == [
        ("q", "b"),
        ("q", "a"),
        ("r", "b"),
    ]
    assert [one.score for one in found] == pytest.approx([0.3, -1e-7, 2.0], rel=1e-8)
    first = (tmp_path / "a.trec").read_text().splitlines()[0].split()
    assert [*first[:4], first[5]] == ["q", "Q0", "b", "1", "mine"]


def test_a_run_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder: cannot be written"):
        trec.write(RUN, tmp_path / "folder", "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["a b", "", "\t"])
def test_an_id_that_the_format_cannot_hold_is_refused(name):
    with pytest.raises(UserError, match="no room for white space"):
        trec.check_id(name)
