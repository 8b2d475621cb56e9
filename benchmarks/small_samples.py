"""Are the vectors of a small sample safe? `graph_roberta:words` beside TF-IDF.

    python -m benchmarks.small_samples --data FOLDER --workdir runs/small

Of each corpus 3, 10, 30, 100 and 300 documents are drawn, a few times over. docjax trains
on them, without their labels, as a user would who gives just these documents. A linear
classifier (logistic regression of scikit-learn, C = 10) then learns the labels of the
sample and is scored on TEST other documents. Beside docjax stand TF-IDF with all words
and TF-IDF reduced to 256 numbers (scikit-learn: logarithmic counts, no English stop
words). The last column is docjax less the better of both.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

import docjax
from benchmarks import tiny
from benchmarks.runs import add_init
from benchmarks.training_pays import read
from docjax import config as configs
from docjax.data.documents import parse
from docjax.data.records import full_text
from docjax.types import Document

CORPORA = ("r8", "20news", "openstax", "movie_reviews2k", "hyperpartisan")
SIZES = (3, 10, 30, 100, 300)
TEST = 400
WIDTH = 256


def drawn(
    documents: Sequence[Document], size: int, seed: int
) -> tuple[list[Document], list[Document]]:
    """`size` documents of two labels or more, and TEST others."""
    generator = np.random.default_rng((size, seed))
    while True:
        order = generator.permutation(len(documents))
        train = [documents[row] for row in order[:size]]
        if len({document.label for document in train}) > 1:
            return train, [documents[row] for row in order[size : size + TEST]]


def tfidf(train: Sequence[str], test: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """The vectors of both samples by both forms of TF-IDF."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    first, second = vectorizer.fit_transform(train), vectorizer.transform(test)
    svd = TruncatedSVD(min(WIDTH, min(first.shape) - 1), random_state=0).fit(first)
    reduced = tuple(normalize(svd.transform(each)) for each in (first, second))
    return {"TF-IDF": (first, second), "TF-IDF, reduced": reduced}


def trained(
    train: Sequence[Document],
    test: Sequence[Document],
    run: Path,
    variant: str,
    init: str,
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of both samples by a run on the first."""
    run.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "id": each.id,
            "title": each.title,
            "sections": [vars(s) for s in each.sections],
        }
        for each in train
    ]
    source = run.with_suffix(".jsonl")
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = configs.load("graph_roberta", variant=variant)
    config.source.path = str(source)
    if variant != "words":
        config.init = init
    model = docjax.train(config, run)
    return model.encode(list(train)), model.encode(list(test))


def accuracy(
    vectors: tuple[Any, Any], train: Sequence[Document], test: Sequence[Document]
) -> float:
    labels = [[each.label for each in part] for part in (train, test)]
    probe = LogisticRegression(C=10, max_iter=2000).fit(vectors[0], labels[0])
    return float((probe.predict(vectors[1]) == labels[1]).mean())


def measured(
    documents: Sequence[Document], size: int, seed: int, encode: Callable[..., Any]
) -> dict[str, float]:
    """The accuracy of each system on one draw."""
    train, test = drawn(documents, size, seed)
    found = tfidf(*([full_text(each) for each in part] for part in (train, test)))
    found["docjax"] = encode(train, test, f"{size}-{seed}")
    return {name: accuracy(each, train, test) for name, each in found.items()}


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--variant", default="words", help="of graph_roberta")
    add_init(parser)
    words = "--corpora 20news --sizes 10 --draws 1 --data".split()
    flags = tiny.parse(parser, given, *words, tiny.data, "--workdir", tiny.workdir)
    print("| corpus | documents | TF-IDF | TF-IDF, reduced | docjax | gain |")
    print("|---|---|---|---|---|---|")
    for corpus in flags.corpora:
        lines = read(flags.data / f"{corpus}.jsonl.xz")
        parsed = (
            parse(line, corpus) for line in lines if line.get("label") is not None
        )
        documents = list(parsed)
        for size in flags.sizes:
            _row(corpus, size, documents, flags)


def _row(
    corpus: str, size: int, documents: Sequence[Document], flags: argparse.Namespace
) -> None:
    """Prints the mean over the draws; a draw that has been measured is not repeated."""
    found = []
    for seed in range(flags.draws):
        file = flags.workdir / f"{flags.variant}-{corpus}-{size}-{seed}.json"
        if not file.exists():
            encode = lambda train, test, name: trained(
                train,
                test,
                flags.workdir / f"{flags.variant}-{corpus}-{name}",
                flags.variant,
                flags.init,
            )
            scores = measured(documents, size, seed, encode)
            file.write_text(json.dumps(scores))
        found.append(json.loads(file.read_text()))
    means = {name: np.mean([each[name] for each in found]) for name in found[0]}
    gain = means["docjax"] - max(means[name] for name in means if name != "docjax")
    cells = " | ".join(f"{value:.3f}" for value in means.values())
    print(f"| {corpus} | {size} | {cells} | {gain:+.3f} |", flush=True)


if __name__ == "__main__":
    main()
