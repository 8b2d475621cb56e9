"""The page about a run, `report/index.html`: one file that opens offline.

`write(run_dir, Report(...))` makes the page from plain data and from the figures of
figures.py. A part without content is left out.
"""

import dataclasses
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

import docjax
from docjax.explain import page
from docjax.explain.page import Number
from docjax.parts.named import plain
from docjax.storage import atomic
from docjax.types import Section, Table

FACTS = "source units examples views segments encoder objective batch steps epochs seed".split()
PACKAGES = (
    "jax flax optax orbax-checkpoint grain transformers tokenizers numpy scikit-learn"
).split()
SECTIONS = {  # one without content is left out
    "answer": "In short",
    "clusters": "Clusters",
    "neighbours": "Neighbours",
    "map": "Map",
    "retrieval": "Retrieval",
    "analyses": "Analyses",
    "attention": "Attention",
    "words": "Words",
    "training": "Training",
    "data": "Data",
    "scores": "All scores",
    "export": "Export",
    "settings": "Settings",
}
TEMPLATE = page.template(
    page.FOLDER / "run_page.html.jinja", script=page.FOLDER / "run_page.js"
)


@dataclasses.dataclass(frozen=True)
class Attention:
    """The attention between the nodes of one document; node 0 is the document itself.

    Raises:
      ValueError: if a matrix does not fit the passages.
    """

    document: str  # title or id
    passages: Sequence[Section]  # headings and texts of the nodes 1 to p
    weights: Mapping[str, Float[np.ndarray, "_ _"]]  # graph -> [1+p 1+p]
    bars: Path | None = None  # PNG of figures.document_attention
    heat: Path | None = None  # PNG of figures.node_attention

    def __post_init__(self):
        nodes = 1 + len(self.passages)
        for graph, weights in self.weights.items():
            if weights.shape != (nodes, nodes):
                raise ValueError(
                    f"{graph}: weights {weights.shape} for {nodes - 1} passages; "
                    f"give {(nodes, nodes)}, the document node first"
                )


@dataclasses.dataclass(frozen=True)
class Hit:
    """A document that a system found, and its passage that is nearest to the query."""

    title: str  # or id
    section: str
    passage: str
    is_relevant: bool


@dataclasses.dataclass(frozen=True)
class Query:
    """A query, its score by system, and the first documents that each system found."""

    text: str
    scores: Mapping[str, float]
    hits: Mapping[str, Sequence[Hit]]


class Cell(NamedTuple):
    """A score on the first screen."""

    score: str
    interval: str  # in which it could lie by chance
    is_best: bool = False  # beyond noise


@dataclasses.dataclass(frozen=True)
class FirstScreen:
    """What the page says first."""

    finding: str  # what was tried, what wins, by how much, and whether that is noise
    advice: str
    judged: str  # what the run keeps, in a sentence; "" if it did not judge
    reason: str  # of that, in its full length
    rows: Mapping[str, Mapping[str, Cell]]  # system -> score -> cell
    meanings: Sequence[str]  # of the scores
    notes: Sequence[str]  # what the systems are


class Named(NamedTuple):
    """A document by its title and label; "" without a label."""

    title: str
    label: str


class Cluster(NamedTuple):
    """A cluster of documents, with the words and titles that tell it from others."""

    documents: int
    label: str  # the most frequent one; "" without labels
    share: float  # of the documents that have this label
    words: Sequence[str]
    titles: Sequence[str]


class Neighbours(NamedTuple):
    """A document and its nearest ones, by the name of the vectors."""

    document: Named
    nearest: Mapping[str, Sequence[Named]]


class Shown(NamedTuple):
    """A table of a task, and the PNG of its drawing."""

    table: Table
    figure: Path | None = None


@dataclasses.dataclass(frozen=True)
class Retrieval:
    """How documents are found: by words, by vectors, by both."""

    task: str
    tables: Sequence[Shown]
    curves: Path | None  # PNG of figures.weights
    metric: str  # the scores of queries
    systems: tuple[str, str]  # the first has won queries against the second
    won: Sequence[Query]  # most first
    lost: Sequence[Query]
    searches: Sequence[Query]


@dataclasses.dataclass(frozen=True)
class Export:
    """A folder for other libraries, and how far its vectors are from the model's."""

    folder: str
    differences: Mapping[str, float]  # library -> largest difference of any number
    documents: int  # number of compared documents
    words: Sequence[int]  # words of the shortest and of the longest document
    files: Mapping[str, int]  # name -> bytes


