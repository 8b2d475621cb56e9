"""BEIR folders: which files, which splits, and every mistake in them."""

import json
import lzma
import shutil
from pathlib import Path

import pytest

from docjax.errors import UserError
from docjax.retrieval import beir
from docjax.retrieval.collection import (
    of_documents,
    read,
    read_judged,
    read_test,
    to_train,
    training_files,
)
from docjax.types import Document, Section

TREC = Path(__file__).parents[3] / "shared/data/trec_topics_qrels"
HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path):
    for name, texts in (("corpus", "abc"), ("queries", "qrst")):
        lines = [json.dumps({"_id": one, "text": f"text of {one}"}) for one in texts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels").mkdir()
    qrels(tmp_path, "test", "q\ta\t2\nq\tb\t0\nr\tb\t0\n")
    return tmp_path


def qrels(folder, name, lines):
    (folder / "qrels" / f"{name}.tsv").write_text(HEADER + lines)


def test_queries_with_an_answer_are_the_ones_to_judge(folder):
    found = read(folder)
    assert found.test == {"q": {"a": 2, "b": 0}} and found.tuning == {}
    assert found.queries["s"] == "text of s"
    assert [one.id for one in found.documents(0.0)] == ["a", "b", "c"]


def test_a_tuning_split_shares_no_query_with_the_test(folder, caplog):
    qrels(folder, "dev", "q\tc\t1\nt\tc\t1\n")
    assert read(folder).tuning == {"t": {"c": 1}}
    assert "1 of 2 queries that could choose are test queries" in caplog.text


def test_each_tenth_training_query_chooses_without_a_split_for_it(folder):
    names = [f"n{i}" for i in range(20)]
    lines = (json.dumps({"_id": name, "text": name}) for name in ["q", "r", *names])
    (folder / "queries.jsonl").write_text("\n".join(lines))
    qrels(folder, "train", "".join(f"{name}\ta\t1\n" for name in names))
    assert set(read(folder).tuning) == {"n9", "n19"}
    assert set(to_train(folder, None)[1]) == set(names) - {"n9", "n19"}
    qrels(folder, "dev", "r\tc\t1\n")
    assert set(read(folder).tuning) == {"r"}
    assert set(to_train(folder, None)[1]) == set(names)


@pytest.mark.parametrize(("count", "choosing"), [(9, 0), (1000, 100), (3670, 100)])
def test_at_most_a_hundred_training_queries_choose(folder, count, choosing):
    names = [f"n{i}" for i in range(count)]
    lines = (json.dumps({"_id": name, "text": name}) for name in ["q", "r", *names])
    (folder / "queries.jsonl").write_text("\n".join(lines))
    qrels(folder, "train", "".join(f"{name}\ta\t1\n" for name in names))
    chosen = read(folder).tuning
    assert len(chosen) <= choosing and len(chosen) >= 0.9 * choosing
    assert len(to_train(folder, None)[1]) == count - len(chosen)


def test_queries_that_test_or_choose_do_not_train(folder, caplog):
    qrels(folder, "train", "q\ta\t1\ns\ta\t1\nt\tb\t1\n")
    qrels(folder, "dev", "t\tc\t1\n")
    assert to_train(folder, None)[1] == {"s": {"a": 1}}
    assert "2 of 3 training queries also test or choose" in caplog.text
    qrels(folder, "train", "q\ta\t1\n")
    with pytest.raises(UserError, match="all 1 training queries are test queries or"):
        to_train(folder, None)


def test_a_collection_of_training_queries_alone_is_told_what_its_scores_say(
    folder, caplog
):
    (folder / "qrels/test.tsv").rename(folder / "qrels/train.tsv")
    assert to_train(folder, None)[1] == read(folder).test
    assert "the queries that train also test" in caplog.text


def test_judgements_need_no_header(folder):
    (folder / "qrels" / "test.tsv").write_text("q\ta\t1\nr\tb\t1\n")
    assert read(folder).test == {"q": {"a": 1}, "r": {"b": 1}}
    (folder / "qrels" / "test.tsv").write_text("q\ta\t1 \nr\tb\t1\n")
    assert set(read(folder).test) == {"q", "r"}
    (folder / "qrels" / "test.tsv").write_text("q\ta\t1.5x\nr\tb\t1\n")
    with pytest.raises(UserError, match="line 1: 'q.*1.5x' is not"):
        read(folder)


@pytest.mark.parametrize("score", ["nan", "NaN", "inf", "null", "high"])
def test_a_first_judgement_without_a_number_is_no_header(folder, score):
    (folder / "qrels" / "test.tsv").write_text(f"q\ta\t{score}\nr\tb\t1\n")
    with pytest.raises(UserError, match=f"line 1: 'q.*{score}' is not"):
        read(folder)


def test_judgements_of_trec_have_no_header(folder):
    (folder / "qrels/test.tsv").unlink()
    (folder / "qrels/test.qrels").write_text("q 0 a score\nr 0 b 1\n")
    with pytest.raises(UserError, match="line 1: 'q 0 a score' is not"):
        read(folder)


def test_a_document_that_answers_in_one_split_answers_in_all(folder):
    """Else `docjax mine` would take an answer for a negative."""
    qrels(folder, "train", "q\ta\t0\nq\tc\t1\n")
    assert read_judged(folder, 0.0).qrels["q"] == {"a": 2, "b": 0, "c": 1}


def test_links_to_no_document_are_counted(caplog):
    one = Document("a", (Section("", "x"),), query="q", links=("b", "gone", "lost"))
    found = of_documents([one, Document("b", (Section("", "y"),))])
    assert found == (["a", "b"], {"a": "q"}, {"a": {"b": 1, "a": 2}})
    assert "2 of 3 links of documents with a query name none of the 2" in caplog.text


def test_a_fold_without_a_judged_query_is_one_line(folder):
    (folder / "folds.json").write_text('[["q"], ["r"], ["s"]]')
    with pytest.raises(UserError, match="fold 2 has no judged query: give another"):
        read(folder, 2)


def test_queries_without_an_answer_are_counted_once(folder, caplog):
    for _ in range(3):
        read(folder)
    assert caplog.text.count("judgements test: 1 of 2 queries have no document") == 1
    qrels(folder, "train", "s\ta\t1\nt\ta\t0\nr\ta\t0\n")
    read_judged(folder, 0.0)
    assert "judgements train: 2 of 3 queries have no document with" in caplog.text


def test_queries_that_no_split_judges_are_counted_once(folder, caplog):
    qrels(folder, "train", "s\ta\t1\n")
    for _ in range(3):
        read(folder)
        read_judged(folder, 0.0)
    assert caplog.text.count(f"{folder}: 1 of 4 queries have no judgement in any") == 1


def test_a_split_that_is_not_needed_is_not_read(folder):
    qrels(folder, "dev", "t\tc\t1\n")
    found = read(folder)
    qrels(folder, "train", "no judgement\n")
    assert read(folder).tuning == found.tuning == {"t": {"c": 1}}
    with pytest.raises(UserError, match="train.tsv, line 2: 'no judgement' is not"):
        read_judged(folder, 0.0)


def test_test_judgements_need_neither_corpus_nor_queries(folder):
    qrels(folder, "test", "".join(f"{query}\ta\t1\n" for query in "qrst"))
    expected = [read(folder).test, *(read(folder, fold).test for fold in range(4))]
    (folder / "corpus.jsonl").unlink()
    (folder / "queries.jsonl").unlink()
    assert [read_test(folder, fold) for fold in (None, *range(4))] == expected
    (folder / "qrels/test.tsv").write_text("q\ta\t0\n")
    with pytest.raises(UserError, match="judgements test: no query has a document"):
        read_test(folder)


def test_test_judgements_of_no_folder_are_told(tmp_path):
    with pytest.raises(UserError, match="gone: no such folder; give the folder of a"):
        read_test(tmp_path / "gone")


def test_judgements_of_trec_are_read_without_blank_lines(folder):
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels" / "test.qrels").write_text("q 0 a 2\n\nq 0 b 0\nr\t0\tb\t1\n \n")
    assert read(folder).test == {"q": {"a": 2, "b": 0}, "r": {"b": 1}}


def test_a_single_split_is_the_one_that_is_judged(folder):
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "all.tsv")
    assert set(read(folder).test) == {"q"}


