"""One page about a run, `report/index.html`: self-contained, readable offline.

`write(run_dir, Report(...))` makes it from plain data and figure files that exist
already (figures.py draws them); every part that is absent is said to be absent.
"""

import dataclasses
import importlib.metadata
import json
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

import docjax
from docjax.config import plain
from docjax.explain import page
from docjax.explain.page import Number
from docjax.storage import atomic
from docjax.types import Section

PARTS = "source units examples segments views encoder objective batch steps epochs seed".split()
PACKAGES = (
    "jax flax optax orbax-checkpoint grain transformers tokenizers numpy scikit-learn"
).split()


@dataclasses.dataclass(frozen=True)
class Attention:
    """Who attends to whom in one document, node 0 being the document itself."""

    document: str  # its title or id
    passages: Sequence[Section]  # heading and text of nodes 1 to p
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
class Export:
    """A folder for other libraries, and how far its vectors are from the model's."""

    folder: str
    differences: Mapping[str, float]  # library -> largest difference of any number
    documents: int  # that were compared
    words: Sequence[int]  # of the shortest and the longest
    files: Mapping[str, int]  # name -> bytes


@dataclasses.dataclass(frozen=True)
class Report:
    """What the page says. Mappings keep their order; None is said to be missing."""

    name: str
    config: Mapping[str, Any]
    # "after training" -> {"eval/clustering/nmi": 0.52}; more is better in all of them
    scores: Mapping[str, Mapping[str, Number]] = dataclasses.field(default_factory=dict)
    # "train" -> {"documents": 2000, "words cut by caps": 0, "padding": 0.04}
    data: Mapping[str, Mapping[str, Number | str]] = dataclasses.field(
        default_factory=dict
    )
    curves: Path | None = None  # PNGs; their CSVs lie beside them
    tsne: Path | None = None
    attention: Attention | None = None
    words: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    export: Export | None = None
    commands: Mapping[str, str] = dataclasses.field(default_factory=dict)
    versions: Mapping[str, str] = dataclasses.field(default_factory=lambda: versions())


def write(run_dir: Path, report: Report) -> Path:
    """Writes `run_dir/report/index.html` and returns its path."""
    folder = Path(run_dir) / "report"
    sections = {
        "scores": ("Scores", _scores(report)),
        "data": ("Data", _data(report)),
        "training": ("Training", _curves(report, folder)),
        "map": ("Map of the documents", _tsne(report, folder)),
        "attention": ("Attention", _attention(report.attention, folder)),
        "words": ("Words", _words(report.words)),
        "export": ("Export", _export(report)),
        "configuration": ("Configuration", _config(report)),
        "reproduce": ("Reproduce", _reproduce(report)),
    }
    if report.words:
        del sections["attention"]  # a mean of words has none
    else:
        del sections["words"]
    chips = {
        part: _short(report.config[part])
        for part in PARTS
        if report.config.get(part) is not None
    }
    footer = f"Written by docjax {docjax.__version__}."
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    atomic.write_text(
        path,
        page.sectioned("docjax report", report.name, chips, sections, footer),
    )
    return path


