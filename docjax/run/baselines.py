"""What a user has without docjax, as data that the tasks of a run score, for its report.

The plain encoder `init` over all words and cut at its limit, `init` beside reduced
TF-IDF (LSA), and TF-IDF, whole and reduced. RUN/baselines.json keeps the scores, so that
a report is written again at once.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
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
INIT, WORDS = "init, ", "TF-IDF, "  # names of rows begin with these
ALL_WORDS, REDUCED = f"{WORDS}all words", f"{WORDS}{WIDTH} dimensions"
BESIDE = "LSA beside init"
Scores = dict[str, float]
Texts = Mapping[str, tuple[list[str], list[str]]]  # part -> texts and their labels
Readers = dict[str, Callable[[], TaskData]]  # the data of each baseline by name


class TfIdf:
    """The TF-IDF vectors of texts, of length 1, with the words of `train`.

    Each method raises UserError if there are too few words or documents.
    """

    def __init__(self, train: Sequence[str]):
        self._train = train

    def __call__(self, texts: Sequence[str]) -> Any:
        """A sparse matrix with a number for each word."""
        vectorizer, _ = self._fitted
        return vectorizer.transform(texts).astype("f4")

    def reduced(self, texts: Sequence[str]) -> Float[np.ndarray, "c d"]:
        """At most WIDTH numbers for each text."""
        if not len(texts):
            raise UserError("TF-IDF: there is no document")
        vectorizer, _ = self._fitted
        return normalize(self._svd.transform(vectorizer.transform(texts))).astype("f4")

    @functools.cached_property
    def words(self) -> np.ndarray:
        """The word of each number."""
        vectorizer, _ = self._fitted
        return vectorizer.get_feature_names_out()

    @functools.cached_property
    def _fitted(self) -> tuple[TfidfVectorizer, Any]:
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
        try:
            return vectorizer, vectorizer.fit_transform(self._train)
        except ValueError as error:  # no word is in 2 documents
            raise UserError(f"TF-IDF: {error}") from None

    @functools.cached_property
    def _svd(self) -> TruncatedSVD:
        _, matrix = self._fitted
        width = min(WIDTH, min(matrix.shape) - 1)
        if width < 1:
            documents, words = matrix.shape
            raise UserError(
                f"TF-IDF: {words} words for {documents} documents are too few"
            )
        with np.errstate(invalid="ignore", divide="ignore"):  # texts that are all equal
            return TruncatedSVD(width, random_state=0).fit(matrix)


def readers(texts: Texts, tfidf: TfIdf, plain: Readers) -> Readers:
    """What gives the data of each baseline. Data are made once, when they are asked for.

    Args:
      texts: the labelled texts of the parts "train" and "test".
      tfidf: fitted to those of "train".
      plain: what `scoring.plain_data` gives.
    """
    rows = {f"{INIT}{name}": functools.cache(data) for name, data in plain.items()}
    of_encoder = [data for name, data in rows.items() if "all words" in name]
    if all(labels for _, labels in texts.values()):
        for read, name in ((tfidf, ALL_WORDS), (tfidf.reduced, REDUCED)):
            rows[name] = functools.cache(functools.partial(_words, texts, read))
        for data in of_encoder:
            beside = functools.partial(_beside, data, rows[REDUCED])
            rows[BESIDE] = functools.cache(beside)
    return rows


def baselines(
    path: Path, tasks: Mapping[str, Task], data: Readers
) -> dict[str, Scores]:
    """The scores of each baseline by name; a baseline that cannot be made is missing."""
    known = json_file.read(path) if path.exists() else {}
    for name, read in data.items():
        if name not in known:
            with bar(name):
                scores = _scores(tasks, name, read)
            known |= {name: scores} if scores else {}
    json_file.write(path, known)
    return {name: known[name] for name in data if name in known}


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


def _words(texts: Texts, read: Callable[[Sequence[str]], Any]) -> LabelledVectors:
    parts = {
        part: Embeddings(read(of_part), labels)
        for part, (of_part, labels) in texts.items()
    }
    return LabelledVectors(parts)


def _beside(
    encoder: Callable[[], TaskData], words: Callable[[], LabelledVectors]
) -> LabelledVectors:
    """The vectors of the encoder and the reduced ones of TF-IDF side by side, both of
    length 1, as ten lines of scikit-learn make them."""
    parts = {}
    for part, of_words in words().parts.items():
        both = normalize(encoder().labelled(part).vectors), of_words.vectors
        parts[part] = Embeddings(np.hstack(both), of_words.labels)
    return LabelledVectors(parts)
