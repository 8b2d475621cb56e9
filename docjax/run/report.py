"""Gathers what the report of a run shows: scores, curves, maps, attention.

`docjax.explain.run_page` writes the page, `docjax.explain.figures` draws its figures.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import graphs
from docjax.data.records import full_text
from docjax.data.segments import segments
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.errors import UserError
from docjax.explain import figures, run_page
from docjax.huggingface import docjax_json
from docjax.model import compare as comparison
from docjax.model.document_model import DocumentModel
from docjax.model.load import load
from docjax.run import baselines, metrics, similarity_report, task_report
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.types import (
    AFTER,
    BEFORE,
    DOCUMENT,
    Document,
    EncoderOfWords,
    Section,
    TaskData,
)

logger = logging.getLogger(__name__)

Data = Callable[[Any], TaskData]  # parameters -> the run's documents, encoded with them

CURVES = ("train/loss", "train/in_batch_accuracy", "train/accuracy")
MAP = 1000  # the most documents in a t-SNE panel
WORDS, NEAREST = 12, 8  # words on the page, and the nearest words of each
EXPLAINED = 3  # documents whose attention is shown
NODES = 30  # segments of such a document


def write(
    prepared: Prepared,
    data: Data,
    plain: Mapping[str, Callable[[], TaskData]],
    params: Any,
    made_with: str,
    retrieval: Sequence[run_page.Retrieval] = (),
) -> Path:
    """Writes `report/index.html` and the figures of a run that ended with `params`.

    Args:
      data: encodes the run's documents with some parameters.
      plain: the documents with the vectors of `init` alone (`scoring.plain_data`).
      made_with: the command that made the run; the page shows this command.
      retrieval: what `docjax.run.retrieval_report` has gathered.
    """
    figures_dir = prepared.run / "figures"
    lines, sample = metrics.read(prepared.run), _sample(prepared)
    texts, shown = _texts(prepared, sample)
    scores = _scores(prepared, lines, texts, plain)
    return run_page.write(
        prepared.run,
        run_page.Report(
            name=prepared.run.name,
            config=prepared.config.to_json(),
            scores=task_report.scores(prepared.tasks, scores),
            helped=_helped(prepared, task_report.gains(prepared.tasks, scores)),
            data=_data(prepared, lines),
            curves=_or_none(_curves, prepared, figures_dir / "curves", lines),
            tsne=_or_none(_map, prepared, data, figures_dir, params, sample, texts),
            attention=_or_none(_attention, prepared, figures_dir, params, shown) or (),
            words=_words(prepared, params),
            retrieval=retrieval,
            tables=_tables(prepared, scores, retrieval, figures_dir),
            maps=_or_none(_maps, prepared, data, params, figures_dir) or {},
            export=_or_none(_export, prepared.run, prepared.config.allow),
            commands={"This run was made with": made_with} if made_with else {},
        ),
    )


def _or_none(draw, *arguments) -> Any:
    """The result of `draw`, or None if there is too little to draw."""
    try:
        return draw(*arguments)
    except UserError as error:
        logger.info("report: %s", error)
        return None


def _sample(prepared: Prepared) -> np.ndarray:
    """The labelled documents on the map: test documents, else training documents."""
    rows = prepared.scored("test" if len(prepared.rows("test")) else "train")
    generator = np.random.default_rng(prepared.config.seed)
    chosen = generator.choice(len(rows), min(MAP, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _texts(
    prepared: Prepared, sample: np.ndarray
) -> tuple[dict[int, str], list[Document]]:
    """The texts of the scored documents by number, and the documents to explain.

    The documents to explain are those in `sample` with the most sections and at most
    NODES segments, or the shortest if all have more segments.
    """
    chosen, texts = set(map(int, sample)), {}
    shown: list[tuple[tuple[int, int], Document]] = []
    scored = {
        row for part in ("train", "test") for row in prepared.scored(part).tolist()
    }
    for row, document in enumerate(prepared.documents()):
        if row in scored:
            texts[row] = full_text(document)
        segments = int(prepared.corpus.counts[row])
        rank = (len(document.sections), segments)
        rank = rank if segments <= NODES else (-segments, 0)
        if row in chosen:
            ranked = sorted([*shown, (rank, document)], key=lambda pair: pair[0])
            shown = ranked[-EXPLAINED:]
    return texts, [document for _, document in reversed(shown)]


def _scores(prepared: Prepared, lines, texts, plain) -> dict[str, dict[str, float]]:
    """Task metrics before and after training, and of what a user has without it."""
    evaluations = [
        (line["step"], {k: v for k, v in line.items() if k.startswith("eval/")})
        for line in lines
    ]
    evaluations = [(step, values) for step, values in evaluations if values]
    scores = {}
    if evaluations and evaluations[0][0] == 0:
        scores[BEFORE] = evaluations[0][1]
    if evaluations:
        scores[AFTER] = evaluations[-1][1]
        scores |= _baselines(prepared, texts, plain)
    return scores


def _baselines(
    prepared: Prepared,
    texts: dict[int, str],
    plain: Mapping[str, Callable[[], TaskData]],
) -> dict[str, dict[str, float]]:
    """The scores of what a user has without docjax."""
    parts = {}
    for part in ("train", "test"):
        rows = [row for row in prepared.rows(part).tolist() if row in texts]
        labels = [prepared.corpus.labels[row] for row in rows]
        parts[part] = [texts[row] for row in rows], labels
    path = prepared.run / "baselines.json"
    tasks = {name: task for name, task in prepared.tasks.items() if task.on_baselines}
    return baselines.baselines(path, tasks, parts, plain)


def _tables(
    prepared: Prepared,
    scores: Mapping[str, Mapping[str, float]],
    retrieval: Sequence[run_page.Retrieval],
    folder: Path,
) -> list[run_page.Shown]:
    """The tables of the tasks that `retrieval` does not show."""
    apart = {each.task for each in retrieval}
    tasks = {name: task for name, task in prepared.tasks.items() if name not in apart}
    given = task_report.published(prepared.config.report.published, prepared.tasks)
    given = {name: rows for name, rows in given.items() if name in tasks}
    return task_report.shown(task_report.tables(tasks, scores, given), folder)


def _helped(prepared: Prepared, scores: Mapping[str, Mapping[str, float]]) -> str:
    """Whether training helped, in words: the judgement, and how the scores compare."""
    path, said = prepared.run / "judgement.json", []
    if path.exists():
        said.append(json_file.read(path)["reason"])
    after = scores.get(AFTER, {})
    above = []
    for name, values in scores.items():
        metrics_of_both = [metric for metric in after if metric in values]
        if name != AFTER and metrics_of_both:
            better = sum(after[m] > values[m] for m in metrics_of_both)
            above.append(f"“{name}” on {better} of {len(metrics_of_both)}")
    if above:
        said.append(f"the kept vectors score above {', '.join(above)} metrics")
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in said)


def _data(prepared: Prepared, lines) -> dict[str, dict[str, Any]]:
    """Counts of what the model read and what the caps cut, for training and test."""
    limits = prepared.config.limits
    padding = [line["data/padding"] for line in lines if "data/padding" in line]
    parts = {}
    for part, cap in (("train", "training_units"), ("test", "inference_segments")):
        limit, rows = getattr(limits, cap), prepared.rows(part)
        counts = prepared.corpus.counts[rows]
        parts[part] = {
            "documents": len(rows),
            "words": int(prepared.corpus.words[rows].sum()),
            "units": int(counts.sum()),
        }
        piece = "units"
        if cap == "inference_segments" and not prepared.cutter.one_each:
            piece, counts = "segments", _segment_counts(prepared, rows)
        cut = np.maximum(counts - limit, 0) if limit else counts * 0
        parts[part] |= {
            f"{piece} cut by the cap ({limit or 'none'})": int(cut.sum()),
            "documents with a cut": int((cut > 0).sum()),
        }
    shares = [line["data/cut"] for line in lines if "data/cut" in line]
    caps = {"segments": limits.training_segments, "tokens": limits.training_tokens}
    if any(caps.values()):
        given = " and ".join(f"{name} ({most})" for name, most in caps.items() if most)
        name = f"share of tokens cut by the cap on {given}"
        parts["train"][name] = float(np.mean(shares)) if shares else 0.0
    if padding:
        parts["train"]["padding"] = float(np.mean(padding))
    return parts


def _segment_counts(prepared: Prepared, rows: np.ndarray) -> np.ndarray:
    """The number of segments of each document as evaluation cuts it, without a cap."""
    frame = prepared.frames[DOCUMENT]
    documents = (
        segments(prepared.corpus[row], prepared.cutter, frame) for row in rows.tolist()
    )
    return np.array([len(document) for document in documents], int)


def _curves(prepared: Prepared, path: Path, lines) -> Path:
    """Draws the curves of this run and of the runs in `report.compare`."""
    runs = {prepared.run.name: lines}
    for folder in prepared.config.report.compare:
        runs[Path(folder).name] = metrics.read(Path(folder))
    names = (*CURVES, *task_report.curves(prepared.tasks))
    return figures.curves(path, runs, names)


def _map(prepared: Prepared, data: Data, folder: Path, params, sample, texts) -> Path:
    """Draws t-SNE before and after training; only after if `init` is missing."""
    if not len(sample):
        raise UserError("no labelled documents to draw a map of")
    config, encoder = prepared.config, prepared.encoder
    initial = _or_none(start_params, config, encoder, prepared.run)
    ids = [prepared.corpus.ids[row] for row in sample]
    panels = {
        name: data(values).vectors(ids)
        for name, values in ((BEFORE, initial), (AFTER, params))
        if values is not None
    }
    train = [texts[row] for row in prepared.rows("train").tolist() if row in texts]
    shown = [texts[row] for row in sample.tolist()]
    panels["TF-IDF"] = baselines.tfidf_vectors(train, shown, baselines.WIDTH)
    labels = [prepared.corpus.labels[row] for row in sample]
    return figures.tsne_panels(folder / "map", panels, labels, ids=ids)


def _maps(prepared: Prepared, data: Data, params, folder: Path) -> dict[str, Path]:
    """Draws the similarities of the documents of a few scored pairs."""
    own, similarities = data(params), prepared.model(params).similarities
    documents = prepared.documents()
    return similarity_report.maps(prepared.tasks, own, documents, similarities, folder)


def _export(run: Path, allow: Sequence[str]) -> run_page.Export | None:
    """What `--mode=export` wrote of the run's present parameters, or None."""
    folder = run / "export"
    if not (folder / docjax_json.FACTS).exists():
        return None
    facts = docjax_json.read(folder)
    if facts.get("fingerprint") != load(run, allow=allow).fingerprint():
        return None
    files = [path for path in folder.rglob("*") if path.is_file()]
    measured = facts["measured"]
    return run_page.Export(
        folder=str(folder),
        differences=measured["differences"],
        documents=measured["documents"],
        words=measured["words"],
        files={str(p.relative_to(folder)): p.stat().st_size for p in sorted(files)},
    )


