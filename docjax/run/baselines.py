"""What a user has without docjax, scored by the tasks of a run, for its report.

The plain encoder `init` over all words and cut at its limit, and TF-IDF, whole and
reduced. RUN/baselines.json keeps the scores, so that a report is written again at once.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from docjax.errors import UserError
from docjax.progress.bars import bar
from docjax.storage import json_file
from docjax.tasks import runner
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Embeddings, Task, TaskData

logger = logging.getLogger(__name__)

WIDTH = 256  # numbers in a reduced TF-IDF vector
Scores = dict[str, float]
Texts = Mapping[str, tuple[list[str], list[str]]]  # part -> texts and their labels


def baselines(
    path: Path,
    tasks: Mapping[str, Task],
    texts: Texts,
    plain: Mapping[str, Callable[[], TaskData]],
) -> dict[str, Scores]:
    """The scores of each baseline by name; a baseline that cannot be made is missing.

    Args:
      texts: the labelled texts of the parts "train" and "test".
      plain: what `scoring.plain_data` gives.
    """
    known = json_file.read(path) if path.exists() else {}
    rows = {f"init, {name}": data for name, data in plain.items()}
    if all(labels for _, labels in texts.values()):
        for width, name in ((None, "all words"), (WIDTH, f"{WIDTH} dimensions")):
            rows[f"TF-IDF, {name}"] = functools.partial(_words, texts, width)
    for name, data in rows.items():
        if name not in known:
            with bar(name):
                scores = _scores(tasks, name, data)
            known |= {name: scores} if scores else {}
    json_file.write(path, known)
    return {name: known[name] for name in rows if name in known}


def _scores(
    tasks: Mapping[str, Task], name: str, read: Callable[[], TaskData]
) -> Scores:
    """The scores of the tasks that the data are enough for."""
    scores: Scores = {}
    try:
        data = read()
    except UserError as error:
        logger.info("report: %s: %s", name, error)
        return scores
    for task_name, task in tasks.items():
        try:
            task.check(data, "test")
            scores |= runner.scores({task_name: task}, data, "test")
        except UserError as error:
            logger.info("report: %s: task %s: %s", name, task_name, error)
    return scores


def _words(texts: Texts, width: int | None) -> LabelledVectors:
    train, _ = texts["train"]
    parts = {
        part: Embeddings(tfidf_vectors(train, found, width), labels)
        for part, (found, labels) in texts.items()
    }
    return LabelledVectors(parts)


def tfidf_vectors(train: Sequence[str], texts: Sequence[str], width: int | None) -> Any:
    """The TF-IDF vectors of `texts`, of length 1, with the words of `train`.

    Args:
      width: the numbers of a reduced vector, of which a NumPy array is returned; None: a
        sparse matrix with a number for each word.

    Raises:
      UserError: if there are too few words or documents.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    try:
        matrix = vectorizer.fit_transform(train)
    except ValueError as error:  # no word is in 2 documents
        raise UserError(f"TF-IDF: {error}") from None
    if width is None:
        return vectorizer.transform(texts).astype("f4")
    width = min(width, min(matrix.shape) - 1)
    if width < 1 or not len(texts):
        words = matrix.shape[1]
        raise UserError(f"TF-IDF: {words} words for {len(texts)} documents are too few")
    svd = TruncatedSVD(width, random_state=0).fit(matrix)
    return normalize(svd.transform(vectorizer.transform(texts))).astype("f4")
