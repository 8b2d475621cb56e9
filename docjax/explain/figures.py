"""Figures of a run: training curves, t-SNE panels, attention.

Each function takes plain arrays and a path stem, writes `stem.png` and `stem.csv`
(the numbers that the figure shows) and returns the PNG's path. This module does not
know models or run directories; run_page.py puts the files on a page.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D

from docjax.errors import UserError
from docjax.explain import style, tsne
from docjax.types import Drawing


def curves(
    path: Path, runs: Mapping[str, Sequence[Mapping[str, Any]]], metrics: Sequence[str]
) -> Path:
    """Metrics against the training step: a panel per metric, a line per run.

    Args:
      runs: display name of a run -> the parsed lines of its metrics.jsonl.
      metrics: flat names; a metric that no run has gets no panel.

    Raises:
      UserError: if no run has any of the metrics.
    """
    points = {
        metric: {run: _points(lines, metric) for run, lines in runs.items()}
        for metric in metrics
    }
    points = {m: lines for m, lines in points.items() if any(lines.values())}
    if not points:
        raise UserError(
            f"no curve to draw: {', '.join(runs) or 'no run'} logged none of "
            f"{', '.join(metrics)}; lower log_every or name other metrics"
        )
    figure, axes = style.grid(len(points), columns=2, width=3.7, height=2.7)
    for axis, (metric, lines) in zip(axes, points.items(), strict=True):
        style.plain(axis, title=metric, x="step")
        handles = _lines(axis, lines)
    if len(runs) > 1:
        style.legend(figure, handles)
    rows = [
        (metric, run, step, value)
        for metric, lines in points.items()
        for run, pairs in lines.items()
        for step, value in pairs
    ]
    return style.save(figure, path, ("metric", "run", "step", "value"), rows)


def weights(
    path: Path, weights: Sequence[float], curves: Mapping[str, Sequence[float]]
) -> Path:
    """The score of fused systems against the weight of their vectors; a line each."""
    figure, [axes] = style.grid(1, columns=1, width=6.0, height=3.2)
    lines = {n: list(zip(weights, y, strict=True)) for n, y in curves.items()}
    handles = _lines(axes, lines)
    across = "weight of the vectors (0: words alone)"
    style.plain(axes, "fusion with BM25", across, "nDCG@10")
    if len(handles) > 1:
        style.legend(figure, handles)
    rows = [(name, *point) for name, points in lines.items() for point in points]
    return style.save(figure, path, ("system", "weight", "ndcg@10"), rows)


def tsne_panels(
    path: Path,
    panels: Mapping[str, tsne.Vectors],
    labels: Sequence[str],
    *,
    ids: Sequence[str] | None = None,
    most: int = 1000,
) -> Path:
    """t-SNE maps of the same documents in several representations, side by side.

    A panel is a matrix of dense vectors or a sparse (TF-IDF) matrix; each row is a
    document. For more than `most` documents, all panels show the same random sample and
    the title says so. The CSV has row numbers if `ids` is None.

    Raises:
      UserError: for fewer than 5 documents, panels of different length, or vectors
        that are not finite.
    """
    tsne.check(panels, labels, ids)
    chosen = tsne.sample(len(labels), most)
    maps = {n: tsne.positions(x[chosen]) for n, x in panels.items()}
    shown = [labels[i] for i in chosen]
    figure, axes = style.grid(len(maps), columns=2, width=3.7, height=3.7)
    for axis, (name, xy) in zip(axes, maps.items(), strict=True):
        style.plain(axis, title=name)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set(visible=True, color=style.FAINT)
        handles = _scatter(axis, xy, shown)
    style.legend(figure, handles)
    sampled = f" (sampled from {len(labels):,})" if len(chosen) < len(labels) else ""
    figure.suptitle(
        f"t-SNE of {len(chosen):,} documents{sampled}", fontsize=11, color=style.INK
    )
    rows = [
        (name, i if ids is None else ids[i], x, y, labels[i])
        for name, xy in maps.items()
        for i, (x, y) in zip(chosen, xy, strict=True)
    ]
    return style.save(figure, path, ("panel", "id", "x", "y", "label"), rows)


def drawing(folder: Path, drawn: Drawing) -> Path:
    """The figure of a task: lines over the columns of its rows, or bars."""
    figure, [axes] = style.grid(1, columns=1, width=6.4, height=3.4)
    names = list(dict.fromkeys(name for row in drawn.rows.values() for name in row))
    draw = {"lines": _row_lines, "bars": _row_bars}[drawn.kind]
    handles = draw(axes, drawn, names)
    style.plain(axes, drawn.title, drawn.x, drawn.y)
    axes.set_xticks(range(len(names)), names)
    if len(handles) > 1:
        style.legend(figure, handles)
    rows = [
        (row, name, value, drawn.deviations.get(row, {}).get(name, ""))
        for row, values in drawn.rows.items()
        for name, value in values.items()
    ]
    header = ("row", drawn.x or "column", drawn.y, "deviation")
    return style.save(figure, folder / drawn.name, header, rows)


def _row_lines(axes: Axes, drawn: Drawing, names: Sequence[str]) -> dict[str, Any]:
    handles = {}
    for number, (row, values) in enumerate(drawn.rows.items()):
        deviations = drawn.deviations.get(row, {})
        handles[row] = axes.errorbar(
            list(map(names.index, values)),
            list(values.values()),
            [deviations.get(name, 0.0) for name in values],
            color=style.COLOURS[number % len(style.COLOURS)],
            marker=style.MARKERS[number % len(style.MARKERS)],
            markersize=4,
            linewidth=1.4,
            capsize=2,
        )
    return handles


def _row_bars(axes: Axes, drawn: Drawing, names: Sequence[str]) -> dict[str, Any]:
    handles, width = {}, 0.8 / len(drawn.rows)
    for number, (row, values) in enumerate(drawn.rows.items()):
        left = 0.5 * width - 0.4 + number * width
        handles[row] = axes.bar(
            [names.index(name) + left for name in values],
            list(values.values()),
            width,
            color=style.COLOURS[number % len(style.COLOURS)],
        )
    axes.grid(False, axis="x")
    return handles


def document_attention(
    path: Path, panels: Mapping[str, Float[np.ndarray, " _"]]
) -> Path:
    """Bars of the document node's attention over all nodes, a panel per graph."""
    figure, axes = style.grid(len(panels), columns=2, width=5.4, height=2.6)
    highest = max(float(weights.max()) for weights in panels.values())
    for number, (name, weights) in enumerate(panels.items()):
        axis = axes[number]
        style.plain(axis, title=name, x="node (0 = document)", y="attention weight")
        axis.bar(range(len(weights)), weights, color=style.COLOURS[number])
        axis.set(xlim=(-0.7, len(weights) - 0.3), ylim=(0, 1.05 * highest))
        axis.grid(False, axis="x")
        axis.xaxis.get_major_locator().set_params(integer=True)
    rows = [(n, i, w) for n, weights in panels.items() for i, w in enumerate(weights)]
    return style.save(figure, path, ("panel", "node", "weight"), rows)


