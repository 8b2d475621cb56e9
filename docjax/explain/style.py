"""How every figure looks and is saved: colours, panels, legends, PNG beside CSV."""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docjax.storage import atomic

# Chosen by search: any two differ by at least 25 in CIELAB, for normal vision and for
# simulated protanopia, deuteranopia and tritanopia. Further classes repeat the colours
# with another marker.
COLOURS = (
    "#0072b2 #e69f00 #c33c69 #69d2c3 #3c2da5 #96873c #f0a5ff #4b3c00 #a5d296 #78005a"
).split()
MARKERS = "os^D"
INK, EDGE, FAINT = "#333333", "#999999", "#e0e0e0"
DPI = 120


def grid(
    panels: int, columns: int, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """A figure of `panels` panels in rows of at most `columns`; sizes in inches."""
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure((width * columns, height * rows), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    for unused in axes[panels:]:
        unused.remove()
    return figure, list(axes[:panels])


def plain(axis: Axes, title: str, x: str = "", y: str = "") -> None:
    """Title, axis labels and a faint grid; no frame at the top and right."""
    axis.set_title(title, fontsize=10, color=INK)
    axis.set_xlabel(x, fontsize=9, color=INK)
    axis.set_ylabel(y, fontsize=9, color=INK)
    axis.tick_params(labelsize=8, colors=INK)
    axis.grid(True, color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[:].set_color(EDGE)


def legend(figure: Figure, axis: Axes, columns: int | None = None) -> None:
    """One legend below all panels, in as many columns as fit (at most `columns`).

    The figure grows by the legend's height, so that the panels keep theirs.
    """
    handles, texts = axis.get_legend_handles_labels()
    fits = int(figure.get_figwidth() / (0.075 * max(map(len, texts)) + 0.35))
    columns = max(1, min(columns or len(texts), fits))
    rows = -(-len(texts) // columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * rows + 0.1)
    figure.legend(
        handles,
        texts,
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
        markerscale=1.5,
        frameon=False,
        labelcolor=INK,
        handletextpad=0.3,
        columnspacing=1.2,
    )


def class_styles(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each class; of the most frequent ones if there are many."""
    most = len(COLOURS) * len(MARKERS)
    kept = sorted(label for label, _ in Counter(labels).most_common(most))
    return {
        label: (COLOURS[i % len(COLOURS)], MARKERS[i // len(COLOURS)])
        for i, label in enumerate(kept)
    }


def save(
    figure: Figure, path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Path:
    """Writes `path` with `.png` (the figure) and `.csv` (its numbers); the PNG."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    png, table = (path.parent / f"{path.name}{end}" for end in (".png", ".csv"))
    with atomic.partial(png) as partial:
        figure.savefig(partial, format="png", facecolor="white")
    with (
        atomic.partial(table) as partial,
        partial.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_exact(value) for value in row] for row in rows)
    return png


def _exact(value: Any) -> Any:
    """Nine digits give every float32 back exactly."""
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else value
