"""Folders with prompts give the vectors of sentence-transformers; what is no model."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import docjax
from docjax import cli
from docjax.errors import UserError
from docjax.export.write import export
from docjax.model.inputs import as_document
from docjax.tasks.knn import KNearest


@pytest.mark.parametrize("missing", ["units", "segments", "graph", "limits", "encoder"])
def test_a_run_of_an_earlier_docjax_is_told_so(missing, tmp_path):
    names = ("units", "segments", "graph", "limits", "encoder", "similarity")
    config = {name: None for name in names if name != missing}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(
        UserError, match=f"config.json: has no {missing}: an earlier"
    ) as e:
        docjax.load(tmp_path)
    assert "\n" not in str(e.value)


def test_a_model_can_read_the_first_segments_only(tiny, tmp_path, capsys):
    text = "The river floods the valley. " * 200
    whole, first = docjax.load(tiny), docjax.load(tiny, segments=2)
    [(vectors, _)] = whole.segment_vectors([text])
    assert len(vectors) > 2
    expected = vectors[:2].mean(0)  # segments of equal length
    [vector], stats = first.encode([text], return_stats=True)
    expected *= np.linalg.norm(vector) / np.linalg.norm(expected)
    np.testing.assert_allclose(vector, expected, atol=1e-5)
    assert stats["segments_cut"] == len(vectors) - 2, stats
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({"id": "1", "text": text}) + "\n")
    output = tmp_path / "vectors.npy"
    files = str(tiny), str(path), "--output", str(output)
    assert cli.main(["encode", *files, "--segments", "2"]) == 0
    np.testing.assert_allclose(np.load(output)[0], vector, atol=1e-6)
    capsys.readouterr()
    assert cli.main(["encode", *files, "--segments", "0"]) == 2
    assert capsys.readouterr().err == "docjax: --segments 0: give at least 1\n"


def test_a_folder_that_does_not_say_its_pooling_is_warned_of(tiny, tmp_path, caplog):
    docjax.load(tiny)
    [line] = caplog.messages
    assert line.startswith(f"{tiny} does not say how the vectors of tokens become one")
    assert "takes their mean; if it was trained otherwise, add modules.json" in line
    SentenceTransformer(str(tiny), device="cpu").save(str(tmp_path / "said"))
    caplog.clear()
    docjax.load(tmp_path / "said")
    assert caplog.messages == []


PROMPTS = {
    "query": "query: ",
    "document": "Represent the document: ",
    "topic": "classify: ",
}
TEXTS = ["A cat sat on the mat.", "The U.S. economy grew by 2.5 % (again).", "x"]


@pytest.fixture(scope="module", params=[True, False], ids=["with", "without"])
def prompted(request, tiny, tmp_path_factory) -> Path:
    """An encoder with prompts, which its mean includes or leaves out."""
    folder = tmp_path_factory.mktemp("prompts") / "tiny"
    SentenceTransformer(str(tiny), device="cpu", prompts=PROMPTS).save(str(folder))
    path = folder / "1_Pooling/config.json"
    config = json.loads(path.read_text()) | {"include_prompt": request.param}
    path.write_text(json.dumps(config))
    return folder


def test_prompts_give_the_vectors_of_sentence_transformers(prompted):
    model = docjax.load(prompted)
    peer = SentenceTransformer(str(prompted), device="cpu")
    for ours, theirs in (
        (model.encode(TEXTS), peer.encode_document(TEXTS)),
        (model.encode_document(TEXTS[0]), peer.encode_document(TEXTS[0])),
        (model.encode_queries(TEXTS), peer.encode_query(TEXTS)),
        (model.encode_queries_of_any_length(TEXTS), peer.encode_query(TEXTS)),
        (
            model.encode(TEXTS, prompt_name="topic"),
            peer.encode(TEXTS, prompt_name="topic"),
        ),
        (model.encode(TEXTS, prompt="about: "), peer.encode(TEXTS, prompt="about: ")),
        (model.encode(TEXTS, prompt=""), peer.encode(TEXTS, prompt="")),
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    apart = model.encode(TEXTS) - model.encode(TEXTS, prompt="")
    assert np.abs(apart).max() > 1e-2  # the test can tell


@pytest.mark.parametrize("own", [{}, {"document": ""}], ids=["none", "empty"])
def test_the_default_prompt_is_that_of_documents_without_their_own(
    own, prompted, tmp_path
):
    folder = tmp_path / "default"
    shutil.copytree(prompted, folder)
    path = folder / "config_sentence_transformers.json"
    kept = {name: PROMPTS[name] for name in ("query", "topic")} | own
    more = {"prompts": kept, "default_prompt_name": "topic"}
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    model = docjax.load(folder)
    peer = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), peer.encode(TEXTS), atol=1e-4)
    queries = model.encode_queries(TEXTS), peer.encode_query(TEXTS)
    np.testing.assert_allclose(*queries, atol=1e-4)


def test_an_empty_prompt_comes_before_later_names(prompted, tmp_path):
    folder = tmp_path / "empty"
    shutil.copytree(prompted, folder)
    path = folder / "config_sentence_transformers.json"
    given = {"query": "query: ", "document": "", "passage": "passage: "}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": given}))
    model = docjax.load(folder)
    peer = SentenceTransformer(str(folder), device="cpu")
    expected = peer.encode_document(TEXTS)
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-4)
    by_name = model.encode(TEXTS, prompt_name="document")
    np.testing.assert_allclose(by_name, expected, atol=1e-4)


def test_every_segment_of_a_long_document_has_the_prompt(prompted):
    """Each segment by itself is a text with the prompt."""
    model = docjax.load(prompted)
    text = "The old river floods the wide valley in spring. " * 20
    parts = model.segment_vectors([text])[0]
    assert len(parts.texts) > 2
    alone = model.segment_vectors([part.strip() for part in parts.texts])
    for vector, other in zip(parts.vectors, alone):
        np.testing.assert_allclose(other.vectors[0], vector, atol=1e-5)


def test_an_export_keeps_the_prompts(prompted, tmp_path):
    """Long documents included: `export` compares with sentence-transformers."""
    text = "The old river floods the wide valley in spring. " * 20
    documents = [as_document(text, 0), as_document(TEXTS[0], 1)]
    model = docjax.load(prompted)
    again = docjax.load(export(model, tmp_path / "out", documents))
    assert again.prompts == PROMPTS and again.include_prompt == model.include_prompt
    np.testing.assert_allclose(again.encode(documents), model.encode(documents))
    peer = SentenceTransformer(
        str(tmp_path / "out"), device="cpu", trust_remote_code=True
    )
    for ours, theirs in (
        (model.encode(documents), peer.encode_document([text, TEXTS[0]])),
        (model.encode_queries(TEXTS), peer.encode_query(TEXTS)),
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    limits = model.limits._replace(inference_segments=1)
    one = dataclasses.replace(model, limits=limits)
    stock = export(one, tmp_path / "stock", documents)
    peer = SentenceTransformer(str(stock), device="cpu")
    np.testing.assert_allclose(
        peer.encode_query(TEXTS), one.encode_queries(TEXTS), atol=1e-4
    )


def test_a_fingerprint_depends_on_the_prompts(prompted):
    model = docjax.load(prompted)
    other = dict(PROMPTS, document="passage: ")
    changed = [
        dataclasses.replace(model, prompts=other),
        dataclasses.replace(model, prompts={}),
        dataclasses.replace(model, include_prompt=not model.include_prompt),
    ]
    hashes = {each.fingerprint() for each in (model, *changed)}
    assert len(hashes) == 4


@pytest.mark.parametrize("option", ["--prompt", "--prompt-name"])
def test_the_commands_take_a_prompt_by_words_or_by_name(
    option, prompted, tmp_path, capsys
):
    labels = {"label": "a"}, {"label": "a"}, {"label": "b"}
    rows = [
        {"id": f"{split}{number}", "text": text, "split": split} | label
        for split in ("train", "test")
        for number, (text, label) in enumerate(zip(TEXTS, labels))
    ]
    path, output = tmp_path / "all.jsonl", tmp_path / "out.npy"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    model = docjax.load(prompted)
    texts = [row["text"] for row in rows]
    value = "topic" if option == "--prompt-name" else PROMPTS["topic"]
    files = str(prompted), str(path)
    assert cli.main(["encode", *files, "--output", str(output), option, value]) == 0
    expected = model.encode(texts, prompt_name="topic")
    np.testing.assert_allclose(np.load(output), expected, atol=1e-5)
    # A further file for another prompt, in place of the vectors that are there.
    assert cli.main(["encode", *files, "--output", str(output), option, ""]) == 2
    capsys.readouterr()
    seen = []
    task = lambda self, data, part: seen.append(data.labelled(part)) or {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KNearest, "__call__", task)
        options = "--task", "k_nearest", "--data", str(path), option, value
        assert cli.main(["evaluate", str(prompted), *options]) == 0
    np.testing.assert_allclose(seen[0].vectors, expected[3:], atol=1e-5)


def test_another_prompt_of_documents_leaves_that_of_queries(prompted, tmp_path):
    model = docjax.load(prompted)
    for words, name in (("about: ", None), ("", None), (None, "topic")):
        other = model.with_prompt(words, name)
        expected = model.encode(TEXTS, prompt=words, prompt_name=name)
        np.testing.assert_array_equal(other.encode(TEXTS), expected)
        assert other.query_prompt == model.query_prompt
    assert model.with_prompt(None, None).document_prompt == model.document_prompt
    # "" is no prompt, also where the folder has a default one.
    default = dataclasses.replace(model, default_prompt_name="topic")
    assert default.with_prompt("", None).document_prompt == ""


def test_a_prompt_of_an_unknown_name_is_one_line(prompted):
    model = docjax.load(prompted)
    with pytest.raises(
        UserError, match="prompt_name 'no' is not one of the model's pro"
    ):
        model.encode(TEXTS, prompt_name="no")
