"""Gathers what the report of a run shows: scores, curves, maps, attention.

The page itself is in `docjax.explain.run_page`, its figures in `docjax.explain.figures`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from docjax.data import graphs
from docjax.data.documents import full_text
from docjax.data.segments import segments
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.explain import figures
from docjax.explain import node_attention as attention_lib
from docjax.explain import run_page as report
from docjax.huggingface import docjax_json
from docjax.model import compare as comparison
from docjax.model.load import load
from docjax.run import metrics
from docjax.run.parameters import initial_params
from docjax.run.prepare import Prepared
from docjax.tasks import runner
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Document, Embeddings, Section, TaskData

Data = Callable[[Any], TaskData]  # a run's documents, encoded with some parameters

CURVES = (
    *("train/loss", "train/in_batch_accuracy", "train/accuracy"),
    *("validation/classification/accuracy", "eval/classification/accuracy"),
    *("eval/clustering/nmi", "eval/clustering/purity"),
)
MAP = 1000  # documents of the t-SNE panels
WIDTH = 256  # of the reduced TF-IDF vectors
WORDS, NEAREST = 12, 8  # shown with their nearest words
NODES = 30  # segments of the document whose attention is shown


def write(prepared: Prepared, data: Data, params: Any, made_with: str) -> Path:
    """Writes `report/index.html` and the figures of a run that ended with `params`.

    Args:
      data: gives the run's documents, encoded with some parameters.
      made_with: the command that made the run, which the page shows.
    """
    figures_dir = prepared.run / "figures"
    figures_dir.mkdir(exist_ok=True)
    lines = metrics.read(prepared.run)
    sample = _sample(prepared)
    texts, shown = _texts(prepared, sample)
    return report.write(
        prepared.run,
        report.Report(
            name=prepared.run.name,
            config=prepared.config.to_json(),
            scores=_scores(prepared, lines, texts),
            data=_data(prepared, lines),
            curves=_or_none(_curves, prepared, figures_dir / "curves", lines),
            tsne=_or_none(
                _map, prepared, data, figures_dir / "map", params, sample, texts
            ),
            attention=_or_none(_attention, prepared, figures_dir, params, shown),
            words=_words(prepared, params),
            export=_or_none(_export, prepared.run),
            commands={"This run was made with": made_with} if made_with else {},
        ),
    )


def _or_none(draw, *arguments) -> Any:
    """What `draw` gives, or None where there is too little to draw."""
    try:
        return draw(*arguments)
    except UserError as error:
        logging.info("report: %s", error)
        return None


def _sample(prepared: Prepared) -> np.ndarray:
    """The labelled test documents (or training ones) that the map shows."""
    rows = prepared.rows("test")
    rows = rows if len(rows) else prepared.rows("train")
    rows = np.array([r for r in rows if prepared.corpus.labels[r] is not None], int)
    generator = np.random.default_rng(prepared.config.seed)
    chosen = generator.choice(len(rows), min(MAP, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _texts(
    prepared: Prepared, sample: np.ndarray
) -> tuple[dict[int, str], Document | None]:
    """The texts of all labelled documents by number, and a document to explain.

    That one has the most sections of those with at most NODES segments, or is the
    shortest if all have more.
    """
    chosen, best, texts = set(map(int, sample)), (-math.inf, 0), {}
    shown = None
    for row, document in enumerate(prepared.documents()):
        if document.label is not None:
            texts[row] = full_text(document)
        segments = int(prepared.corpus.counts[row])
        rank = (len(document.sections), segments)
        rank = rank if segments <= NODES else (-segments, 0)
        if row in chosen and rank > best:
            best, shown = rank, document
    return texts, shown


def _tfidf(prepared: Prepared, texts: dict[int, str], rows) -> np.ndarray:
    """Reduced TF-IDF vectors, fitted on the training documents."""
    train = [texts[r] for r in prepared.rows("train") if r in texts]
    counts = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    try:
        fitted = counts.fit_transform(train)
    except ValueError as error:  # no word twice
        raise UserError(f"TF-IDF: {error}") from None
    width = min(WIDTH, min(fitted.shape) - 1)
    if width < 1 or not len(rows):
        words = fitted.shape[1]
        raise UserError(f"TF-IDF: {words} common words, {len(rows)} labelled documents")
    reduce = TruncatedSVD(width, random_state=0).fit(fitted)
    return reduce.transform(counts.transform([texts[r] for r in rows])).astype("f4")


def _scores(prepared: Prepared, lines, texts) -> dict[str, dict[str, float]]:
    """Task metrics before and after training, and those of TF-IDF."""
    found = [
        (line["step"], {k: v for k, v in line.items() if k.startswith("eval/")})
        for line in lines
    ]
    found = [(step, values) for step, values in found if values]
    scores = {}
    if found and found[0][0] == 0:
        scores["before training"] = found[0][1]
    if found:
        scores["after training"] = found[-1][1]
        baseline = _or_none(_tfidf_scores, prepared, texts)
        if baseline:
            scores[f"TF-IDF, {WIDTH} dimensions"] = baseline
    return scores


def _tfidf_scores(prepared: Prepared, texts: dict[int, str]) -> dict[str, float]:
    parts = {}
    for part in ("train", "test"):
        rows = [r for r in prepared.rows(part) if r in texts]
        vectors = _tfidf(prepared, texts, rows)
        labels = [prepared.corpus.labels[r] for r in rows]
        parts[part] = Embeddings(vectors, labels)
    data, found = LabelledVectors(parts), {}
    for name, task in prepared.tasks.items():
        found |= _or_none(runner.scores, {name: task}, data, "test") or {}
    return found


def _data(prepared: Prepared, lines) -> dict[str, dict[str, Any]]:
    """What was read, and what caps cut, for the training and test documents."""
    limits = prepared.config.limits
    padding = [line["data/padding"] for line in lines if "data/padding" in line]
    parts = {}
    for part, cap in (("train", "training_units"), ("test", "inference_segments")):
        most, rows = getattr(limits, cap), prepared.rows(part)
        counts = prepared.corpus.counts[rows]
        parts[part] = {
            "documents": len(rows),
            "words": int(prepared.corpus.words[rows].sum()),
            "units": int(counts.sum()),
        }
        what = "units"
        if cap == "inference_segments" and not prepared.cutter.one_each:
            what, counts = "segments", _segment_counts(prepared, rows)
        cut = np.maximum(counts - most, 0) if most else counts * 0
        parts[part] |= {
            f"{what} cut by the cap ({most or 'none'})": int(cut.sum()),
            "documents with a cut": int((cut > 0).sum()),
        }
    shares = [line["data/cut"] for line in lines if "data/cut" in line]
    if limits.training_segments:
        name = (
            f"share of tokens cut by the cap on segments ({limits.training_segments})"
        )
        parts["train"][name] = float(np.mean(shares)) if shares else 0.0
    if padding:
        parts["train"]["padding"] = float(np.mean(padding))
    return parts


def _segment_counts(prepared: Prepared, rows: np.ndarray) -> np.ndarray:
    """The segments of each document as evaluation cuts it, without a cap."""
    frame = prepared.tokenizer.frame(prepared.config.limits.segment_tokens)
    cut = (
        segments(prepared.corpus[row], prepared.cutter, frame) for row in rows.tolist()
    )
    return np.array([len(one) for one in cut], int)


def _curves(prepared: Prepared, path: Path, lines) -> Path:
    """This run's curves, and those of the runs it is compared with."""
    runs = {prepared.run.name: lines}
    for other in prepared.config.report.compare:
        runs[Path(other).name] = metrics.read(Path(other))
    return figures.curves(path, runs, CURVES)