@dataclasses.dataclass(frozen=True)
class Report:
    """The content of the page, in the order of the mappings. A part that is None or
    empty is left out."""

    name: str
    config: Mapping[str, Any]
    first: FirstScreen | None = None
    # "after training" -> {"eval/clustering/nmi": 0.52}
    scores: Mapping[str, Mapping[str, Number]] = dataclasses.field(default_factory=dict)
    clusters: Sequence[Cluster] = ()
    neighbours: Sequence[Neighbours] = ()
    # "train" -> {"documents": 2000, "words cut by caps": 0, "padding": 0.04}
    data: Mapping[str, Mapping[str, Number | str]] = dataclasses.field(
        default_factory=dict
    )
    curves: Path | None = None  # a PNG; the CSV lies beside it
    tsne: Path | None = None
    attention: Sequence[Attention] = ()  # of a few documents
    words: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    retrieval: Sequence[Retrieval] = ()  # by task
    tables: Sequence[Shown] = ()  # of other tasks
    maps: Mapping[str, Path] = dataclasses.field(default_factory=dict)  # by kind, PNG
    export: Export | None = None
    commands: Mapping[str, str] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=lambda: versions())


def write(run_dir: Path, report: Report) -> Path:
    """Writes `run_dir/report/index.html` and returns its path."""
    folder = Path(run_dir) / "report"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    atomic.write_text(path, html(report, folder))
    return path


def html(report: Report, folder: Path) -> str:
    """The page; links to figures are relative to `folder`."""
    config, scores = report.config, _scores(report.scores)
    present = {  # the other sections are fields of the report
        "answer": report.first and (report.first.finding or report.first.judged),
        "map": report.tsne,
        "analyses": report.tables or report.maps,
        "training": report.curves,
        "scores": page.row_names(scores),
        "settings": True,
    }
    has = lambda name: present[name] if name in present else getattr(report, name)
    return TEMPLATE.render(
        title=report.name,
        facts={
            key: _short(config[key]) for key in FACTS if config.get(key) is not None
        },
        sections={name: text for name, text in SECTIONS.items() if has(name)},
        report=report,
        scores=scores,
        first=report.first,
        curves=page.picture(report.curves, folder),
        map=page.picture(report.tsne, folder),
        attention=[_attention(each, folder) for each in report.attention],
        retrieval=[_retrieval(each, folder) for each in report.retrieval],
        tables=[_table(each, folder) for each in report.tables],
        maps={kind: page.picture(png, folder) for kind, png in report.maps.items()},
        config=json.dumps(plain(config), indent=2, ensure_ascii=False),
    )


def versions() -> dict[str, str]:
    """The versions of docjax, Python and the packages that compute the numbers."""
    result = {"docjax": docjax.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            result[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            result[package] = "not installed"
    return result | {"platform": f"{platform.system()} {platform.machine()}"}


def _short(part: Any) -> Any:
    """The last word of a part's `fn`; a plain value unchanged."""
    if isinstance(part, Mapping):
        return str(part.get("fn", "-")).rpartition(".")[2]
    return part


def _scores(scores: Mapping[str, Mapping[str, Number]]) -> dict[str, dict[str, float]]:
    return {
        column: {
            metric.removeprefix("eval/"): float(value)
            for metric, value in metrics.items()
        }
        for column, metrics in scores.items()
    }


def _retrieval(retrieval: Retrieval, folder: Path) -> dict[str, Any]:
    """The values of a retrieval task for the template."""
    values = vars(retrieval) | {"curves": page.picture(retrieval.curves, folder)}
    return values | {"tables": [_table(each, folder) for each in retrieval.tables]}


def _table(shown: Shown, folder: Path) -> dict[str, Any]:
    """The values of a table and its figure for the template."""
    table, drawing = shown.table, shown.table.drawing
    return {
        "title": table.title,
        "columns": table.by_column(),
        "corner": table.corner,
        "decimals": table.decimals,
        "note": table.note,
        "picture": page.picture(shown.figure, folder),
        "caption": drawing.caption if drawing else "",
    }


def _attention(attention: Attention, folder: Path) -> dict[str, Any]:
    """The values of a document's attention for the template."""
    weights = {
        graph: [[float(f"{weight:.4g}") for weight in row] for row in matrix]
        for graph, matrix in attention.weights.items()
    }  # four digits, not four decimals: only a missing edge has the weight 0
    return {
        "document": attention.document,
        "bars": page.picture(attention.bars, folder),
        "heat": page.picture(attention.heat, folder),
        "nodes": [Section("the document", ""), *attention.passages],
        "matrices": list(weights.values()),
        "rows": {graph: matrix[0] for graph, matrix in weights.items()},
    }
