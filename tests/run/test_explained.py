"""What a run's report explains of its model; its page: explain/test_run_page.py."""

import csv
import json
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.data.vocabulary import Vocabulary
from docjax.run import explained
from docjax.run.explained import nearest_words
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.tasks.clustering import Clustering
from docjax.tasks.matching import Matching
from docjax.types import Document, Section, TaskData


def test_nearest_words_are_those_of_the_same_direction():
    known = Vocabulary(
        [None, "oil", "gas", "bank", "1986"],
        np.zeros(5, bool),
        np.array([0, 3, 2, 1, 9]),
    )
    vectors = np.array([[0, 0], [1, 0], [5, 1], [0, 2], [1, 0]], np.float32)
    found = nearest_words(known, vectors)
    assert list(found) == ["oil", "gas", "bank"]
    assert found["bank"] == ["gas", "oil"] and found["oil"] == ["gas", "bank"]


def test_the_attention_that_is_shown_is_the_mean_of_the_last_layers_heads():
    weights = np.random.default_rng(0).random((2, 3, 5, 5))
    expected = (weights[1, 0] + weights[1, 1] + weights[1, 2]) / 3
    shown = explained._of_last_layer(jnp.asarray(weights, jnp.bfloat16))
    assert shown.dtype == np.float32
    np.testing.assert_allclose(shown, expected, atol=0.01)


@pytest.mark.parametrize("count", [1, 2])
def test_a_text_without_sections_has_no_section_graph(run, tmp_path, count):
    prepared = prepare(json.loads((run / "config.json").read_text()), run)
    params = initial_params(prepared.config, prepared.encoder)
    sections = [Section(f"Part {i}", "Some words of it. " * 9) for i in range(count)]
    documents = [Document(name, tuple(sections)) for name in ("a", "b")]
    shown, other = explained.attention(prepared, tmp_path, params, documents)
    assert (shown.document, other.document) == ("a", "b") and shown.bars != other.bars
    names = ["full graph", *["section graph"] * (count > 1)]
    assert list(shown.weights) == names
    assert {len(passage.text) > 0 for passage in shown.passages} == {True}


def maps(tiny, folder, **tasks) -> dict:
    """The maps of six documents of two sections."""
    texts = {name: f"{name} of a river and the sea. " * 3 for name in "abcdef"}
    documents = [
        Document(name, (Section(f"{name}1", text), Section(f"{name}2", text)))
        for name, text in texts.items()
    ]
    prepared = mock.create_autospec(Prepared, instance=True)
    prepared.tasks, prepared.documents.return_value = tasks, documents
    prepared.model.return_value = docjax.load(tiny)
    data = mock.create_autospec(TaskData, instance=True)
    return explained.maps(prepared, lambda params: data, {}, folder)


def test_both_documents_of_a_similar_pair_stand_side_by_side(tiny, tmp_path):
    table = tmp_path / "pairs.tsv"
    rows = ("train a b 1", "train a c 0", "dev d b 0", "dev e c 1", "dev c b 1")
    lines = ["split source target label", *rows]
    table.write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))
    tasks = dict(clusters=Clustering(), matching=Matching(str(table)))
    found = maps(tiny, tmp_path, **tasks)
    assert set(found) == {"documents", "sections", "segments"}
    with found["documents"].with_suffix(".csv").open() as stream:
        names = next(csv.reader(stream))
    assert names[1:4] == ["0 e", "1 c", "2 b"]
    assert maps(tiny, tmp_path, clusters=Clustering()) == {}
