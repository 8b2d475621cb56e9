"""What a published run lacks is said all at once."""

import json

import pytest

import docjax
from docjax.errors import UserError
from docjax.run.prepare import prepare


def config(path, **fields):
    found = docjax.config.load("graph_roberta")
    found.source.path = str(path)
    found.update(fields)
    return found


def line(found, run) -> str:
    with pytest.raises(UserError) as error:
        prepare(found, run)
    assert "\n" not in str(error.value) and not run.exists()
    return str(error.value)


def test_weights_and_corpus_are_told_together_with_what_gets_them(tmp_path):
    text = line(config(tmp_path / "corpus.jsonl"), tmp_path / "run")
    assert text.startswith("the run lacks 2 things: (1) roberta-base: no such folder")
    assert "hf download roberta-base" in text and "--config.init=FOLDER" in text
    assert f"(2) {tmp_path}/corpus.jsonl: no such file" in text


def test_an_encoder_that_follows_init_is_asked_for_with_the_corpus(tmp_path):
    found = docjax.config.load("graph_roberta", variant="frozen")
    found.source.path = str(tmp_path / "corpus.jsonl")
    text = line(found, tmp_path / "run")
    assert text.startswith("the run lacks 2 things: (1) encoder.document begins as")
    assert "--config.init=FOLDER" in text and "--config.source.path=FILE" in text


def test_each_thing_is_told_with_what_mends_it(tmp_path):
    """No download of a folder; no count of documents where a step reads queries."""
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": "1", "text": "a river", "query": "river"}\n')
    found = docjax.config.load("retriever")
    found.source.path, found.init = str(path), "./my/minilm"
    found.tasks.retrieval.path = "nowhere"
    text = line(found, tmp_path / "run")
    assert "hf download" not in text and "--config.init=FOLDER; (2) tasks" in text
    assert text.endswith(
        "(2) tasks.retrieval.path nowhere: no such file; name it with "
        "--config.tasks.retrieval.path"
    )


def test_a_corpus_alone_that_is_missing_is_told_with_its_field(tmp_path):
    found = docjax.config.load("graph_roberta", variant="smoke")
    found.source = dict(fn="docjax.data.sources.jsonl.jsonl", path="nowhere.jsonl")
    with pytest.raises(UserError, match="nowhere.jsonl: no such file; .*source.path="):
        prepare(found, tmp_path / "run")


def test_too_few_documents_are_told_with_the_weights(tmp_path):
    path = tmp_path / "corpus.jsonl"
    splits = ["train"] * 6 + ["test"] * 4
    lines = [
        json.dumps({"id": str(i), "text": "a river", "split": split})
        for i, split in enumerate(splits)
    ]
    path.write_text("\n".join(lines))
    text = line(config(path, transductive=False), tmp_path / "run")
    assert "source has 10 documents, 6 to train on, and a step reads 1536" in text
    assert text.endswith("or --config.batch=3")


def test_one_thing_that_is_missing_is_told_as_before(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": "1", "text": "a river"}\n')
    text = line(config(path, batch=1), tmp_path / "run")
    assert text.startswith("roberta-base: no such folder")
