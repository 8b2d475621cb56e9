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
from docjax.comparison import Comparison, Side
from docjax.explain import page

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
    path.write_text(
        page.page(f"{title} · docjax", body, style=STYLE, script=SCRIPT),
        encoding="utf-8",
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


STYLE = """
:root { --chosen:#d3482f; }
.number b { font-size:2.6rem; font-weight:650; line-height:1.1; margin-right:.5rem; }
.controls { display:flex; flex-wrap:wrap; gap:.4rem 2rem; font-size:.92rem; }
.controls label { display:flex; align-items:center; gap:.6rem; }
.controls output { min-width:2.2rem; font-variant-numeric:tabular-nums; }
.shown { margin:.5rem 0; font-size:.92rem; min-height:1.5em; overflow:hidden;
  white-space:nowrap; text-overflow:ellipsis; font-variant-numeric:tabular-nums; }
.compare { display:grid; grid-template-columns:minmax(0,1fr) 11rem minmax(0,1fr); }
.pane { position:relative; max-height:min(75vh,46rem); overflow-y:auto;
  overflow-wrap:anywhere; padding:0 .9rem .5rem; background:var(--card);
  border:1px solid var(--line); border-radius:6px; font-size:.93rem; line-height:1.5; }
.pane:focus-visible,button:focus-visible { outline:2px solid var(--accent); }
.pane h3 { margin:.7rem 0; } .pane h4 { margin:1rem 0 .3rem; }
.pane p { margin:0; padding:.18rem .35rem; border-radius:4px; }
.pane p.linked { cursor:pointer;
  box-shadow:-3px 0 color-mix(in srgb,var(--accent) calc(var(--share)*100%),transparent); }
.pane p.on { background:var(--mark); }
.pane div.on { box-shadow:-4px 0 var(--chosen); }
.map { width:100%; align-self:stretch; overflow:visible; }
.map path { cursor:pointer; pointer-events:visiblePainted; }
.map [data-kind=segments] { fill:none; stroke:var(--accent); stroke-width:4; }
.map [data-kind=sections] { fill:var(--second); fill-opacity:.6; }
.map path.on { stroke:var(--chosen); opacity:1; }
.map rect { fill:var(--soft); opacity:.25; pointer-events:none; }
.links { width:100%; } .links td { vertical-align:top; overflow-wrap:anywhere; }
.links button { font:inherit; color:var(--accent); background:none; cursor:pointer;
  border:1px solid var(--line); border-radius:4px; white-space:nowrap; }
@media (max-width:44rem) {
  .compare { grid-template-columns:1fr 1fr; grid-template-rows:9rem auto; gap:.2rem; }
  .map { grid-area:1/1/2/3; } .pane { padding:0 .4rem; font-size:.82rem; }
  .links thead { display:none; }
  .links tr { display:grid; grid-template-columns:auto 1fr; gap:.1rem .8rem;
    border-bottom:1px solid var(--line); padding:.5rem 0; }
  .links td { border:0; padding:.1rem 0; } .links td:nth-child(n+3) { grid-column:1/3; } }
@media print { .pane { max-height:none; overflow:visible; }
  .controls,.shown { display:none; } }
"""

SCRIPT = """
(() => {
  const all = (query) => [...document.querySelectorAll(query)];
  const data = document.getElementById("links");
  if (!data) return;
  const links = JSON.parse(data.textContent);  // kind -> [[row, column, cosine]]
  const panes = all(".pane"), sliders = all("[type=range]");
  const map = document.querySelector(".map"), shown = document.getElementById("shown");
  const ends = (kind, number) => panes.map((pane, side) =>
    pane.querySelector(`[data-${kind}="${links[kind][number][side]}"]`));
  const words = (element) =>
    (element.querySelector("h4") || element).textContent.slice(0, 60);

  let chosen = null;  // kind and number of the link that was clicked
  const clear = () => all(".on").forEach((element) => element.classList.remove("on"));
  const show = (kind, number) => {
    clear();
    const found = ends(kind, number);
    const path = map.querySelector(`[data-kind=${kind}][data-link="${number}"]`);
    [...found, path].forEach((element) => element && element.classList.add("on"));
    shown.textContent =
      `${links[kind][number][2].toFixed(3)} · ${found.map(words).join("… ↔ ")}…`;
  };
  const go = (kind, number) => {
    chosen = [kind, number];
    show(kind, number);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    ends(kind, number).forEach((element, side) => {
      const room = (panes[side].clientHeight - element.offsetHeight) / 2;
      panes[side].scrollTo({ top: element.offsetTop - Math.max(room, 8),
        behavior: calm ? "auto" : "smooth" });
    });
  };

  const scale = (side) => map.clientHeight / panes[side].scrollHeight;
  const make = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return map.appendChild(made);
  };
  const shape = (kind, number) => {
    const w = map.clientWidth, m = w / 2;
    const [[a, b], [c, d]] = ends(kind, number).map((element, side) =>
      [0, element.offsetHeight].map((y) => (element.offsetTop + y) * scale(side)));
    if (kind === "sections")
      return `M0,${a}C${m},${a} ${m},${c} ${w},${c}V${d}C${m},${d} ${m},${b} 0,${b}Z`;
    const y = (a + b) / 2, z = (c + d) / 2;
    return `M0,${y}C${m},${y} ${m},${z} ${w},${z}`;
  };
  const drawn = (slider) => {
    const kind = slider.dataset.kind, count = +slider.value;
    slider.nextElementSibling.textContent = count;
    const high = links[kind][0][2], low = links[kind][Math.max(count, 1) - 1][2];
    for (let number = count - 1; number >= 0; number--) {  // the strongest on top
      const share = high > low ? (links[kind][number][2] - low) / (high - low) : 1;
      const opacity = (0.25 + 0.75 * share).toFixed(3);
      const path = make("path", { d: shape(kind, number), "data-kind": kind,
        "data-link": number, opacity });
      const passages = kind === "segments" ? ends(kind, number) : [];
      passages.forEach((passage) => {
        passage.classList.add("linked");
        passage.style.setProperty("--share", opacity);
      });
      [path, ...passages].forEach((element) => {
        element.onpointerenter = () => show(kind, number);
        element.onpointerleave = () => (chosen ? show(...chosen) : clear());
        element.onclick = () => getSelection().isCollapsed && go(kind, number);
      });
    }
  };
  const follow = () => map.querySelectorAll("rect").forEach((rect, side) => {
    rect.setAttribute("y", panes[side].scrollTop * scale(side));
    rect.setAttribute("height", panes[side].clientHeight * scale(side));
  });
  const draw = () => {
    map.replaceChildren();
    all(".linked").forEach((passage) => {
      passage.classList.remove("linked");
      passage.onpointerenter = passage.onpointerleave = passage.onclick = null;
    });
    sliders.forEach(drawn);
    panes.forEach((_, side) => make("rect", { x: side ? map.clientWidth - 4 : 0,
      width: 4 }));  // what of each text is in sight
    follow();
    if (chosen) show(...chosen);
  };
  sliders.forEach((slider) => (slider.oninput = draw));
  panes.forEach((pane) => (pane.onscroll = follow));
  all(".links button").forEach((button) => (button.onclick = () => {
    go(button.dataset.kind, +button.dataset.link);
    document.querySelector(".compare").scrollIntoView({ block: "center" });
  }));
  new ResizeObserver(draw).observe(map);
})();
"""
