"""Heat maps and JSON of the similarities of a set of documents (CoLDE, Fig. 4).

`write(folder, similarities)` writes `similarities.json` and for documents, sections,
segments and chunks a heat map with its numbers in a CSV beside it.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

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

    The JSON has the cosines of each kind, with the titles, headings and texts of their
    rows. Sections have no map where every document has one section.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts, maps = {}, {}
    for kind, cosines in by_kind(similarities).items():
        of_sides = [rows(side, kind) for side in similarities.sides]
        facts[kind] = {
            "rows": list(itertools.chain(*of_sides)),
            "cosines": np.round(cosines, DIGITS).tolist(),
        }
        if kind != "sections" or len(cosines) > len(of_sides):
            names = [[list(row.values())[-1] for row in part] for part in of_sides]
            maps[kind] = heat_map(folder / kind, cosines, names)
    json_file.write(folder / "similarities.json", facts)
    return maps


def by_kind(similarities: Similarities) -> dict[str, Float[np.ndarray, "_ _"]]:
    """The cosines of each kind that the model has."""
    cosines = {kind: getattr(similarities, kind) for kind in KINDS}
    return {kind: cosines[kind] for kind in KINDS if cosines[kind] is not None}


def rows(side: Side, kind: str) -> list[dict[str, str]]:
    """What each row of a document stands for; the last value is the row's name."""
    document = {"document": side.title}
    if kind == "documents":
        return [document]
    if kind == "sections":
        return [document | {"section": heading} for heading in side.headings]
    if kind == "chunks":
        return [document | {"text": piece.text} for piece in side.pieces]
    return [
        document | {"section": side.headings[part.section], "text": part.text}
        for part in side.segments
    ]


def heat_map(
    path: Path, cosines: Float[np.ndarray, "c c"], names: Sequence[Sequence[str]]
) -> Path:
    """A map of cosines, with lines between the documents, and with the names of their
    rows; darker is more similar."""
    figure, [axis] = style.grid(1, columns=1, width=6.4, height=5.6)
    style.plain(axis, title=path.stem)
    axis.grid(False)
    image = axis.imshow(cosines, cmap=style.HEAT, interpolation="nearest")
    named = list(itertools.chain(*names))
    if len(named) <= NAMED:
        shown = [label(_shortened(name)) for name in named]
        ticks = range(len(named))
        axis.set_xticks(ticks, shown, rotation=90, fontsize=7)
        axis.set_yticks(ticks, shown, fontsize=7)
    if len(named) > len(names):
        style.borders(axis, np.cumsum([len(part) for part in names])[:-1] - 0.5)
    style.colour_bar(figure, [axis], image, "cosine")
    short = [f"{i} {name[:LETTERS]}" for i, name in enumerate(named)]
    rounded = cosines.astype(float).round(DIGITS)
    values = ((name, *row) for name, row in zip(short, rounded.tolist(), strict=True))
    return style.save(figure, path, ("", *short), values)


def _shortened(name: str) -> str:
    return name if len(name) <= LETTERS else name[:LETTERS] + "…"
