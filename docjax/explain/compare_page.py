"""The page that shows why two documents are similar: `write(path, comparison)`.

The page shows both texts side by side. Bands between the texts are the strongest links
of their sections, and curves are the strongest links of their segments. They end at the
passages, and follow them when a text is scrolled or the window changes.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from docjax.explain import page
from docjax.explain.yardstick import Yardstick
from docjax.model.compare import Comparison, Side
from docjax.storage import atomic

STYLE = page.FOLDER / "compare_page.css"
SCRIPT = page.FOLDER / "compare_page.js"
LINKS = {"sections": 50, "segments": 200}  # the most links on a page
DRAWN = {"sections": 5, "segments": 20}  # of these at first, and in the table
CHUNKS = 10  # the most pairs of chunks in the table
WORDS = 16  # words of a segment in the table
NAMES = "A", "B"
TEMPLATE = page.template(
    page.FOLDER / "compare_page.html.jinja", script=SCRIPT, styles=[STYLE]
)
Link = tuple[int, int, float]  # row, column, cosine


def write(
    path: Path, comparison: Comparison, yardstick: Yardstick | None = None
) -> Path:
    """Writes the page of a comparison, one file, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, html(comparison, yardstick))
    return path


def html(comparison: Comparison, yardstick: Yardstick | None = None) -> str:
    """The page of a comparison."""
    title = f"{comparison.a.title} · {comparison.b.title}"
    return TEMPLATE.render(title=title, **values(comparison, yardstick))


def facts(comparison: Comparison, yardstick: Yardstick | None = None) -> dict[str, Any]:
    """A comparison as JSON: the similarity, the texts and the strongest links."""
    told = {
        **measured(comparison, yardstick),
        "documents": [_document(side) for side in (comparison.a, comparison.b)],
        "links": links(comparison),
    }
    if comparison.chunks:
        told["chunks"] = chunk_links(comparison)
    return told


def measured(
    comparison: Comparison, yardstick: Yardstick | None = None
) -> dict[str, float | None]:
    """The similarity, and its percentile among pairs of the model's corpus; None
    without a corpus."""
    similarity = comparison.similarity
    percentile = yardstick.percentile(similarity) if yardstick else None
    return {"similarity": round(similarity, 6), "percentile": percentile}


def chunk_links(comparison: Comparison) -> list[dict[str, Any]]:
    """The pairs of chunks with the highest weighted similarity, at most CHUNKS, and how
    A's chunk attends to B's chunk; none without chunk attention."""
    chunks = comparison.chunks
    if chunks is None:
        return []
    return [
        {
            "a": comparison.a.pieces[row].text,
            "b": comparison.b.pieces[column].text,
            "weighted": weighted,  # cosine times attention
            "attention": round(float(chunks.weights[row, column]), 4),
            "cosine": round(float(chunks.cosines[row, column]), 4),
        }
        for row, column, weighted in strongest(chunks.weighted, CHUNKS)
    ]


def links(comparison: Comparison) -> dict[str, list[Link]]:
    """The strongest links between sections and between segments, at most LINKS each."""
    return {
        kind: strongest(getattr(comparison, kind), most) for kind, most in LINKS.items()
    }


def link_records(comparison: Comparison, kind: str, most: int) -> list[dict[str, Any]]:
    """The `most` strongest links between "segments" or "sections", with their texts."""
    sides = comparison.a, comparison.b
    texts = [
        [segment.text for segment in side.segments]
        if kind == "segments"
        else side.headings
        for side in sides
    ]
    return [
        {"similarity": cosine, "a": texts[0][row], "b": texts[1][column]}
        for row, column, cosine in strongest(getattr(comparison, kind), most)
    ]


def strongest(cosines: Float[np.ndarray, "_ _"], most: int) -> list[Link]:
    """The `most` highest cosines of a matrix with their places, highest first."""
    flat = cosines.ravel()
    highest = np.argpartition(-flat, min(most, flat.size) - 1)[:most]
    highest = highest[np.argsort(-flat[highest], kind="stable")]
    rows, columns = np.unravel_index(highest, cosines.shape)
    return [
        (int(row), int(column), round(float(cosines[row, column]), 4))
        for row, column in zip(rows, columns)
    ]


def values(
    comparison: Comparison, yardstick: Yardstick | None = None
) -> dict[str, Any]:
    """The values for `comparison.html.jinja`: the cosine, the texts, the links."""
    chosen = links(comparison)
    if comparison.sections.size == 1:
        chosen["sections"] = []  # the same cosine as that of the documents
    drawn = {  # fewer between short texts
        kind: chosen[kind][: min(most, max(getattr(comparison, kind).shape))]
        for kind, most in DRAWN.items()
    }
    return {
        **measured(comparison, yardstick),
        "yardstick": yardstick,
        "sides": dict(zip(NAMES, (comparison.a, comparison.b))),
        "passages": passages,
        "links": chosen,
        "drawn": drawn,
        "beginning": beginning,
        "chunks": chunk_links(comparison),
        "first_words": first_words,
    }


def passages(side: Side) -> list[list[tuple[int, str]]]:
    """The number and the text of each segment, by section."""
    sections = [[] for _ in side.headings]
    for number, segment in enumerate(side.segments):
        sections[segment.section].append((number, segment.text))
    return sections


def beginning(side: Side, kind: str, number: int) -> str:
    """The heading of a section, or the first words of a segment."""
    if kind == "sections":
        return side.headings[number] or "(no heading)"
    return first_words(side.segments[number].text)


def first_words(text: str, most: int = WORDS) -> str:
    """The first words of a text."""
    words = text.split()
    return " ".join(words[:most]) + (" …" if len(words) > most else "")


def _document(side: Side) -> dict[str, Any]:
    return {
        "title": side.title,
        "headings": side.headings,
        "segments": [dataclasses.asdict(segment) for segment in side.segments],
        "tokens": len(side.whole.tokens),
        "segments_cut": side.segments_cut,
        "tokens_cut": side.tokens_cut,
    }