def versions() -> dict[str, str]:
    """The versions of docjax, Python and the packages that decide the numbers."""
    found = {"docjax": docjax.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found | {"platform": f"{platform.system()} {platform.machine()}"}


def _short(part: Any) -> Any:
    """The last word of a part's `fn`, or a plain value as it is."""
    if isinstance(part, Mapping):
        return str(part.get("fn", "-")).rpartition(".")[2]
    return part


def _scores(report: Report) -> str:
    if not any(report.scores.values()):
        return page.missing("No scores: no task was evaluated (no labelled documents?)")
    best = _best(report.scores)
    columns = {
        column: {
            metric.removeprefix("eval/"): _score(value, best.get(metric))
            for metric, value in metrics.items()
        }
        for column, metrics in report.scores.items()
    }
    note = "Fractions of 1; more is better; the best of a row is bold."
    return page.table(columns, "metric", "numbers scores") + page.paragraph(note)


def _best(scores: Mapping[str, Mapping[str, Number]]) -> dict[str, float]:
    """The highest finite value of each metric that at least two columns have."""
    best = {}
    for metric in {name for metrics in scores.values() for name in metrics}:
        values = [m[metric] for m in scores.values() if metric in m]
        finite = [float(value) for value in values if math.isfinite(value)]
        if len(finite) > 1 and not metric.endswith("_std"):
            best[metric] = max(finite)
    return best


def _score(value: Number, best: float | None) -> str:
    if not math.isfinite(value):
        return page.text(value)
    shown = f"{float(value):.3f}"
    if float(value) == best:
        shown = f'<span class="best">{shown}</span>'
    return page.bar(max(value, 0), 1, shown)


def _data(report: Report) -> str:
    if not report.data:
        return page.missing("No summary of the data was given.")
    columns = {
        part: {name: page.text(value) for name, value in counts.items()}
        for part, counts in report.data.items()
    }
    return page.table(columns)


def _curves(report: Report, folder: Path) -> str:
    if report.curves is None:
        return page.missing("No training curves: this run logged no training step.")
    return page.figure(
        report.curves, folder, "Loss and scores against the training step."
    )


def _tsne(report: Report, folder: Path) -> str:
    if report.tsne is None:
        return page.missing(
            "No map: it needs at least 5 labelled documents to colour by label."
        )
    return page.figure(
        report.tsne,
        folder,
        "t-SNE of the same documents in each representation; one mark a document, "
        "coloured by its label. Documents of one class should lie together.",
    )


def _attention(attention: Attention | None, folder: Path) -> str:
    if attention is None:
        return page.missing(
            "No attention: this model has no graph attention, or no document was "
            "chosen."
        )
    captions = {
        "bars": "What the document node (0) takes from each node: last layer, mean "
        "over heads.",
        "heat": "All nodes: each row is a node, its colours what it takes from every "
        "node.",
    }
    drawn = "".join(
        page.figure(png, folder, caption)
        for field, caption in captions.items()
        if (png := getattr(attention, field)) is not None
    )
    name = f"<p>Document: <b>{page.text(attention.document)}</b></p>"
    return name + drawn + _passages(attention)


def _passages(attention: Attention) -> str:
    """Strips of bars and the passages' text, linked by node (see page.SCRIPT)."""
    weights = {
        name: [[float(f"{weight:.4g}") for weight in row] for row in matrix]
        for name, matrix in attention.weights.items()
    }  # few digits, but only what is 0 becomes 0: no edge
    rows = {name: receivers[0] for name, receivers in weights.items()}
    strips = "".join(_strip(i, name, row) for i, (name, row) in enumerate(rows.items()))
    head = "".join(f'<th scope="col">{page.text(name)}</th>' for name in rows)
    nodes = [Section("the document", ""), *attention.passages]
    body = "".join(_passage(i, node, rows) for i, node in enumerate(nodes))
    return (
        '<h3>The passages, with the attention of <span id="receiver">the document node'
        "</span></h3><p>Point at a bar to find its passage; choose a node number to "
        "see what that node takes from all others; click a text to read all of it.</p>"
        f'<div class="strips">{strips}</div><table class="passages"><thead><tr>'
        '<th scope="col">node</th>'
        f'<th scope="col">section</th>{head}<th scope="col">text</th></tr></thead>'
        f"<tbody>{body}</tbody></table>"
        + page.data("attention-weights", list(weights.values()))
    )


def _words(words: Mapping[str, Sequence[str]]) -> str:
    cells = {word: page.text(", ".join(near)) for word, near in words.items()}
    note = "Words of the vocabulary, and those whose vectors point the same way."
    return page.table({"nearest words": cells}, "word", "words") + page.paragraph(note)


def _strip(number: int, name: str, row: list[float]) -> str:
    highest = max(row) or 1.0
    bars = "".join(
        f'<i data-node="{node}" style="--share:{weight / highest:.4f}" '
        f'title="node {node}: {_weight(weight)}"></i>'
        for node, weight in enumerate(row)
    )
    strip = f'<div class="strip g{number % 2}">{bars}</div>'
    return f"<div>{page.text(name)}{strip}</div>"


def _passage(number: int, node: Section, rows: Mapping[str, list[float]]) -> str:
    cells = "".join(
        f'<td class="weight g{i % 2}" data-graph="{page.text(name)}">'
        f"{page.bar(row[number], max(row), _weight(row[number]))}</td>"
        for i, (name, row) in enumerate(rows.items())
    )
    picked = ' class="picked"' if number == 0 else ""
    return (
        f'<tr data-node="{number}"{picked}>'
        f'<th scope="row"><button>{number}</button></th>'
        f'<td class="heading">{page.text(node.heading)}</td>{cells}'
        f'<td class="body"><div class="words">{page.text(node.text)}</div></td></tr>\n'
    )


def _weight(weight: float) -> str:
    return f"{weight:.4f}" if weight else "no edge"


def _export(report: Report) -> str:
    found = report.export
    if found is None:
        return page.missing(
            "Not exported: the same command with --mode=export does it."
        )
    least, most = found.words
    note = (
        f"The largest difference of any number to the trained model's vectors, in "
        f"float32, over {found.documents} documents of {least:,} to {most:,} words"
    )
    differences = {
        name: f"{value:.1e}" if value else "0"
        for name, value in found.differences.items()
    }
    sizes = {name: page.text(size) for name, size in found.files.items()}
    trust = ", trust_remote_code=True" if "docjax_module.py" in found.files else ""
    load = (
        f'docjax.load("{found.folder}")\nSentenceTransformer("{found.folder}"{trust})'
    )
    if "transformers" in found.differences:
        note += "; with transformers, of the vectors of their segments"
        load += f'\nAutoModel.from_pretrained("{found.folder}")  # segments alone'
    return (
        page.table({"difference": differences}, "read with")
        + page.paragraph(note + ".")
        + page.pre(load)
        + page.details("files", page.table({"bytes": sizes}, "file"))
    )


def _config(report: Report) -> str:
    shown = json.dumps(plain(report.config), indent=2, ensure_ascii=False)
    return page.details("config.json, fully resolved", page.pre(shown))


def _reproduce(report: Report) -> str:
    if not report.commands:
        commands = page.missing("No command was given.")
    else:
        commands = "".join(
            page.paragraph(what) + page.pre(command)
            for what, command in report.commands.items()
        )
    found = {name: page.text(value) for name, value in report.versions.items()}
    return commands + "<h3>Versions</h3>" + page.table({"version": found}, "software")
