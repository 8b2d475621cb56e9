"""What a run's report gathers; its page is tested in explain/test_run_page.py."""

import numpy as np

from docjax.data.vocabulary import Vocabulary
from docjax.run.report import _scores_of, nearest_words


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


def test_what_a_task_chooses_is_no_score():
    line = {"step": 4, "eval/matching/f1": 0.8, "eval/matching/threshold": 0.5}
    line |= {"train/loss": 1.0, "eval/retrieval/fused/weight": 0.4}
    assert _scores_of(line) == {"eval/matching/f1": 0.8}
