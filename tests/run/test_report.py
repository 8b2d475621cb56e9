"""What a run's report gathers; its page is tested in explain/test_run_page.py."""

import jax.numpy as jnp
import numpy as np

from docjax.data.vocabulary import Vocabulary
from docjax.run import report
from docjax.run.report import nearest_words


def test_nearest_words_are_those_of_the_same_direction():
    known = Vocabulary(
        [None, "oil", "gas", "bank", "1986"],
        np.zeros(5, bool),
        np.array([0, 3, 2, 1, 9]),
    )
    vectors = np.array([[0, 0], [1, 0], [5, 1], [0, 2], [1, 0]], np.float32)
    found = nearest_words(known, vectors, ["bank", "tin", "oil"])
    assert found == {"bank": ["gas", "oil"], "oil": ["gas", "bank"]}
    assert list(nearest_words(known, vectors)) == ["oil", "gas", "bank"]


def test_the_attention_that_is_shown_is_the_mean_of_the_last_layers_heads():
    weights = np.random.default_rng(0).random((2, 3, 5, 5))
    expected = (weights[1, 0] + weights[1, 1] + weights[1, 2]) / 3
    shown = report._of_last_layer(jnp.asarray(weights, jnp.bfloat16))
    assert shown.dtype == np.float32
    np.testing.assert_allclose(shown, expected, atol=0.01)
