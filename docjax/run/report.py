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
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.errors import UserError
from docjax.explain import figures, run_page, similarity_maps
from docjax.huggingface import docjax_json
from docjax.model import compare as comparison
from docjax.model.document_model import DocumentModel
from docjax.model.load import load
from docjax.run import baselines, metrics, task_report
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.types import (
    AFTER,
    BEFORE,
    Document,
    EncoderOfWords,
    Section,
    TaskData,
    TaskOfPairs,
)

logger = logging.getLogger(__name__)

Data = Callable[[Any], TaskData]  # parameters -> the run's documents, encoded with them

CURVES = ("train/loss", "train/in_batch_accuracy", "train/accuracy")
MAP = 1000  # the most documents in a t-SNE panel
WORDS, NEAREST = 12, 8  # words on the page, and the nearest words of each
EXPLAINED = 3  # documents whose attention is shown
NODES = 30  # segments of such a document
PAIRS = 3  # similar pairs of documents whose maps are shown


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
      plain: what `scoring.plain_data` gives.
      made_with: the command that made the run; the page shows this command.
      retrieval: what `docjax.run.retrieval_report` has gathered.
    """
    figures_dir = prepared.run / "figures"
    lines, sample = metrics.read(prepared.run), _sample(prepared)
    texts, shown = _texts(prepared, sample)
    scores = _scores(prepared, lines, texts, plain)
    others = set(prepared.tasks).difference(each.task for each in retrieval)
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
            tables=task_report.of_run(prepared.config, others, scores, figures_dir),
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
    chosen, texts = set(sample), {}
    shown: list[tuple[tuple[int, int], Document]] = []
    scored = {*prepared.scored("train"), *prepared.scored("test")}
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
    evaluations = []
    for line in lines:
        values = {name: v for name, v in line.items() if name.startswith("eval/")}
        if values:
            evaluations.append((line["step"], values))
    if not evaluations:
        return {}
    step, first = evaluations[0]
    start = {BEFORE: first} if step == 0 else {}
    return start | {AFTER: evaluations[-1][1]} | _baselines(prepared, texts, plain)


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
    caps = {"train": limits.training_units, "test": limits.inference_segments}
    for part, limit in caps.items():
        rows, piece = prepared.rows(part), "units"
        counts = prepared.corpus.counts[rows]
        parts[part] = {
            "documents": len(rows),
            "words": int(prepared.corpus.words[rows].sum()),
            "units": int(counts.sum()),
        }
        if part == "test" and not prepared.cutter.one_each:
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
    units = (prepared.corpus[row] for row in rows.tolist())
    return np.array([len(prepared.all_segments(each)) for each in units], int)


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
    """Draws the similarities of the documents of the first similar pairs that a task on
    pairs scores; none without such a task. A pair stands side by side."""
    tasks = prepared.tasks.values()
    of_pairs = [task for task in tasks if isinstance(task, TaskOfPairs)]
    if not of_pairs:
        return {}
    similar = of_pairs[0].similar(data(params), "test")[:PAIRS]
    names = list(dict.fromkeys(name for pair in similar for name in pair))
    chosen = {each.id: each for each in prepared.documents() if each.id in names}
    similarities = prepared.model(params).similarities([chosen[name] for name in names])
    return similarity_maps.write(folder / "similarities", similarities)


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


def nearest_words(known: Vocabulary, vectors: Any) -> dict[str, list[str]]:
    """Frequent and rarer words, each with the words whose vectors are nearest (cosine).

    vectors: the words' vectors, by id.
    """
    ids = [i for i, word in enumerate(known.words) if word and word.isalpha()]
    order = sorted(ids, key=lambda i: -known.counts[i])
    names = [known.words[i] for i in order]
    table, neighbours = comparison.unit(np.asarray(vectors)[order]), {}
    step = max(len(order) // (20 * WORDS), 1)
    for row in range(0, len(order), step)[:WORDS]:
        nearest = np.argsort(-(table @ table[row]), kind="stable")
        closest = [other for other in nearest if other != row][:NEAREST]
        neighbours[names[row]] = [names[other] for other in closest]
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
