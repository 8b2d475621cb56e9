"""Queries as examples: which documents answer them, and which are their negatives."""

import json

import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.examples import Examples, Known
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Passages, Whole
from docjax.errors import UserError
from docjax.objectives.infonce import candidates_of
from docjax.retrieval import judged_queries, negatives
from docjax.retrieval.judged_queries import JudgedQueries
from docjax.types import DOCUMENT, QUERY, Document, Section, Targets

TEXTS = {
    "a": "Bread is baked in an oven.",
    "b": "An oven bakes soup, too.",
    "c": "Rockets fly to the moon.",
    "d": "The moon has no oven.",
    "e": "Bread for the moon.",
}
OWN = {  # query and links of documents
    "a": ("bread oven", ("b", "gone")),
    "c": ("rockets moon", ("e",)),
    "e": ("bread moon", ("a",)),
}


BEIR_QUERIES = {"q": "baked things", "r": "space", "s": "soup"}


def documents(own=OWN) -> list[Document]:
    return [
        Document(
            name,
            (Section("", text),),
            query=own.get(name, (None,))[0],
            links=own.get(name, (None, ()))[1],
        )
        for name, text in TEXTS.items()
    ]


@pytest.fixture
def known(tmp_path):
    """What a run knows: documents a to d are trained on, e is a test document."""

    def make(examples: JudgedQueries, given=None, trained=range(4)) -> Known:
        given = documents() if given is None else given
        source = lambda: iter(given)
        tokenizer = train_tokenizer(list(TEXTS.values()), 270)
        build = lambda name, read, units: Corpus.build(
            tmp_path / name, read, units, tokenizer, 64, repr(examples)
        )
        return Known(
            run=tmp_path,
            source=source,
            corpus=build("corpus", source(), Passages()),
            queries=build("queries", examples.queries(source), Whole()),
            documents=np.array(trained),
            labels=np.arange(5),
        )

    return make


