"""A graph of neighbours against all products."""

import numpy as np
import pytest

from docjax.retrieval import hnsw, nearest


@pytest.mark.parametrize("cosine", [True, False])
def test_nearly_all_of_the_nearest_are_found(tmp_path, cosine):
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(3000, 16)).astype(np.float32)
    queries = generator.normal(size=(20, 16)).astype(np.float32)
    blocks = np.split(vectors, [1000, 1500])
    hnsw.write(blocks, 16, tmp_path / "graph", cosine=cosine)
    found = hnsw.nearest(queries, vectors, tmp_path / "graph", 10, cosine=cosine)
    exact = nearest.Nearest(queries[:, None], 10, cosine=cosine)
    for vector in vectors:
        exact.add(vector[None])
    expected = exact.best()
    both = zip(found.rows, expected.rows, strict=True)
    assert np.mean([len({*a} & {*b}) / 10 for a, b in both]) > 0.95
    same = found.rows == expected.rows
    np.testing.assert_allclose(found.scores[same], expected.scores[same], rtol=1e-5)


def test_fewer_documents_than_wanted_are_filled_up(tmp_path):
    vectors = np.eye(3, dtype=np.float32)
    hnsw.write([vectors], 3, tmp_path / "graph", cosine=False)
    found = hnsw.nearest(vectors[:1], vectors, tmp_path / "graph", 5, cosine=False)
    assert found.rows[0].tolist()[0] == 0 and set(found.rows[0]) == {0, 1, 2, -1}
