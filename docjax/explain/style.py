"""The style of all figures (colours, panels, legends), and their files: PNG and CSV."""

import csv
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from docjax.explain.printable import label
from docjax.storage import atomic

# A search chose these colours: any two differ by at least 22 in CIELAB, for normal
# vision and for simulated protanopia, deuteranopia and tritanopia. If there are more
# classes, the colours repeat with another marker.
COLOURS = (
    "#0072b2 #e69f00 #c33c69 #69d2c3 #3c2da5 #96873c #f0a5ff #4b3c00 #a5d296 #78005a"
).split()
MARKERS = "os^D"
INK, EDGE, FAINT = "#333333", "#999999", "#e0e0e0"
HEAT = "YlGnBu"  # of heat maps
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
    """Sets the title and the labels of an axis; draws a faint grid and half a frame."""
    axis.set_title(label(title), fontsize=10, color=INK, parse_math=False)
    axis.set_xlabel(x, fontsize=9, color=INK)
    axis.set_ylabel(y, fontsize=9, color=INK)
    axis.tick_params(labelsize=8, colors=INK)
    axis.grid(True, color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[:].set_color(EDGE)


def legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    """A legend of the drawn artists below all panels, in as many columns as fit.

    The figure grows by the height of the legend, so that the panels keep their height.
    Matplotlib itself would leave out names that are empty or start with "_".
    """
    texts = list(map(label, handles))
    fits = int(figure.get_figwidth() / (0.075 * max(map(len, texts)) + 0.35))
    columns = max(1, min(len(texts), fits))
    rows = -(-len(texts) // columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * rows + 0.1)
    box = figure.legend(
        list(handles.values()),
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
    for text in box.get_texts():
        text.set_parse_math(False)


def borders(axis: Axes, places: Iterable[float]) -> None:
    """Lines across a heat map, at the same places of rows and of columns."""
    for place in places:
        axis.axhline(place, color=INK, linewidth=0.6)
        axis.axvline(place, color=INK, linewidth=0.6)


def colour_bar(
    figure: Figure, axes: Sequence[Axes], image: AxesImage, text: str
) -> None:
    """The scale of the colours of an image, beside `axes`."""
    bar = figure.colorbar(image, ax=axes, fraction=0.03, pad=0.02)
    bar.set_label(text, fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    bar.outline.set_edgecolor(EDGE)


def class_styles(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The colour and marker of each class; the rarest of too many classes get none."""
    most = len(COLOURS) * len(MARKERS)
    kept = sorted(name for name, _ in Counter(labels).most_common(most))
    return {
        name: (COLOURS[i % len(COLOURS)], MARKERS[i // len(COLOURS)])
        for i, name in enumerate(kept)
    }


def save(
    figure: Figure, path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Path:
    """Writes `path.png` (the figure) and `path.csv` (its numbers); returns the PNG."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    png, table = (path.parent / f"{path.name}{end}" for end in (".png", ".csv"))
    with warnings.catch_warnings(), atomic.partial(png) as partial:
        # The font draws a box for a missing character; the CSV has the character.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(partial, format="png", facecolor="white")
    text = dict(newline="", encoding="utf-8", errors="backslashreplace")
    with atomic.partial(table) as partial, partial.open("w", **text) as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows([_exact(value) for value in row] for row in rows)
    return png


def _exact(value: Any) -> Any:
    """A float with nine digits, which restore every float32 exactly."""
    return f"{value:.9g}" if isinstance(value, (float, np.floating)) else value