def node_attention(
    path: Path,
    panels: Mapping[str, Float[np.ndarray, "_ _"]],
    sections: Sequence[int] | None = None,
) -> Path:
    """Heat maps of the attention that a node (row) pays to a node (column).

    All panels have the same colour scale. The colour grows with the square root of the
    weight; pairs without an edge (weight exactly 0) are grey. Lines separate the
    `sections` of the segments [p].
    """
    figure, axes = style.grid(len(panels), columns=2, width=4.8, height=4.4)
    norm = PowerNorm(0.5, 0, max(float(w.max()) for w in panels.values()))
    for axis, (name, weights) in zip(axes, panels.items(), strict=True):
        style.plain(axis, title=name, x="attends to node", y="node (0 = document)")
        axis.grid(False)
        axis.set_facecolor(style.FAINT)
        edges = np.ma.masked_equal(weights, 0)
        image = axis.imshow(edges, norm=norm, cmap=style.HEAT, interpolation="nearest")
        style.borders(axis, boundaries(sections or ()))
    style.colour_bar(figure, axes, image, "attention weight (grey: no edge)")
    rows = [
        (name, receiver, sender, weight)
        for name, weights in panels.items()
        for (receiver, sender), weight in np.ndenumerate(weights)
    ]
    return style.save(figure, path, ("panel", "receiver", "sender", "weight"), rows)


def boundaries(sections: Sequence[int]) -> list[float]:
    """The places between node numbers where a section begins; node 0 has no section."""
    before = (None, *sections)
    return [i + 0.5 for i, section in enumerate(sections) if section != before[i]]


def _points(lines: Sequence[Mapping[str, Any]], metric: str) -> list[tuple[int, float]]:
    numbers = (int, float)  # a metric that was not measured is missing or null
    return [(x["step"], x[metric]) for x in lines if isinstance(x.get(metric), numbers)]


def _lines(axis: Axes, lines: Mapping[str, Sequence[tuple]]) -> dict[str, Line2D]:
    """Draws lines of points and returns them by name.

    Their strokes differ too, so that a line below an equal one is seen.
    """
    handles = {}
    for number, (name, points) in enumerate(lines.items()):
        few = len(points) <= 25
        [handles[name]] = axis.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=style.COLOURS[number % len(style.COLOURS)],
            linestyle=("-", "--", ":", "-.")[number % 4],
            linewidth=1.6,
            marker=style.MARKERS[number % len(style.MARKERS)] if few else "",
            markersize=4,
        )
    return handles


def _scatter(
    axis: Axes, xy: np.ndarray, labels: Sequence[str]
) -> dict[str, PathCollection]:
    """Draws the marks of each class; returns them by the name in the legend."""
    names = np.asarray(labels, dtype=object)
    styles = style.class_styles(labels)
    groups = [(name, names == name, *look) for name, look in styles.items()]
    rare = ~np.isin(names, list(styles))
    if rare.any():
        name = f"other ({len(set(names[rare]))} classes)"
        groups.append((name, rare, style.EDGE, "."))
    return {
        name: axis.scatter(*xy[rows].T, s=11, c=colour, marker=marker, linewidths=0)
        for name, rows, colour, marker in groups
    }