def _words(prepared: Prepared, params) -> dict[str, list[str]]:
    """Words with their nearest words, if the model averages words; else none."""
    segment = prepared.encoder.segment
    if not isinstance(segment, EncoderOfWords):
        return {}
    known = vocabulary(prepared.tokenizer, prepared.corpus)
    return nearest_words(known, segment.word_vectors(params["segment"]))


def nearest_words(
    known: Vocabulary, vectors: Any, chosen: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Words, each with the words whose vectors are nearest (cosine).

    Args:
      vectors: the words' vectors, by id.
      chosen: words to show if they are known; empty: frequent and rarer words.
    """
    ids = [i for i, word in enumerate(known.words) if word and word.isalpha()]
    order = sorted(ids, key=lambda i: -known.counts[i])
    names = [known.words[i] for i in order]
    chosen = chosen or names[:: max(len(order) // (20 * WORDS), 1)][:WORDS]
    table = comparison.unit(np.asarray(vectors)[order])
    rows, neighbours = {name: row for row, name in enumerate(names)}, {}
    for word in filter(rows.__contains__, chosen):
        nearest = np.argsort(-(table @ table[rows[word]]), kind="stable")
        closest = [row for row in nearest if row != rows[word]][:NEAREST]
        neighbours[word] = [names[row] for row in closest]
    return neighbours


def _attention(
    prepared: Prepared, folder: Path, params, documents: Sequence[Document]
) -> list[run_page.Attention]:
    """The attention over each document; none for a model without attention."""
    if not prepared.encoder.document.explains(params):
        return []
    if not documents:
        raise UserError("no labelled documents to explain")
    model = prepared.model(params)
    return [
        _attention_over(model, document, folder, number)
        for number, document in enumerate(documents, 1)
    ]


def _attention_over(
    model: DocumentModel, document: Document, folder: Path, number: int
) -> run_page.Attention:
    """The attention with the full and, of sections, the section graph; beside a mean,
    that of the model and the share of each segment in the mean."""
    kinds = {"full graph": graphs.full}
    if len(document.sections) > 1:
        kinds["section graph"] = graphs.section
    begins_as_mean = model.encoder.document.begins_as_mean
    if begins_as_mean:
        kinds = {"attention": model.graph}
    explanations = {
        name: dataclasses.replace(model, graph=graph).explain(document)
        for name, graph in kinds.items()
    }
    weights = {n: _of_last_layer(each.weights) for n, each in explanations.items()}
    first = next(iter(explanations.values()))
    sections = [segment.section for segment in first.segments]
    heat = figures.node_attention(
        folder / f"node_attention_{number}", weights, sections
    )
    if begins_as_mean:
        mean = np.zeros_like(weights["attention"])
        mean[0, 1:] = np.array(first.lengths) / sum(first.lengths)
        weights["share of the tokens in the mean"] = mean
    rows = {name: matrix[0] for name, matrix in weights.items()}
    return run_page.Attention(
        document=document.title or document.id,
        passages=[
            Section(heading, segment.text)
            for heading, segment in zip(first.headings, first.segments, strict=True)
        ],
        weights=weights,
        bars=figures.document_attention(folder / f"document_attention_{number}", rows),
        heat=heat,
    )


def _of_last_layer(weights: Any) -> np.ndarray:
    """The mean over the heads of the last layer (Fig. 7 of graph-roberta).

    [layers heads nodes nodes] to [nodes nodes]; a row is a receiver, and node 0 is the
    document.
    """
    return np.asarray(weights[-1], np.float32).mean(axis=0)
