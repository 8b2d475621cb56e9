"""Gathers what the report of a run shows: scores, curves, maps, attention.

The page itself is in `docjax.explain.run_page`, its figures in `docjax.explain.figures`.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from docjax.data import graphs
from docjax.data.documents import full_text
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.explain import figures
from docjax.explain import node_attention as attention_lib
from docjax.explain import run_page as report
from docjax.huggingface import exported
from docjax.model.document_model import DocumentModel
from docjax.model.load import load, read_limits
from docjax.run import metrics
from docjax.run.parameters import initial_params
from docjax.run.scoring import Scoring
from docjax.tasks import runner
from docjax.tasks.embeddings import LabelledVectors
from docjax.types import Document, Embeddings, Section

CURVES = (
    *("train/loss", "train/in_batch_accuracy", "train/accuracy"),
    *("validation/classification/accuracy", "eval/classification/accuracy"),
    *("eval/clustering/nmi", "eval/clustering/purity"),
)
MAP = 1000  # documents of the t-SNE panels
WIDTH = 256  # of the reduced TF-IDF vectors
WORDS, NEAREST = 12, 8  # shown with their nearest words
NODES = 30  # segments of the document whose attention is shown


def write(evaluation: Scoring, params: Any, made_with: str) -> Path:
    """Writes `report/index.html` and the figures of a run that ended with `params`.

    The page shows `made_with`, the command that made the run.
    """
    prepared = evaluation.prepared
    figures_dir = prepared.run / "figures"
    figures_dir.mkdir(exist_ok=True)
    lines = metrics.read(prepared.run)
    sample = _sample(evaluation)
    texts, shown = _texts(evaluation, sample)
    return report.write(
        prepared.run,
        report.Report(
            name=prepared.run.name,
            config=prepared.config.to_json(),
            scores=_scores(evaluation, lines, texts),
            data=_data(evaluation, lines),
            curves=_or_none(_curves, evaluation, figures_dir / "curves", lines),
            tsne=_or_none(_map, evaluation, figures_dir / "map", params, sample, texts),
            attention=_or_none(_attention, evaluation, figures_dir, params, shown),
            words=_words(evaluation, params),
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


def _sample(evaluation: Scoring) -> np.ndarray:
    """The labelled test documents (or training ones) that the map shows."""
    prepared = evaluation.prepared
    rows = prepared.rows("test")
    rows = rows if len(rows) else prepared.rows("train")
    rows = np.array([r for r in rows if prepared.corpus.labels[r] is not None], int)
    generator = np.random.default_rng(prepared.config.seed)
    chosen = generator.choice(len(rows), min(MAP, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _texts(
    evaluation: Scoring, sample: np.ndarray
) -> tuple[dict[int, str], Document | None]:
    """The texts of all labelled documents by number, and a document to explain.

    That one has the most sections of those with at most NODES segments, or is the
    shortest if all have more.
    """
    prepared = evaluation.prepared
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


def _tfidf(evaluation: Scoring, texts: dict[int, str], rows) -> np.ndarray:
    """Reduced TF-IDF vectors, fitted on the training documents."""
    prepared = evaluation.prepared
    train = [texts[r] for r in prepared.rows("train") if r in texts]
    counts = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english")
    try:
        fitted = counts.fit_transform(train)
    except ValueError as error:  # no word twice
        raise UserError(f"TF-IDF: {error}") from None
    width = min(WIDTH, min(fitted.shape) - 1)
    reduce = TruncatedSVD(width, random_state=0).fit(fitted)
    return reduce.transform(counts.transform([texts[r] for r in rows])).astype("f4")


def _scores(evaluation: Scoring, lines, texts) -> dict[str, dict[str, float]]:
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
        baseline = _or_none(_tfidf_scores, evaluation, texts)
        if baseline:
            scores[f"TF-IDF, {WIDTH} dimensions"] = baseline
    return scores


def _tfidf_scores(evaluation: Scoring, texts: dict[int, str]) -> dict[str, float]:
    prepared = evaluation.prepared
    parts = {}
    for part in ("train", "test"):
        rows = [r for r in prepared.rows(part) if r in texts]
        vectors = _tfidf(evaluation, texts, rows)
        labels = [prepared.corpus.labels[r] for r in rows]
        parts[part] = Embeddings(vectors, labels)
    data, found = LabelledVectors(parts), {}
    for name, task in evaluation.prepared.tasks.items():
        found |= _or_none(runner.scores, {name: task}, data, "test") or {}
    return found


def _data(evaluation: Scoring, lines) -> dict[str, dict[str, Any]]:
    """What was read, and what caps cut, for the training and test documents.

    A cap on segments says how many units it cuts only if every unit is one segment.
    """
    prepared = evaluation.prepared
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
        if cap == "training_units" or prepared.cutter.one_each:
            cut = np.maximum(counts - most, 0) if most else counts * 0
            parts[part] |= {
                f"units cut by the cap ({most or 'none'})": int(cut.sum()),
                "documents with a cut": int((cut > 0).sum()),
            }
    if padding:
        parts["train"]["padding"] = float(np.mean(padding))
    return parts


def _curves(evaluation: Scoring, path: Path, lines) -> Path:
    """This run's curves, and those of the runs it is compared with."""
    prepared = evaluation.prepared
    runs = {prepared.run.name: lines}
    for other in prepared.config.report.compare:
        runs[Path(other).name] = metrics.read(Path(other))
    return figures.curves(path, runs, CURVES)


def _map(evaluation: Scoring, path: Path, params, sample, texts) -> Path:
    """t-SNE before and after training; without `init` at hand only after it."""
    prepared = evaluation.prepared
    if not len(sample):
        raise UserError("no labelled documents to draw a map of")
    before = _or_none(initial_params, prepared)
    ids = [prepared.corpus.ids[row] for row in sample]
    panels = {
        name: evaluation.data(one).vectors(ids)
        for name, one in (("before training", before), ("after training", params))
        if one is not None
    }
    panels["TF-IDF"] = _tfidf(evaluation, texts, sample)
    labels = [prepared.corpus.labels[row] for row in sample]
    return figures.tsne_panels(path, panels, labels, ids=ids)


def _export(run: Path) -> report.Export | None:
    """What `--mode=export` has written, if it has, of the run's present parameters."""
    folder = run / "export"
    if not (folder / exported.FACTS).exists():
        return None
    facts = exported.read(folder)
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


def _words(evaluation: Scoring, params) -> dict[str, list[str]]:
    """Of a model of words, some with their nearest ones."""
    prepared = evaluation.prepared
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
    table = np.asarray(vectors)[order]
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    rows, found = {name: row for row, name in enumerate(names)}, {}
    for word in filter(rows.__contains__, chosen):
        nearest = np.argsort(-(table @ table[rows[word]]), kind="stable")
        near = [row for row in nearest if row != rows[word]][:NEAREST]
        found[word] = [names[row] for row in near]
    return found


def _attention(
    evaluation: Scoring, folder: Path, params, document: Document | None
) -> report.Attention:
    """Attention over one document with the full and the section graph."""
    prepared = evaluation.prepared
    if document is None:
        raise UserError("no labelled document to explain")
    found = {}
    for name, graph in (("full graph", graphs.full), ("section graph", graphs.section)):
        model = DocumentModel(
            encoder=prepared.encoder,
            params=params,
            tokenizer=prepared.tokenizer,
            units=prepared.config.units.build(),
            segments=prepared.cutter,
            graph=graph,
            limits=read_limits(dataclasses.asdict(prepared.config.limits)),
        )
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
