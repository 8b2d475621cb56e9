"""Does one paper cite the other? Pairs of ACL papers, scored by many systems.

    python -m benchmarks.matching --data DATA --workdir runs/matching \
        --runs colde=runs/colde s_bert=runs/s_bert

DATA/acl holds papers.jsonl.xz and two tables of pairs. In pairs.tsv both kinds of pairs
have the same targets; in pairs_uniform.tsv random documents are the targets of pairs
that are not similar, so that often cited targets give similar pairs away. Prints one
Markdown table for each: precision, recall, F1 and accuracy of all validation pairs
together. Training pairs choose the threshold, by F1: for a run trained on them it is too
high. --runs are folders that `docjax.load` reads.

Papers lose their sections headed "Abstract" and "References", as in CoLDE. The papers
as they are read lie in WORKDIR/papers.jsonl: train on that file. WORKDIR/vectors keeps
the vectors of models, so the same command does not encode again.

Systems without a model:
  cited more than 7 times: the target, by similar pairs of the training part.
  a year newer: the source, by one year or more; years come from the ids.
  TF-IDF: cosine, by scikit-learn, fitted on all papers.
  BM25: the source's text is the query; its score for the target is divided by its score
    for itself. No mean of both directions is taken.
"""

import argparse
import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import docjax
from benchmarks import runs, tiny
from docjax.data.documents import to_line
from docjax.data.pairs import Pair, read_pairs
from docjax.data.records import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.model.document_model import DocumentModel
from docjax.progress import log
from docjax.retrieval import bm25
from docjax.storage import atomic
from docjax.storage.arrays import digest
from docjax.tasks.matching import matching, measures, splits_of
from docjax.types import Document

logger = logging.getLogger("docjax.benchmarks")

TABLES = ("pairs.tsv", "pairs_uniform.tsv")
LEFT_OUT = ("Abstract", "References")  # sections, as in CoLDE
CITED = 7
TOKENS = 512  # of the cut
BLOCK = 64  # papers that are encoded and kept together
MEASURES = ("precision", "recall", "f1", "accuracy")

Split = list[Pair]
Scorer = Callable[[Split], Float[np.ndarray, " e"]]
Rule = Callable[[Split], Bool[np.ndarray, " e"]]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--runs", nargs="*", default=(), metavar="NAME=DIR")
    runs.add_init(parser)
    flags = tiny.parse(parser, given, *tiny.TRAINING)
    log.install()
    papers = list(acl_papers(flags.data))
    flags.workdir.mkdir(parents=True, exist_ok=True)
    text = "".join(map(to_line, papers))
    atomic.write_text(flags.workdir / "papers.jsonl", text)
    scorers = of_words(papers) | of_models(papers, flags)
    for name in TABLES:
        pairs = read_pairs(flags.data / "acl" / name)
        tuning, scored = (pairs[part] for part in splits_of(pairs, "validation"))
        print(
            f"\n{name}: {len(tuning)} training pairs, {len(scored)} validation pairs\n"
        )
        print(table(rows(tuning, scored, rules(tuning), scorers)), flush=True)


def acl_papers(data: Path) -> Iterator[Document]:
    """The papers without abstract and references."""
    return jsonl(str(data / "acl/papers.jsonl.xz"), without=LEFT_OUT)


def rows(
    tuning: Split,
    scored: Split,
    by_rule: Mapping[str, Rule],
    scorers: Mapping[str, Scorer],
) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The name and the measures of each system on the scored pairs; `tuning` chooses the
    thresholds."""
    similar = labels(scored)
    for name, rule in by_rule.items():
        yield name, measures(similar, rule(scored))
    for name, scorer in scorers.items():
        parts = [(scorer(pairs), labels(pairs)) for pairs in (tuning, scored)]
        yield name, matching(*parts)


def rules(known: Split) -> dict[str, Rule]:
    """The two rules that read no text; the known pairs say who is cited how often."""
    cited = Counter(pair.target for pair in known if pair.similar)
    return {
        f"cited more than {CITED} times": lambda pairs: np.array(
            [cited[pair.target] > CITED for pair in pairs]
        ),
        "a year newer": lambda pairs: np.array(
            [year(pair.source) > year(pair.target) for pair in pairs]
        ),
    }


def year(name: str) -> int:
    """The year in an id of the ACL Anthology: 1995 of P95-1026."""
    number = int(name[1:3])
    return number + (1900 if number > 50 else 2000)


def labels(pairs: Split) -> Bool[np.ndarray, " e"]:
    return np.array([pair.similar for pair in pairs])


def of_words(papers: Sequence[Document]) -> dict[str, Scorer]:
    """TF-IDF and BM25."""
    row = {paper.id: number for number, paper in enumerate(papers)}
    texts = list(map(full_text, papers))
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    vectors = vectorizer.fit_transform(texts)
    found = bm25.index(papers).search(dict(zip(row, texts)), top=len(papers))
    return {
        "TF-IDF cosine": lambda pairs: np.array(
            [(vectors[row[a]] @ vectors[row[b]].T).sum() for a, b, _ in pairs]
        ),
        "BM25": lambda pairs: np.array(
            [found[a].get(b, 0.0) / found[a][a] for a, b, _ in pairs]
        ),
    }


def of_models(
    papers: Sequence[Document], flags: argparse.Namespace
) -> dict[str, Scorer]:
    """MiniLM without training, and the runs NAME=DIR: the cosine of the vectors."""
    minilm = docjax.load(flags.init)
    first = minilm.limits._replace(segment_tokens=TOKENS, inference_segments=1)
    models: dict[str, Any] = {
        f"MiniLM, cut at {TOKENS} tokens": dataclasses.replace(minilm, limits=first),
        "MiniLM, mean of all segments": minilm,
    }
    for run in flags.runs:
        name, _, folder = run.rpartition("=")
        models[name or folder] = docjax.load(folder)
    return {
        name: cosine(papers, model, flags.workdir) for name, model in models.items()
    }


def cosine(papers: Sequence[Document], model: DocumentModel, workdir: Path) -> Scorer:
    row = {paper.id: number for number, paper in enumerate(papers)}
    vectors = normalize(encoded(papers, model, workdir / "vectors"))

    def score(pairs: Split) -> Float[np.ndarray, " e"]:
        sources = vectors[[row[pair.source] for pair in pairs]]
        return (sources * vectors[[row[pair.target] for pair in pairs]]).sum(1)

    return score


def encoded(
    papers: Sequence[Document], model: DocumentModel, folder: Path
) -> Float[np.ndarray, "c d"]:
    """The vectors of the papers; blocks of papers that the folder has are not read."""
    folder = folder / model.fingerprint()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    blocks = []
    for start in range(0, len(papers), BLOCK):
        block = papers[start : start + BLOCK]
        path = folder / f"{digest(''.join(map(to_line, block)), {})[:16]}.npy"
        if not path.exists():
            with atomic.partial(path) as partial, partial.open("wb") as file:
                np.save(file, model.encode(block))
            logger.info("%d of %d papers", start + len(block), len(papers))
        blocks.append(np.load(path))
    return np.concatenate(blocks)


def table(found: Iterator[tuple[str, Mapping[str, float]]]) -> str:
    """The systems as a Markdown table."""
    lines = ["| system | P | R | F1 | Acc | threshold |", "|---" * 6 + "|"]
    for name, values in found:
        cells = [f"{values[measure]:.4f}" for measure in MEASURES]
        at = f"{values['threshold']:.2f}" if "threshold" in values else "rule"
        lines.append(f"| {name} | {' | '.join(cells)} | {at} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
