"""What a user has without docjax, scored by the tasks of a run, for its report.

The plain encoder `init` over all words and cut at its limit, and TF-IDF, whole and
reduced. RUN/baselines.json keeps the scores, so that a report is written again at once.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from docjax.encoders.from_mean import FromMean
from docjax.errors import UserError
from docjax.model.load import load
from docjax.run.fields import is_run
from docjax.run.prepare import Prepared
from docjax.storage import json_file
from docjax.tasks import runner
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Embeddings

WIDTH = 256  # numbers in a reduced TF-IDF vector
Texts = Mapping[int, str]  # the text of each labelled document, by number
Scores = dict[str, float]


def baselines(prepared: Prepared, texts: Texts) -> dict[str, Scores]:
    """The scores of each baseline by name; a baseline that cannot be made is missing.

    A model that begins as the mean of its segments has the scores of the plain encoder
    over all words before training, so that row is left out.
    """
    path = prepared.run / "baselines.json"
    known = json_file.read(path) if path.exists() else {}
    rows: dict[str, Callable[[], dict[str, Any]]] = {}
    init = prepared.config.init
    if init and not is_run(init):
        model = load(init)
        length = model.limits.segment_tokens
        cut = model.limits._replace(inference_segments=1)
        cut_model = dataclasses.replace(model, limits=cut)
        rows[f"init, cut at {length} tokens"] = lambda: _encoded(
            prepared, texts, cut_model
        )
        if not isinstance(prepared.encoder.document, FromMean):
            rows["init, all words"] = lambda: _encoded(prepared, texts, model)
    rows["TF-IDF, all words"] = lambda: _tfidf_parts(prepared, texts, None)
    rows[f"TF-IDF, {WIDTH} dimensions"] = lambda: _tfidf_parts(prepared, texts, WIDTH)
    for name, parts in rows.items():
        if name not in known:
            known[name] = _scores(prepared, name, parts)
    json_file.write(path, known)
    return {name: known[name] for name in rows if known[name]}


def reduced(train: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    """TF-IDF vectors of `texts` in WIDTH dimensions, length 1, fitted on `train`.

    Raises:
      UserError: if there are too few words or documents.
    """
    return _tfidf(train, texts, WIDTH)


def _scores(
    prepared: Prepared, name: str, parts: Callable[[], dict[str, Any]]
) -> Scores:
    """The scores of the tasks that can be run on labels and vectors alone."""
    scores: Scores = {}
    try:
        data = LabelledVectors(parts())
    except UserError as error:
        logging.info("report: %s: %s", name, error)
        return scores
    for task_name, task in prepared.tasks.items():
        try:
            task.check(data, "test")
            scores |= runner.scores({task_name: task}, data, "test")
        except UserError as error:
            logging.info("report: %s: task %s: %s", name, task_name, error)
    return scores


def _encoded(prepared: Prepared, texts: Texts, model: Any) -> dict[str, Embeddings]:
    return {
        part: Embeddings(model.encode([texts[row] for row in rows]), labels)
        for part, (rows, labels) in _labelled(prepared, texts).items()
    }


def _tfidf_parts(
    prepared: Prepared, texts: Texts, width: int | None
) -> dict[str, Embeddings]:
    parts = _labelled(prepared, texts)
    train = [texts[row] for row in parts["train"][0]]
    return {
        part: Embeddings(_tfidf(train, [texts[row] for row in rows], width), labels)
        for part, (rows, labels) in parts.items()
    }


def _labelled(
    prepared: Prepared, texts: Texts
) -> dict[str, tuple[list[int], list[str]]]:
    """The numbers and labels of the labelled training and test documents."""
    found = {}
    for part in ("train", "test"):
        rows = [row for row in prepared.rows(part).tolist() if row in texts]
        found[part] = rows, [prepared.corpus.labels[row] for row in rows]
    return found


def _tfidf(train: Sequence[str], texts: Sequence[str], width: int | None) -> Any:
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