@pytest.fixture
def beir(tmp_path):
    """A folder whose training queries are q and r; s is a query of the test."""
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", TEXTS), ("queries", BEIR_QUERIES)):
        lines = [json.dumps({"_id": n, "text": text}) for n, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    train = "q\ta\t2\nq\tb\t1\nq\tc\t0\nr\tc\t1\nr\te\t1\nr\tgone\t1\n"
    (folder / "qrels/train.tsv").write_text("query\tdocument\tscore\n" + train)
    (folder / "qrels/test.tsv").write_text("query\tdocument\tscore\ns\tb\t1\n")
    return folder


@pytest.fixture
def mined(tmp_path):
    file = tmp_path / "mined.jsonl"
    found = {"q": ["c", "e", "d"], "r": ["d"]}
    save(found, file)
    return file


def save(found, file, texts=BEIR_QUERIES):
    documents = negatives.Digest(TEXTS)
    negatives.write(found, file, queries=texts, documents=documents, made_by="bm25")


def named(examples: Examples, known: Known) -> list[tuple[str, ...]]:
    """The examples by the ids of their query and documents."""
    documents = known.corpus.ids
    return [
        (known.queries.ids[query], *(documents[row] for row in rows))
        for query, *rows in examples.rows.tolist()
    ]


def test_a_document_and_those_it_links_to_answer_its_query(known):
    asked = JudgedQueries(each=0)
    given = known(asked)
    examples = asked.among(given)
    assert examples.kinds == asked.kinds == (QUERY, DOCUMENT)
    assert named(examples, given) == [("a", "a"), ("a", "b"), ("c", "c")]
    assert examples.labels.tolist() == [0, 1, 2]  # of the answers


def test_queries_of_test_documents_are_not_trained_on(known):
    """Document e is for the test; its query is answered by a, a training document."""
    asked = JudgedQueries(each=0)
    given = known(asked)
    assert "e" in given.queries.ids
    assert "e" not in {query for query, _ in named(asked.among(given), given)}
    every = known(asked, trained=range(5))
    queries = [query for query, _ in named(asked.among(every), every)]
    assert queries == ["a", "a", "c", "c", "e", "e"]


def test_negatives_are_mined_by_words_once_for_a_run(known, monkeypatch):
    pytest.importorskip("bm25s")
    asked = JudgedQueries(each=1)
    given = known(asked)
    examples = asked.among(given)
    assert examples.kinds == (QUERY, DOCUMENT, DOCUMENT)
    mined = negatives.read(given.run / "negatives.jsonl")
    assert set(mined) == {"a", "c"} and "d" in mined["a"] and "d" in mined["c"]
    assert not {"a", "b"} & {*mined["a"]} and not {"c", "e"} & {*mined["c"]}
    # "e" has a word of the query "bread oven", but is no training document.
    assert named(examples, given) == [
        *(("a", "a", "d"), ("a", "b", "d"), ("c", "c", "d")),
    ]
    monkeypatch.setattr(judged_queries.bm25_files, "search", None)
    assert named(asked.among(given), given) == named(examples, given)


def test_words_are_those_of_the_settings(known):
    pytest.importorskip("bm25s")
    own = OWN | {"c": ("baking", ())}  # a: baked, b: bakes
    given, found = known(JudgedQueries(), documents(own)), []
    for words in ("docjax", '{"stemmer": null}', "docjax"):
        JudgedQueries(words=words).among(given)
        mined = negatives.read(given.run / "negatives.jsonl")
        found.append(sorted(mined["c"]))
    assert found == [["a", "b"], [], ["a", "b"]]
    with pytest.raises(UserError, match="BM25 settings 'lucene' are none of docjax"):
        JudgedQueries(words="lucene")


def test_the_training_split_of_a_folder_is_read(known, beir):
    asked = JudgedQueries(path=str(beir), each=0)
    given = known(asked, documents({}))
    assert given.queries.ids == ["q", "r"]  # s is a query of the test
    # A score of 0 is no answer, e is not trained on, and "gone" is not there.
    expected = [("q", "a"), ("q", "b"), ("r", "c")]
    assert named(asked.among(given), given) == expected


def test_judged_documents_that_are_not_there_are_counted(known, beir, caplog):
    asked = JudgedQueries(path=str(beir), each=0)
    asked.among(known(asked, documents({})))
    assert (
        "1 judged documents are not in the corpus, 'gone' is the first: left out"
        in caplog.text
    )


def test_queries_that_no_training_document_answers_are_counted(known, beir, caplog):
    asked = JudgedQueries(path=str(beir), each=0)
    given = known(asked, documents({}), trained=[0, 1, 3])
    assert {query for query, _ in named(asked.among(given), given)} == {"q"}
    assert "1 of 2 queries have no answer among the training documents" in caplog.text


def test_negatives_of_a_sealed_file_are_drawn_from_training_documents(
    known, beir, mined
):
    asked = JudgedQueries(path=str(beir), negatives=str(mined), each=2)
    given = known(asked, documents({}))
    rows = named(asked.among(given), given)
    assert [row[:2] for row in rows] == [("q", "a"), ("q", "b"), ("r", "c")]
    assert all({*row[2:]} == {"c", "d"} for row in rows[:2])  # e is a test document
    assert rows[2][2:] == ("d", "d")  # there is only one
    assert rows == named(asked.among(given), given)  # the same at every start


def test_all_negatives_of_a_file_are_drawn_from(known, beir, tmp_path, monkeypatch):
    """`docjax mine --top` says how many; TOP is what a run mines itself."""
    monkeypatch.setattr(judged_queries, "TOP", 1)
    file = tmp_path / "many.jsonl"
    save({"q": ["c", "d"], "r": ["a", "b", "d"]}, file)
    asked = JudgedQueries(path=str(beir), negatives=str(file), each=2)
    given = known(asked, documents({}))
    rows = named(asked.among(given), given)
    assert all({*row[2:]} == {"c", "d"} for row in rows[:2])
    assert len({*rows[2][2:]}) == 2


def test_a_query_without_mined_negatives_takes_any_document(
    known, beir, tmp_path, caplog
):
    file = tmp_path / "few.jsonl"
    save({"q": ["d"], "r": ["e"]}, file)  # e is a test document
    asked = JudgedQueries(path=str(beir), negatives=str(file), each=2)
    given = known(asked, documents({}))
    rows = named(asked.among(given), given)
    assert rows[0][2:] == ("d", "d")
    assert len({*rows[2][2:]}) == 2 and {*rows[2][2:]} <= {*"abcd"}
    assert "1 of 3 examples have no mined negative" in caplog.text


def test_uniform_negatives_need_no_file(known, beir, caplog):
    asked = JudgedQueries(path=str(beir), negatives="uniform", each=3)
    given = known(asked, documents({}))
    rows = named(asked.among(given), given)
    assert all(len({*row[2:]}) == 3 and {*row[2:]} <= {*"abcd"} for row in rows)
    assert "mined negative" not in caplog.text
    assert not (given.run / "negatives.jsonl").exists()
    assert [file.name for file in asked.files()] == [
        *("queries.jsonl", "train.tsv", "test.tsv"),
    ]


def test_a_fold_trains_on_the_queries_of_the_others(known, beir):
    (beir / "qrels/train.tsv").rename(beir / "qrels/test.tsv")
    (beir / "folds.json").write_text('[["q"], ["x"], ["r"]]')
    asked = JudgedQueries(path=str(beir), fold=0, each=0)
    given = known(asked, documents({}))
    assert named(asked.among(given), given) == [("r", "c")]


def test_documents_that_answer_a_query_are_no_negatives_of_it(known, beir, mined):
    """Whichever example they come from, as answer or as negative."""
    asked = JudgedQueries(path=str(beir), negatives=str(mined), each=2)
    given = known(asked, documents({}))
    examples = asked.among(given)
    mask = examples.related(examples.rows)
    answers = {"q": "ab", "r": "ce"}
    rows = named(examples, given)
    candidates = [row[slot] for slot in (1, 2, 3) for row in rows]  # slot after slot
    expected = [[name in answers[row[0]] for name in candidates] for row in rows]
    np.testing.assert_array_equal(mask, expected)
    # Some negative of "q" is the document c, which answers "r".
    assert mask[2, 3:].any() and not mask[:2, 3:].any()
    counted = np.asarray(candidates_of(Targets(examples.labels, mask), *mask.shape))
    np.testing.assert_array_equal(counted, ~mask | np.eye(*mask.shape, dtype=bool))


def test_a_file_of_other_documents_is_one_line(known, beir, tmp_path):
    file = tmp_path / "other.jsonl"
    save({"q": ["c", "x"]}, file)
    other = tmp_path / "same ids.jsonl"
    save({"q": ["c"]}, other, BEIR_QUERIES | {"q": "another query"})
    for path, message in (
        (file, r"other\.jsonl: 1 of 2 documents are not in the corpus, 'x' is the"),
        (other, r"ids\.jsonl: 1 of 1 queries have another text, 'q' is the first: wr"),
        (tmp_path / "no.jsonl", r"no\.jsonl: cannot be read .No such file"),
        (beir / "queries.jsonl", "the last line is no seal"),
    ):
        asked = JudgedQueries(path=str(beir), negatives=str(path))
        with pytest.raises(UserError, match=message) as error:
            asked.among(known(asked, documents({})))
        assert "\n" not in str(error.value)


def test_documents_without_queries_are_one_line(known):
    with pytest.raises(UserError, match='no document has a "query": give') as error:
        known(JudgedQueries(), documents({}))
    assert "\n" not in str(error.value)


def test_queries_without_a_training_document_are_one_line(known):
    asked = JudgedQueries(each=0)
    with pytest.raises(UserError, match='no query has an answer .*: give them a "q'):
        asked.among(known(asked, trained=[1, 3]))


def test_a_collection_whose_answers_are_not_trained_on_is_one_line(known, beir):
    asked = JudgedQueries(path=str(beir), each=0)
    with pytest.raises(UserError, match="no query has an answer .*: the part that"):
        asked.among(known(asked, documents({}), trained=[3]))


def test_a_folder_without_training_split_is_one_line(known, beir):
    (beir / "qrels/train.tsv").unlink()
    with pytest.raises(
        UserError, match=r"needs judgements train; it has test: add .*train\.qrels"
    ):
        known(JudgedQueries(path=str(beir)))


def test_fewer_than_no_negatives_are_refused():
    with pytest.raises(UserError, match=r"examples\.each -1: give 0 negatives or more"):
        JudgedQueries(each=-1)


def test_negatives_are_mined_again_for_other_documents(known):
    pytest.importorskip("bm25s")
    asked = JudgedQueries(each=1)
    asked.among(known(asked))
    before = negatives.made_by(known(asked).run / "negatives.jsonl")
    own = OWN | {"c": ("oven", ())}
    given = known(asked, documents(own))  # the same corpus folder, another fingerprint
    given.queries.fingerprint = "another"
    asked.among(given)
    mined = negatives.read(given.run / "negatives.jsonl")
    assert negatives.made_by(given.run / "negatives.jsonl") != before
    assert mined["c"][0] in "abd" and "e" not in mined["c"]


def test_the_files_behind_examples_are_named(beir, mined, tmp_path):
    asked = JudgedQueries(path=str(beir), negatives=str(mined))
    names = [file.name for file in asked.files()]
    assert names == ["queries.jsonl", "train.tsv", "test.tsv", "mined.jsonl"]
    for split in ("dev", "val"):  # the first one chooses, the other one does nothing
        (beir / f"qrels/{split}.tsv").write_text("s\tb\t1\n")
    names = [file.name for file in asked.files()]
    assert names == ["queries.jsonl", "train.tsv", "test.tsv", "dev.tsv", "mined.jsonl"]
    assert JudgedQueries().files() == ()
    with pytest.raises(UserError, match="gone.jsonl: no such file"):
        JudgedQueries(negatives=str(tmp_path / "gone.jsonl")).files()


def test_two_files_of_one_split_are_a_mistake(beir):
    (beir / "qrels/train.qrels").write_text("q 0 a 1\n")
    with pytest.raises(UserError, match="train.qrels and train.tsv judge the same"):
        JudgedQueries(path=str(beir)).files()