def _map(prepared: Prepared, data: Data, path: Path, params, sample, texts) -> Path:
    """t-SNE before and after training; without `init` at hand only after it."""
    if not len(sample):
        raise UserError("no labelled documents to draw a map of")
    before = _or_none(initial_params, prepared.config, prepared.encoder)
    ids = [prepared.corpus.ids[row] for row in sample]
    panels = {
        name: data(one).vectors(ids)
        for name, one in (("before training", before), ("after training", params))
        if one is not None
    }
    panels["TF-IDF"] = _tfidf(prepared, texts, sample)
    labels = [prepared.corpus.labels[row] for row in sample]
    return figures.tsne_panels(path, panels, labels, ids=ids)


def _export(run: Path) -> report.Export | None:
    """What `--mode=export` has written, if it has, of the run's present parameters."""
    folder = run / "export"
    if not (folder / docjax_json.FACTS).exists():
        return None
    facts = docjax_json.read(folder)
    if facts.get("fingerprint") != load(run).fingerprint():
        return None
    files = [path for path in folder.rglob("*") if path.is_file()]
    measured = facts["measured"]
    return report.Export(
        folder=str(folder),
        differences=measured["differences"],
        documents=measured["documents"],
        words=measured["words"],
        files={str(p.relative_to(folder)): p.stat().st_size for p in sorted(files)},
    )


def _words(prepared: Prepared, params) -> dict[str, list[str]]:
    """Of a model of words, some with their nearest ones."""
    if not isinstance(prepared.encoder.segment, WordAverage):
        return {}
    known = vocabulary(prepared.tokenizer, prepared.corpus)
    return nearest_words(known, params["segment"]["words"])


def nearest_words(
    known: Vocabulary, vectors: Any, chosen: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Words, each with those whose vectors are nearest (cosine).

    Args:
      vectors: of the words, by id.
      chosen: of these, those that are known; without them frequent and rarer words.
    """
    wordy = [i for i, word in enumerate(known.words) if word and word.isalpha()]
    order = sorted(wordy, key=lambda i: -known.counts[i])
    names = [known.words[i] for i in order]
    chosen = chosen or names[:: max(len(order) // (20 * WORDS), 1)][:WORDS]
    table = comparison.unit(np.asarray(vectors)[order])
    rows, found = {name: row for row, name in enumerate(names)}, {}
    for word in filter(rows.__contains__, chosen):
        nearest = np.argsort(-(table @ table[rows[word]]), kind="stable")
        near = [row for row in nearest if row != rows[word]][:NEAREST]
        found[word] = [names[row] for row in near]
    return found


def _attention(
    prepared: Prepared, folder: Path, params, document: Document | None
) -> report.Attention:
    """Attention over one document with the full and the section graph."""
    if document is None:
        raise UserError("no labelled document to explain")
    found = {}
    for name, graph in (("full graph", graphs.full), ("section graph", graphs.section)):
        model = dataclasses.replace(prepared.model(params), graph=graph)
        found[name] = model.explain(document)
    weights = {n: attention_lib.node_attention(f.weights) for n, f in found.items()}
    rows = {name: matrix[0] for name, matrix in weights.items()}
    last = found["full graph"]
    return report.Attention(
        document=document.title or document.id,
        passages=[
            Section(heading, segment.text)
            for heading, segment in zip(last.headings, last.segments, strict=True)
        ],
        weights=weights,
        bars=figures.document_attention(folder / "document_attention", rows),
        heat=figures.node_attention(
            folder / "node_attention", weights, [s.section for s in last.segments]
        ),
    )
