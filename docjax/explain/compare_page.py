"""The page that shows why two documents are similar: `compare.write(path, found)`.

Both texts side by side, the strongest links of their sections (bands) and segments
(curves) between them. The curves end where the passages lie: at their very place if a
text fits its pane, otherwise at their place in the whole text, as a scroll bar shows it.
"""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

import docjax
from docjax.explain import page
from docjax.model.compare import Comparison, Side
from docjax.storage import atomic

STYLE = Path(__file__).with_name("compare_page.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("compare_page.js").read_text("utf-8")
LINKS = {"sections": 50, "segments": 200}  # that a page holds
DRAWN = {"sections": 5, "segments": 20}  # at first, and listed in the table, at most
WORDS = 16  # of a segment in the table
NAMES = "A", "B"
Link = tuple[int, int, float]  # row, column, cosine


def write(path: Path, found: Comparison) -> Path:
    """Writes the page of a comparison, one file without any other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    title = f"{found.a.title} · {found.b.title}"
    body = (
        f'<header><div class="kind">docjax compare</div><h1>{page.text(title)}</h1>'
        f"</header>\n<main>{parts(found)}</main>"
        f"<footer>Written by docjax {docjax.__version__}.</footer>"
    )
    atomic.write_text(
        path,
        page.page(f"{title} · docjax", body, style=STYLE, script=SCRIPT),
    )
    return path


def facts(found: Comparison) -> dict[str, Any]:
    """A comparison as JSON: the similarity, the texts and the strongest links."""
    return {
        "similarity": round(found.similarity, 6),
        "documents": [_document(side) for side in (found.a, found.b)],
        "links": links(found),
    }


def links(found: Comparison) -> dict[str, list[Link]]:
    """The strongest links of sections and segments, at most LINKS of each."""
    return {kind: strongest(getattr(found, kind), most) for kind, most in LINKS.items()}


def strongest(cosines: Float[np.ndarray, "_ _"], most: int) -> list[Link]:
    """The `most` highest numbers of a matrix with their places, highest first."""
    flat = cosines.ravel()
    highest = np.argpartition(-flat, min(most, flat.size) - 1)[:most]
    highest = highest[np.argsort(-flat[highest], kind="stable")]
    rows, columns = np.unravel_index(highest, cosines.shape)
    return [
        (int(row), int(column), round(float(cosines[row, column]), 4))
        for row, column in zip(rows, columns)
    ]


def parts(found: Comparison) -> str:
    """The sections of the page: the number, the texts with links, the table."""
    chosen = links(found)
    if found.sections.size == 1:
        chosen["sections"] = []  # nothing that the documents' number does not say
    return (
        _numbers(found)
        + page.section("texts", "Where they are similar", _texts(found, chosen))
        + page.section("strongest", "The strongest links", _table(found, chosen))
        + page.data("links", chosen)
    )


def _document(side: Side) -> dict[str, Any]:
    return {
        "title": side.title,
        "headings": side.headings,
        "segments": [
            {"section": segment.section, "text": segment.text}
            for segment in side.segments
        ],
        "tokens": len(side.whole.tokens),
        "segments_cut": side.segments_cut,
        "tokens_cut": side.tokens_cut,
    }


def _numbers(found: Comparison) -> str:
    chips = "".join(
        f"<li>{name} <b>{page.text(len(side.whole.tokens))}</b> tokens, "
        f"<b>{page.text(len(side.segments))}</b> passages</li>"
        for name, side in zip(NAMES, (found.a, found.b))
    )
    cut = "".join(
        page.missing(
            f"The model's cap leaves {side.tokens_cut:,} tokens ({side.segments_cut:,} "
            f"segments) at the end of document {name} out of its vector."
        )
        for name, side in zip(NAMES, (found.a, found.b))
        if side.segments_cut
    )
    return (
        f'<p class="number"><b>{found.similarity:.3f}</b> cosine of the two documents'
        f'</p><ul class="chips">{chips}</ul>{cut}'
    )


def _texts(found: Comparison, chosen: dict[str, list[Link]]) -> str:
    controls = "".join(
        f'<label>{name} <input type="range" min="0" max="{len(chosen[kind])}" '
        f'value="{len(_drawn(found, chosen, kind))}" data-kind="{kind}">'
        f"<output></output></label>"
        for kind, name in (("sections", "section links"), ("segments", "passage links"))
        if chosen[kind]
    )
    panes = [_pane(*named) for named in zip(NAMES, (found.a, found.b))]
    return (
        "<p>The stronger its colour, the more similar are the ends of a link. Point at a "
        "link or a marked passage to read its cosine; click it to see both ends.</p>"
        f'<div class="controls">{controls}</div><p class="shown" id="shown" role="status">&nbsp;</p>'
        f'<div class="compare">{panes[0]}<svg class="map" aria-hidden="true"></svg>'
        f"{panes[1]}</div>"
    )


def _drawn(found: Comparison, chosen: dict[str, list[Link]], kind: str) -> list[Link]:
    """The links that are shown at first: fewer between short texts."""
    return chosen[kind][: min(DRAWN[kind], max(getattr(found, kind).shape))]


def _pane(name: str, side: Side) -> str:
    """One document's text: sections in order, in each its segments."""
    passages = [""] * len(side.headings)
    for i, segment in enumerate(side.segments):
        passages[segment.section] += (
            f'<p data-segments="{i}">{page.text(segment.text)}</p>'
        )
    inside = "".join(
        f'<div data-sections="{i}">'
        + (f"<h4>{page.text(heading)}</h4>" if heading else "")
        + f"{inner}</div>"
        for i, (heading, inner) in enumerate(zip(side.headings, passages))
    )
    title = name if side.title == name else f"{name}: {side.title}"
    return (
        f'<div class="pane" tabindex="0" role="region" aria-label="document {name}">'
        f"<h3>{page.text(title)}</h3>{inside}</div>"
    )


def _table(found: Comparison, chosen: dict[str, list[Link]]) -> str:
    rows = "".join(
        _row(found, kind, number, link)
        for kind in ("sections", "segments")
        for number, link in enumerate(_drawn(found, chosen, kind))
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", "cosine", *NAMES))
    return (
        f'<table class="links"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _row(found: Comparison, kind: str, number: int, link: Link) -> str:
    name = "section" if kind == "sections" else "passage"
    row, column, cosine = link
    cells = "".join(
        f"<td>{page.text(_words(side, kind, end))}</td>"
        for side, end in ((found.a, row), (found.b, column))
    )
    bar = page.bar(max(cosine, 0), 1, f"{cosine:.3f}")
    return (
        f'<tr><td><button data-kind="{kind}" data-link="{number}">{name} {number + 1}'
        f"</button></td><td>{bar}</td>{cells}</tr>\n"
    )


def _words(side: Side, kind: str, number: int) -> str:
    """The beginning of a segment, or the name of a section."""
    if kind == "sections":
        return side.headings[number] or "(no heading)"
    words = side.segments[number].text.split()
    return " ".join(words[:WORDS]) + (" …" if len(words) > WORDS else "")
