"""The percentile of a similarity among pairs of a corpus, and when there is none."""

import numpy as np
import pytest

import docjax
from docjax.explain import yardstick


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)


def test_the_percentile_is_the_share_of_pairs_that_are_less_similar(
    run, vectors, tmp_path
):
    model = docjax.load(run)
    yardstick.write(tmp_path, vectors, model.fingerprint())
    found = yardstick.read(tmp_path, model)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[np.triu_indices(40, k=1)]
    assert found.documents == 40
    for similarity in (-0.5, 0.0, 0.123, 0.6):
        share = 100 * (pairs < similarity).mean()
        assert found.percentile(similarity) == pytest.approx(share, abs=0.3)
    assert found.percentile(-1.0) == 0 and found.percentile(1.0) == 100


def test_pairs_of_other_parameters_are_no_yardstick(run, vectors, tmp_path):
    model = docjax.load(run)
    assert yardstick.read(tmp_path, model) is None
    yardstick.write(tmp_path, vectors, "another model")
    assert yardstick.read(tmp_path, model) is None
    (tmp_path / yardstick.FILE).write_text("{")
    assert yardstick.read(tmp_path, model) is None
