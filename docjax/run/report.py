"""Gathers what the report of a run shows: who wins, documents, curves, data.

`docjax.explain.run_page` writes the page, `docjax.explain.figures` draws its figures.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from docjax.data.records import full_text
from docjax.data.splits import evenly
from docjax.errors import UserError
from docjax.explain import figures, run_page, yardstick
from docjax.huggingface import docjax_json
from docjax.model.load import judgement, of_run
from docjax.run import baselines, explained, first_screen, metrics, task_report
from docjax.run import report_documents as documents_lib
from docjax.run.explained import Data
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.run.report_documents import Sample
from docjax.types import AFTER, BEFORE, Document, TaskData

logger = logging.getLogger(__name__)

CURVES = ("train/loss", "train/in_batch_accuracy", "train/accuracy")
SAMPLE = 1000  # the most documents in clusters and on the map
EXPLAINED = 3  # documents whose attention is shown
NODES = 30  # segments of such a document


class Texts(NamedTuple):
    """What the report reads of the source."""

    scored: dict[int, str]  # of the documents that tasks score, by number
    sample: list[Document]
    explained: list[Document]


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
    folder, lines = prepared.run / "figures", metrics.read(prepared.run)
    texts = _texts(prepared, _sample(prepared))
    read = _readers(prepared, data, params)
    parts, tfidf = _parts(prepared, texts)
    others = baselines.readers(parts, tfidf, dict(plain))
    scores = _scores(prepared, lines, others)
    sample = _or_none(_encoded, prepared, read, texts.sample, tfidf)
    apart = set(prepared.tasks).difference(each.task for each in retrieval)
    if sample:
        model = of_run(prepared.run, prepared.config.allow, params)  # as others load it
        yardstick.write(prepared.run, sample.vectors[AFTER], model.fingerprint())
    return run_page.write(
        prepared.run,
        run_page.Report(
            name=prepared.run.name,
            config=prepared.config.to_json(),
            first=first_screen.first_screen(prepared, scores, {**read, **others}),
            scores=task_report.scores(prepared.tasks, scores),
            clusters=_or_none(documents_lib.clusters, sample) or (),
            neighbours=_or_none(documents_lib.neighbours, sample) or (),
            data=_data(prepared, lines),
            curves=_or_none(_curves, prepared, folder / "curves", lines),
            tsne=_or_none(documents_lib.draw_map, sample, folder / "map"),
            attention=_or_none(
                explained.attention, prepared, folder, params, texts.explained
            )
            or (),
            words=explained.words(prepared, params),
            retrieval=retrieval,
            tables=task_report.of_run(prepared.config, apart, scores, folder),
            maps=_or_none(explained.maps, prepared, data, params, folder) or {},
            export=_or_none(_export, prepared, params),
            commands={"This run was made with": made_with} if made_with else {},
        ),
    )


def _or_none(draw, *arguments) -> Any:
    """The result of `draw`, or None if there is too little to draw."""
    if arguments[0] is None:
        return None
    try:
        return draw(*arguments)
    except UserError as error:
        logger.info("report: %s", error)
        return None


def _sample(prepared: Prepared) -> np.ndarray:
    """The documents in clusters and on the map: labelled test documents, else labelled
    training documents, else any that training could read."""
    rows = prepared.scored("test" if len(prepared.rows("test")) else "train")
    if not len(rows):
        return evenly(prepared.in_reach, SAMPLE)
    generator = np.random.default_rng(prepared.config.seed)
    chosen = generator.choice(len(rows), min(SAMPLE, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _texts(prepared: Prepared, sample: np.ndarray) -> Texts:
    """Reads the source once.

    The documents to explain are those in `sample` with the most sections and at most
    NODES segments, or the shortest if all have more segments.
    """
    texts, chosen = Texts({}, [], []), set(sample.tolist())
    ranked: list[tuple[tuple[int, int], Document]] = []
    scored = {*prepared.scored("train"), *prepared.scored("test")}
    for row, document in enumerate(prepared.documents()):
        if row in scored:
            texts.scored[row] = full_text(document)
        segments = int(prepared.corpus.counts[row])
        rank = (len(document.sections), segments)
        rank = rank if segments <= NODES else (-segments, 0)
        if row in chosen:
            texts.sample.append(document)
            ranked = sorted([*ranked, (rank, document)], key=lambda pair: pair[0])
            ranked = ranked[-EXPLAINED:]
    texts.explained.extend(document for _, document in reversed(ranked))
    return texts


def _readers(prepared: Prepared, data: Data, params: Any) -> baselines.Readers:
    """The documents encoded after training, and before it if that says something: an
    untrained encoder beside word vectors does not, nor does a start that is kept."""
    readers = {AFTER: functools.cache(lambda: data(params))}
    keeps = judgement(prepared.run).get("keeps")
    if keeps == "start" or prepared.encoder.document.words_alone:
        return readers
    initial = _or_none(start_params, prepared.config, prepared.encoder, prepared.run)
    if initial is not None:
        readers = {BEFORE: functools.cache(lambda: data(initial)), **readers}
    return readers


def _parts(prepared: Prepared, texts: Texts) -> tuple[baselines.Texts, baselines.TfIdf]:
    """The labelled texts of both parts, and TF-IDF of those of training; of the sample
    if there are none."""
    parts = {}
    for part in ("train", "test"):
        rows = prepared.scored(part).tolist()
        labels = [prepared.corpus.labels[row] for row in rows]
        parts[part] = [texts.scored[row] for row in rows], labels
    train, _ = parts["train"]
    return parts, baselines.TfIdf(train or list(map(full_text, texts.sample)))


def _encoded(
    prepared: Prepared,
    readers: baselines.Readers,
    documents: Sequence[Document],
    tfidf: baselines.TfIdf,
) -> Sample | None:
    """The sample with its vectors; None for fewer documents than a map needs."""
    if len(documents) < documents_lib.LEAST:
        return None
    ids = [document.id for document in documents]
    vectors = {name: read().vectors(ids) for name, read in readers.items()}
    reduced = _or_none(tfidf.reduced, [full_text(each) for each in documents])
    if reduced is not None:
        vectors["TF-IDF"] = reduced
    return Sample(documents, vectors, None if reduced is None else tfidf)


def _scores(prepared: Prepared, lines, others) -> dict[str, dict[str, float]]:
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
    tasks = {name: task for name, task in prepared.tasks.items() if task.on_baselines}
    path = prepared.run / "baselines.json"
    found = baselines.baselines(path, tasks, others)
    return start | {AFTER: evaluations[-1][1]} | found


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


def _export(prepared: Prepared, params: Any) -> run_page.Export | None:
    """What `--mode=export` wrote of the run's present parameters, or None."""
    folder = prepared.run / "export"
    if not (folder / docjax_json.FACTS).exists():
        return None
    facts = docjax_json.read(folder)
    model = of_run(prepared.run, prepared.config.allow, params)
    if facts.get("fingerprint") != model.fingerprint():
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
