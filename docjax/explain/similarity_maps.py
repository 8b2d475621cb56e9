"""Heat maps and JSON of the similarities of a set of documents (CoLDE, Fig. 4).

`write(folder, similarities)` writes `similarities.json` and for documents, sections,
segments and chunks a heat map with its numbers in a CSV beside it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.explain import style
from docjax.explain.printable import label
from docjax.model.compare import Side, Similarities
from docjax.storage import json_file

KINDS = ("documents", "sections", "segments", "chunks")
NAMED = 20  # the most rows with a name at the margin of a map
LETTERS = 24  # of a name
DIGITS = 4


def write(folder: Path, similarities: Similarities) -> dict[str, Path]:
    """Writes the JSON and the maps; gives the PNG of each kind that has a map.

    Sections are left out where every document has one section.
    """
    folder.mkdir(parents=True, exist_ok=True)
    json_file.write(folder / "similarities.json", facts(similarities))
    return {
        kind: heat_map(folder / kind, cosines, names(similarities.sides, kind))
        for kind, cosines in by_kind(similarities).items()
        if kind != "sections" or len(cosines) > len(similarities.documents)
    }


def by_kind(similarities: Similarities) -> dict[str, Float[np.ndarray, "_ _"]]:
    """The cosines of each kind that the model has."""
    cosines = {kind: getattr(similarities, kind) for kind in KINDS}
    return {kind: cosines[kind] for kind in KINDS if cosines[kind] is not None}


def facts(similarities: Similarities) -> dict[str, Any]:
    """The cosines as JSON, with the titles, headings and texts of their rows."""
    return {
        kind: {
            "rows": rows(similarities.sides, kind),
            "cosines": np.round(cosines, DIGITS).tolist(),
        }
        for kind, cosines in by_kind(similarities).items()
    }


def rows(sides: Sequence[Side], kind: str) -> list[dict[str, Any]]:
    """What each row of a matrix stands for."""
    if kind == "documents":
        return [{"document": side.title} for side in sides]
    if kind == "sections":
        return [
            {"document": side.title, "section": heading}
            for side in sides
            for heading in side.headings
        ]
    if kind == "chunks":
        return [
            {"document": side.title, "text": piece.text}
            for side in sides
            for piece in side.pieces
        ]
    return [
        {
            "document": side.title,
            "section": side.headings[segment.section],
            "text": segment.text,
        }
        for side in sides
        for segment in side.segments
    ]


def names(sides: Sequence[Side], kind: str) -> list[tuple[int, str]]:
    """The number of its document and a name of each row of a matrix."""
    if kind == "documents":
        return [(i, side.title) for i, side in enumerate(sides)]
    if kind == "sections":
        return [(i, name) for i, side in enumerate(sides) for name in side.headings]
    texts = lambda side: side.pieces if kind == "chunks" else side.segments
    return [(i, each.text) for i, side in enumerate(sides) for each in texts(side)]


def heat_map(
    path: Path, cosines: Float[np.ndarray, "c c"], named: Sequence[tuple[int, str]]
) -> Path:
    """A map of cosines, with lines between the documents; darker is more similar."""
    figure, [axis] = style.grid(1, columns=1, width=6.4, height=5.6)
    style.plain(axis, title=path.stem)
    axis.grid(False)
    image = axis.imshow(cosines, cmap=style.HEAT, interpolation="nearest")
    of_rows = [number for number, _ in named]
    if len(named) <= NAMED:
        shown = [label(_shortened(name)) for _, name in named]
        ticks = range(len(named))
        axis.set_xticks(ticks, shown, rotation=90, fontsize=7)
        axis.set_yticks(ticks, shown, fontsize=7)
    if len(named) > len(set(of_rows)):
        for place in np.flatnonzero(np.diff(of_rows)) + 0.5:
            axis.axhline(place, color=style.INK, linewidth=0.6)
            axis.axvline(place, color=style.INK, linewidth=0.6)
    bar = figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02)
    bar.set_label("cosine", fontsize=9, color=style.INK)
    bar.outline.set_edgecolor(style.EDGE)
    short = [f"{i} {name[:LETTERS]}" for i, (_, name) in enumerate(named)]
    rounded = cosines.astype(float).round(DIGITS)
    values = ((name, *row) for name, row in zip(short, rounded.tolist(), strict=True))
    return style.save(figure, path, ("", *short), values)


def _shortened(name: str) -> str:
    return name if len(name) <= LETTERS else name[:LETTERS] + "…"