def test_one_split_or_all_of_them_are_read_as_asked(folder):
    qrels(folder, "train", "q\tc\t1\ns\ta\t1\nt\ta\t0\n")
    assert to_train(folder, None) == ({"s": "text of s"}, {"s": {"a": 1}})
    names = [file.name for file in training_files(folder, None)]
    assert names == ["queries.jsonl", "train.tsv", "test.tsv"]
    assert read_judged(folder, 0.0).qrels["q"] == {"a": 2, "b": 0, "c": 1}


def test_a_split_that_is_missing_or_empty_is_named(folder):
    for asked in (to_train, training_files):
        with pytest.raises(
            UserError, match=r"needs .*train; it has test: add .*train\.tsv"
        ):
            asked(folder, None)
    qrels(folder, "train", "q\tc\t0\n")
    with pytest.raises(UserError, match="judgements train: no query has a document"):
        to_train(folder, None)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("qrels/test.tsv", HEADER + "q a 1\n", r"test\.tsv, line 2: 'q a 1' is not"),
        ("qrels/test.tsv", HEADER + "q\ta\tx\n", r"test\.tsv, line 2: .* whole score"),
        (
            "qrels/test.tsv",
            HEADER + "x\ta\t1\n",
            "line 2: no query has the id 'x': add the query",
        ),
        (
            "qrels/test.tsv",
            HEADER + "q\ta\t0\n",
            "no query has a document with score 1",
        ),
        (
            "qrels/dev.qrels",
            "q a 1\n",
            r"dev\.qrels, line 1: .* query-id, 0, corpus-id",
        ),
        ("qrels/test.tsv", "q\ta\t2\nq\ta\t2\n", "line 2: query 'q' .* before: remove"),
        ("qrels/test.tsv", f"q\ta\t{1 << 31}\n", "2147483648' is not query-id, corpus"),
        ("qrels/test.tsv", "q 0 a 1\n", r"mend the line, or rename .* to \.qrels"),
        ("corpus.jsonl.gz", "", "2 files are called corpus.jsonl"),
        (
            "queries.jsonl",
            '{"_id": "q", "text": ""}',
            r"queries\.jsonl, line 1: empty .*mend this query, or take it out$",
        ),
    ],
)
def test_a_mistake_names_file_and_line(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(UserError, match=message):
        read(folder)


def test_judgements_of_other_bytes_than_utf_8_are_told(folder):
    (folder / "qrels" / "test.tsv").write_bytes(b"q\ta\xff\t1\n")
    with pytest.raises(UserError, match=r"test\.tsv, line 1: invalid UTF-8"):
        read(folder)


def test_what_is_missing_is_named(folder):
    (folder / "qrels" / "test.tsv").unlink()
    with pytest.raises(
        UserError,
        match=r"needs judgements test.* other split; it has none: add qrels/test\.tsv or",
    ):
        read(folder)
    (folder / "queries.jsonl").write_text("")
    with pytest.raises(UserError, match=r"queries\.jsonl: no queries; add one or more"):
        read(folder)
    (folder / "queries.jsonl").unlink()
    with pytest.raises(UserError, match=r"0 files are called queries\.jsonl"):
        read(folder)


def test_tables_are_read_as_well(folder):
    for name in ("corpus", "queries"):
        (folder / f"{name}.jsonl").unlink()
    (folder / "corpus.tsv").write_text("a\turl\ttitle\ttext of a\nb\t\t\tb\n")
    (folder / "queries.tsv").write_text("q\tfirst\nr\tsecond\n")
    found = read(folder)
    assert found.queries == {"q": "first", "r": "second"}
    assert [one.title for one in found.documents(0.0)] == ["title", ""]
    (folder / "corpus.jsonl").write_text("{}")
    with pytest.raises(UserError, match=r"2 files are called corpus\.jsonl or"):
        read(folder)


def test_a_collection_may_be_csv_and_json(folder):
    for name in ("corpus", "queries"):
        (folder / f"{name}.jsonl").unlink()
    (folder / "corpus.csv").write_text("pid,passage\na,text of a\nb,text of b\n")
    queries = [{"qid": "q", "query": "first"}, {"qid": "r", "query": "second"}]
    (folder / "queries.json").write_text(json.dumps(queries))
    found = read(folder)
    assert found.queries == {"q": "first", "r": "second"}
    assert [one.id for one in found.documents(0.0)] == ["a", "b"]


def test_files_of_trec_are_read_compressed(folder):
    (folder / "queries.jsonl").unlink()
    topic = "<top>\n<num> Number: q\n<title> text of q\n<desc> x\n</top>\n"
    with lzma.open(folder / "queries.txt.xz", "wt") as file:
        file.write(topic)
    (folder / "qrels/test.tsv").unlink()
    with lzma.open(folder / "qrels/test.qrels.xz", "wt") as file:
        file.write("q 0 a 2\nq 0 b -1\n")
    found = read(folder)
    assert found.queries == {"q": "text of q"} and found.test == {
        "q": {"a": 2, "b": -1}
    }


def test_folds_of_the_queries_take_turns(folder):
    qrels(folder, "test", "".join(f"{query}\ta\t1\n" for query in "qrst"))
    (folder / "folds.json").write_text('[["q"], ["r", "unjudged"], ["s"], ["t"]]')
    assert read(folder).folds == [["q"], ["r"], ["s"], ["t"]]
    found = read(folder, fold=0)
    assert (set(found.test), set(found.tuning)) == ({"q"}, {"r"})
    assert set(to_train(folder, 0)[1]) == {"s", "t"}
    names = [file.name for file in training_files(folder, 0)]
    assert names == ["queries.jsonl", "test.tsv", "folds.json"]
    (folder / "folds.json").write_text('[["q"], ["r"], ["s"]]')
    with pytest.raises(UserError, match="1 of 4 judged queries are in no fold, 't'"):
        read(folder)
    (folder / "folds.json").unlink()
    found, trained = read(folder, fold=0), set(to_train(folder, 0)[1])
    assert trained | {*found.test, *found.tuning} == set("qrst")
    assert not trained & {*found.test, *found.tuning}
    with pytest.raises(UserError, match="fold 4 of 4 folds"):
        read(folder, fold=4)


def test_a_corpus_without_documents_is_named(tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(UserError, match=r"none\.jsonl: empty corpus"):
        list(beir.read_documents(str(tmp_path / "none.jsonl")))


@pytest.mark.skipif(not TREC.exists(), reason="needs judgements of TREC")
def test_judgements_and_topics_of_trec_and_ms_marco_are_read(tmp_path):
    for year in ("19", "20"):
        folder = tmp_path / year
        (folder / "qrels").mkdir(parents=True)
        (folder / "corpus.tsv").write_text("D1\turl\ttitle\ttext\n")
        topics = "topics.dl20.txt.xz" if year == "20" else "topics.dl19-doc.txt.xz"
        shutil.copy(TREC / topics, folder / "queries.tsv.xz")
        qrels = TREC / f"qrels.dl{year}-doc.txt.xz"
        shutil.copy(qrels, folder / "qrels/test.qrels.xz")
    assert len(read(tmp_path / "19").test) == 43
    assert len(read(tmp_path / "20").test) == 45
