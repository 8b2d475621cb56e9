import gzip

import ir_measures
import pytest

from docjax.errors import UserError
from docjax.retrieval import trec
from docjax.types import Document

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
    documents = [Document("a", ()), Document(name, ())]
    with pytest.raises(UserError, match="q.jsonl: id .* white space"):
        list(trec.checked(documents, "q.jsonl"))
    with pytest.raises(UserError, match="id .* white space"):
        list(trec.lines({"q": {name: 1.0}}, "mine"))


def test_a_written_run_is_read_back(tmp_path):
    trec.write(RUN, tmp_path / "a.trec", "mine")
    found = trec.read(tmp_path / "a.trec")
    assert found == {query: pytest.approx(scores) for query, scores in RUN.items()}
    (tmp_path / "b.trec").write_text("q Q0 a 1 0.5 x\n\nq\tQ0\tb\t2\t1.5\tx\n")
    assert list(trec.read(tmp_path / "b.trec")["q"]) == ["b", "a"]  # by score
    packed = gzip.compress((tmp_path / "a.trec").read_bytes())
    (tmp_path / "a.trec.gz").write_bytes(packed)
    assert trec.read(tmp_path / "a.trec.gz") == found


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "empty; a run has lines of query, Q0"),
        ("q Q0 a 1 0.5\n", "line 1: 'q Q0 a 1 0.5' is not query, Q0, document"),
        ("q Q0 a 1 0.5 x\nq Q0 b 2 high x\n", "line 2: .* is not query"),
        ("q Q0 a 1 nan x\n", "score nan is not a finite number: mend"),
        (
            "q Q0 a 1 1 x\nq Q0 a 2 0 x\n",
            "line 2: query 'q' has the document 'a' twice",
        ),
        (None, "cannot be read"),
    ],
)
def test_a_bad_run_is_one_line(tmp_path, text, error):
    file = tmp_path / "a.trec"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=error):
        trec.read(file)


def test_a_run_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.trec").write_text("q Q0 a 1 1 x\n\nq Q0 b 2 0 x\n", "utf-8-sig")
    assert trec.read(tmp_path / "a.trec") == {"q": {"a": 1.0, "b": 0.0}}
