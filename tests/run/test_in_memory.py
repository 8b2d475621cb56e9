"""`docjax.train` on documents in memory: what it takes, where it goes, and what it says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import docjax
from docjax.data.sources.kept import kept
from docjax.errors import UserError, in_python
from docjax.run import in_memory
from docjax.types import Document, Section

TOPICS = {"sea": "river sand sea wave boat", "body": "doctor knee heart bone nurse"}
TEXTS = [
    " ".join(np.random.default_rng(i).choice(words.split(), 30))
    for i in range(20)
    for words in TOPICS.values()
]
LABELS = list(TOPICS) * 20


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def given(first=None, workdir=None, config=None, init=None, **columns):
    return in_memory.given(first, workdir, config, init, columns)


def documents(made) -> list[Document]:
    return list(kept(made.config.source.path))


def small(steps=2):
    config = docjax.config.load("graph_roberta:words")
    config.steps = config.checkpoint_every = steps
    return config


def test_texts_train_a_model_and_the_same_call_returns_it(no_report, capsys):
    labels = pd.Series([*LABELS[:-1], None])
    model = docjax.train(texts=np.array(TEXTS), labels=labels, config=small())
    [run] = Path("runs").iterdir()
    assert f'workdir="{run}"' in capsys.readouterr().err and model.source == str(run)
    read = list(kept(str(run / "documents")))
    assert [each.label for each in read] == [*LABELS[:-1], None]
    vectors = model.encode(TEXTS)
    same = model.similarity(vectors, vectors) > 0.5
    assert same[::2, ::2].mean() > same[::2, 1::2].mean()
    lines = (run / "metrics.jsonl").read_text().count("train/loss")
    again = docjax.train(texts=TEXTS, labels=labels, config=small())
    np.testing.assert_array_equal(again.encode(TEXTS), vectors)
    assert len(list(Path("runs").iterdir())) == 1
    assert (run / "metrics.jsonl").read_text().count("train/loss") == lines > 0


def test_every_form_of_documents_is_kept_alike():
    rows = {"text": TEXTS[:2], "label": ["a", None], "title": ["T", None], "id": [7, 8]}
    records = [
        dict(text=TEXTS[0], label="a", title="T", id=7),
        dict(text=TEXTS[1], id=8),
    ]
    own = Document("7", (Section("", TEXTS[0]),), title="T", label="a")
    expected = [own, Document("8", (Section("", TEXTS[1]),))]
    for form in (
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pa.table(rows),
        records,
        iter(records),
        expected,
    ):
        made = given(form)
        assert documents(made) == expected
        assert made.workdir == given(expected).workdir  # one corpus, one folder
    columns = given(texts=rows["text"], labels=rows["label"], titles=rows["title"])
    assert [(d.id, d.label, d.title) for d in documents(columns)] == [
        ("0", "a", "T"),
        ("1", None, ""),
    ]


def test_all_that_a_document_knows_is_kept():
    whole = Document(
        "x",
        (Section("H", "a"), Section("", "b")),
        *("T", "l", "test", ("y",), ((0, 1),), "q"),
        metadata={"n": 1},
    )
    assert documents(given([whole, Document("y", (Section("", "c"),))]))[0] == whole
    dated = given([{"text": "a", "day": pd.Timestamp("2020-01-02")}])
    assert documents(dated)[0].metadata == {"day": "2020-01-02 00:00:00"}


def test_tables_by_split_keep_their_splits():
    table = pd.DataFrame({"text": TEXTS[:2]})
    read = documents(
        given({"train": table.assign(id=[1, 2]), "test": table.assign(id=[3, 4])})
    )
    assert [each.split for each in read] == ["train", "train", "test", "test"]


def test_the_config_and_the_folder_follow_from_what_is_given():
    plain = given(texts=TEXTS)
    assert plain.config.source.fn == "docjax.data.sources.kept.kept"
    assert plain.workdir.name.startswith("graph_roberta_words-")
    started = given(texts=TEXTS, init="a/b")
    assert started.config.init == "a/b" and "frozen" in started.workdir.name
    assert given("graph_roberta:small").workdir == Path("runs/graph_roberta_small")
    assert given(config="graph_roberta", workdir="w").workdir == Path("w")
    own = docjax.config.load("graph_roberta:words")
    assert given(own).workdir.name.startswith("config-")
    other = own.copy_and_resolve_references()
    other.steps = 7
    assert given(other).workdir != given(own).workdir
    assert given(TEXTS, "w", own).config.source.path == str(
        Path("w/documents").resolve()
    )
    assert "kept" not in own.source.fn  # the caller's config stays as it was


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (dict(), "nothing to train on: give texts=..., a table"),
        (dict(labels=["a"]), r"labels are given without texts: give texts=\[...\]"),
        (
            dict(texts=["a", "b"], labels=["x"]),
            "2 texts and 1 labels: give one for each",
        ),
        (dict(texts="a"), "a str is no list of texts: put one text into"),
        (dict(texts=["a"], labels="x"), "a str is no list of labels: put one label"),
        (
            dict(texts=["a"], labels=5),
            "the labels are the number 5: give a list of labels",
        ),
        (dict(texts=["a", None]), "text 1 is None: give a text"),
        (dict(texts=["a", b"b"]), "text 1 is bytes, not text"),
        (dict(texts=["a"], labels=[1.5]), "'label' must be a string or a whole number"),
        (dict(texts=["a"], titles=[5]), "'title' must be a string, not int"),
        (dict(texts=[]), "there are no documents"),
        (
            dict(first=["a"], labels=["x"]),
            "documents are given twice, first and as labels=",
        ),
        (
            dict(first=["a"], workdir=["x"]),
            "workdir is a list, .*give labels and titles by",
        ),
        (dict(first=["a", ""]), "document 1: empty text"),
        (
            dict(first=[{"id": 1, "text": "a"}] * 2),
            "document 1 has the id '1' of document 0",
        ),
        (
            dict(first=pd.DataFrame({"x": [1]})),
            "columns are 'x': rename its column to text",
        ),
        (dict(first="graph_roberta", config="colde"), "two configs are given"),
        (dict(texts=["a"], config=5), "config is the number 5: give a name such as"),
        (dict(texts=["a"], config="no"), "config 'no' is neither a Python file nor"),
        (
            dict(texts=["a"], label=["x"]),
            "docjax.train has no argument label: it has texts",
        ),
        (dict(first=__file__.replace(".py", ".csv")), "is neither a Python file nor"),
        (dict(texts=["a"], workdir="taken"), "taken: cannot be written"),
        (dict(texts=["a"], workdir="\0"), r"workdir '\\x00' cannot be the name"),
        (dict(texts=["a"], init=5), "init is the number 5: give the name of a folder"),
    ],
)
def test_arguments_that_do_not_go_together_are_one_line(arguments, line):
    Path("taken").write_text("")
    with pytest.raises(UserError, match=line) as error:
        given(**arguments)
    assert "\n" not in str(error.value) and "--" not in str(error.value)


def test_a_file_of_documents_is_no_config():
    Path("news.csv").write_text("text\na\n")
    with pytest.raises(
        UserError, match="news.csv' is a file of documents, not a config"
    ):
        given("news.csv")


def test_a_run_of_other_documents_is_refused(tmp_path):
    given(texts=["a"], workdir="w")
    given(texts=["b"], workdir="w")  # nothing was trained yet
    Path("w/metrics.jsonl").write_text("")
    with pytest.raises(
        UserError, match="w was begun with other documents: give another"
    ):
        given(texts=["a"], workdir="w")
    assert documents(given(texts=["b"], workdir="w"))[0].sections[0].text == "b"


def test_kept_documents_that_changed_are_refused():
    made = given(texts=["a text"])
    file = Path(made.config.source.path, "documents.jsonl")
    file.write_text(file.read_text().replace("text", "test"))
    with pytest.raises(UserError, match="has changed since docjax.train wrote it"):
        documents(made)


def test_errors_speak_of_arguments_in_python():
    with pytest.raises(UserError) as error, in_python():
        raise UserError("lower --config.batch=8, or give another --workdir; a -- b--c")
    assert (
        str(error.value) == "lower config.batch=8, or give another workdir; a -- b--c"
    )


def test_the_run_says_what_its_documents_are(tmp_path):
    made = given(texts=["a"], workdir="w")
    assert json.loads(Path("w/documents/manifest.json").read_text()).keys() == {
        "documents.jsonl"
    }
    assert made.config.source.path == str(tmp_path / "w/documents")
