"""Search from Python: documents, tables and indexes, and what is shown of the hits."""

import gc

import numpy as np
import pandas as pd
import pytest

import docjax
from docjax.errors import UserError
from docjax.model.hits import Hit, Hits

TEXTS = ["a river runs to the sea", "the doctor writes a letter", "silver in winter"]
SECTIONS = [{"heading": f"S{i}", "text": text} for i, text in enumerate(TEXTS)]
LONG = {"id": "long", "title": "All", "sections": SECTIONS}


@pytest.fixture(scope="module")
def model(run):
    """Each sentence is a passage."""
    return docjax.load(run)


@pytest.fixture(scope="module")
def index(model):
    return model.index([*TEXTS, LONG])


def test_hits_are_the_nearest_documents_with_their_nearest_passage(model, index):
    hits = model.search(TEXTS[0], index, top=4)
    assert isinstance(hits, Hits) and hits.query == TEXTS[0]
    asked = model.encode_queries([TEXTS[0]])
    scores = model.similarity(asked, model.encode([*TEXTS, LONG]))[0]
    order = np.argsort(-scores, kind="stable")
    assert [hit.id for hit in hits] == [["0", "1", "2", "long"][i] for i in order]
    np.testing.assert_allclose([hit.score for hit in hits], scores[order], rtol=1e-5)
    [hit] = [hit for hit in hits if hit.id == "long"]
    [parts] = model.segment_vectors([LONG])
    assert hit.title == "All" and hit.passage in parts.texts
    assert TEXTS[int(hit.section[1:])] in hit.passage


def test_every_form_of_documents_gives_the_same_hits(model, index, tmp_path):
    expected = model.search("the sea", index, top=3)
    documents = [*TEXTS, LONG]
    without = model.index(documents, passages=False)
    saved = index.save(tmp_path / "index")
    for given in (documents, without, saved, str(saved)):
        assert model.search("the sea", given, top=3) == expected
    table = pd.DataFrame({"text": TEXTS, "id": [7, 8, 9]})
    assert {hit.id for hit in model.search("the sea", table)} == {"7", "8", "9"}


def test_a_list_of_questions_gives_a_list_of_hits(model, index):
    several = model.search(np.array(["the sea", "silver"]), index, top=1)
    assert several == [
        model.search(text, index, top=1) for text in ("the sea", "silver")
    ]
    assert model.search([], index) == []


def test_an_id_may_have_white_space(model):
    documents = [{"id": "my first note", "text": TEXTS[0]}]
    assert model.search("sea", documents)[0].id == "my first note"


def test_documents_without_a_word_for_bm25_are_searched(model):
    assert len(model.search("sea", ["a b", "?!"])) == 2


def test_an_index_in_memory_leaves_nothing(model):
    index = model.index(TEXTS)
    folder = index.folder
    assert len(index) == 3 and repr(index).startswith(
        "Index of 3 documents, 3 passages"
    )
    del index
    gc.collect()
    assert not folder.parent.exists()


def test_an_index_of_a_cut_model_is_searched_by_the_whole_one(model, tmp_path):
    import dataclasses

    cut = dataclasses.replace(model, truncate_dim=8)
    saved = cut.index(TEXTS).save(tmp_path / "index")
    assert model.search("sea", saved) == cut.search("sea", saved)


@pytest.mark.parametrize(
    ("documents", "line"),
    [
        ([], "there are no documents"),
        ("no/folder", "'no/folder' is no folder: give the folder of an index"),
        (__file__, "is a file: give the folder of an index"),
        (["a", ""], "document 1: empty text"),
        (
            [{"text": "a"}, {"id": 0, "text": "b"}],
            "document 1 has the id '0' of document 0",
        ),
        (pd.DataFrame({"x": ["a"]}), "columns are 'x': rename its column to text"),
        ({"text": "a"}, "a dict is no list of documents: put one document into"),
        (None, "the documents are None"),
    ],
)
def test_what_cannot_be_searched_is_one_line(model, documents, line):
    with pytest.raises(UserError, match=line):
        model.search("sea", documents)


def test_a_wrong_question_or_number_is_one_line(model, index, tmp_path):
    for queries, line in (
        (None, "the queries are None"),
        (["a", 5], "query 1 is the"),
    ):
        with pytest.raises(UserError, match=line):
            model.search(queries, index)
    for top, line in ((0, "top 0: give at least 1"), (None, "top None is a NoneType")):
        with pytest.raises(UserError, match=line):
            model.search("sea", index, top=top)
    index.save(tmp_path / "there")
    with pytest.raises(UserError, match="there exists: delete it, or give another"):
        index.save(tmp_path / "there")


def test_an_index_of_another_model_is_refused(model, tiny, index):
    with pytest.raises(UserError, match="was made with another model"):
        docjax.load(tiny).search("sea", index)


def test_hits_show_themselves_in_five_lines(model, index):
    hits = model.search("the sea", index)
    assert len(repr(hits).splitlines()) == 5 and repr(hits).startswith(
        "4 hits for 'the"
    )
    assert 2 <= len(repr(hits[0]).splitlines()) <= 5
    page = Hits([Hit("<i>", 0.5, "<b>", "", "x")], "<u>")._repr_html_()
    assert "&lt;i&gt;" in page and "&lt;b&gt;" in page and "&lt;u&gt;" in page
    assert hits[0]._repr_html_().startswith("<table>")
