"""Vectors that can be cut: the rotation to principal components of a run."""

import itertools

import jax
import numpy as np
import pytest

import docjax
from docjax.data.sources.pydocs import pydocs
from docjax.export.write import export_run
from docjax.recipe.components import components
from docjax.run.parameters import trained_params


def test_components_are_those_of_a_singular_value_decomposition():
    vectors = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    vectors *= [5, 1, 4, 2, 6, 3]
    found, expected = components(vectors), np.linalg.svd(vectors)[2].T
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-5)
    np.testing.assert_allclose(found.T @ found, np.eye(6), atol=1e-12)
    largest = np.abs(found).argmax(0)
    assert (found[largest, range(6)] > 0).all()


@pytest.fixture(scope="module")
def run(tmp_path_factory, one_device, no_reports):
    config = docjax.config.load("graph_roberta", variant="words")
    config.source = docjax.config.load("graph_roberta", variant="smoke").source
    config.encoder.document.components = True
    config.encoder.segment.words = config.encoder.document.words = 24
    config.encoder.segment.update(width=32, heads=2, hidden=64)
    config.optimizer.weight_decay = 0.1
    graph_roberta = docjax.config.load("graph_roberta")  # not judged: keeps its words
    config.views, config.objective = graph_roberta.views, graph_roberta.objective
    config.objective.update(similarity="cosine", temperature=0.05)
    config.keep, config.units = graph_roberta.keep, graph_roberta.units
    config.update(steps=4, batch=16, checkpoint_every=4)
    path = tmp_path_factory.mktemp("runs") / "components"
    docjax.train(config, path)
    return path


def test_training_leaves_the_rotation_as_it_was_fitted(run):
    model = docjax.load(run)
    kept = trained_params(run, model.encoder)["document"]["components"]
    np.testing.assert_array_equal(kept, np.load(run / "components.npy"))
    np.testing.assert_allclose(kept.T @ kept, np.eye(len(kept)), atol=1e-5)


def test_the_first_numbers_say_the_most_and_an_export_has_them_too(run):
    model = docjax.load(run)
    texts = list(itertools.islice(pydocs(("optax",)), 20))
    vectors = model.encode(texts)
    half = vectors.shape[1] // 2
    first, last = (np.square(part).sum() for part in np.split(vectors, [half], axis=1))
    assert first > 3 * last
    cut = docjax.load(run, truncate_dim=half).encode(texts)
    np.testing.assert_array_equal(cut, vectors[:, :half])
    export_run(run)
    exported = docjax.load(run / "export")
    np.testing.assert_allclose(exported.encode(texts), vectors, atol=1e-6)
    same = jax.tree.map(np.array_equal, exported.params, model.params)
    assert same["document"]["components"]
