"""The bricks of a self-contained HTML page: escaping, tables, figures, style, script.

Nothing here knows what a run is; report.py chooses what the page says. A page loads
nothing: images are data URIs, and its Content-Security-Policy forbids the network.
"""

import base64
import html
import json
import math
import numbers
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

Number = int | float | np.number


def page(title: str, body: str) -> str:
    """A whole HTML document around `body`, which must be escaped already."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
<script>{SCRIPT}</script>
</body>
</html>
"""


def sectioned(
    kind: str,
    name: str,
    chips: Mapping[str, Any],
    sections: Mapping[str, tuple[str, str]],
    footer: str,
) -> str:
    """A whole page of sections, with links to them at its top.

    Args:
      chips: facts to show under the name.
      sections: anchor -> heading and content, escaped already.
    """
    facts = "".join(f"<li>{text(k)} <b>{text(v)}</b></li>" for k, v in chips.items())
    links = "".join(f'<a href="#{n}">{h}</a>' for n, (h, _) in sections.items())
    body = "".join(section(n, h, part) for n, (h, part) in sections.items())
    return page(
        f"{name} · docjax",
        f'<header><div class="kind">{text(kind)}</div><h1>{text(name)}</h1>'
        f'<ul class="chips">{facts}</ul></header>\n<nav><div>{links}</div></nav>\n'
        f"<main>{body}</main><footer>{text(footer)}</footer>",
    )


def text(value: Any) -> str:
    """Any value as text of the page: numbers grouped and rounded, the rest escaped."""
    if isinstance(value, (bool, np.bool_)):
        return str(value)
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        return f"{float(value):,.4g}" if math.isfinite(value) else "not finite"
    return html.escape(str(value))


def section(name: str, heading: str, *parts: str) -> str:
    """A section with an anchor."""
    return f'<section id="{name}"><h2>{heading}</h2>{"".join(parts)}</section>\n'


def paragraph(words: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{text(words)}</p>"


def missing(words: str) -> str:
    """A note in place of a part that the page does not have."""
    return f'<p class="missing">{text(words)}</p>'


def details(summary: str, body: str) -> str:
    """A part that opens when its summary is clicked; `body` escaped already."""
    return f"<details><summary>{text(summary)}</summary>{body}</details>"


def pre(words: str) -> str:
    """Text as it is, in fixed width."""
    return f"<pre>{text(words)}</pre>"


def table(
    columns: Mapping[str, Mapping[str, str]], corner: str = "", kind: str = "numbers"
) -> str:
    """A table from columns of rows of escaped cells; an absent cell is a dash."""
    rows = dict.fromkeys(row for cells in columns.values() for row in cells)
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{_breakable(row)}</th>'
        + "".join(f"<td>{cells.get(row, '–')}</td>" for cells in columns.values())
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr><th>{text(corner)}</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(png: Path, folder: Path, caption: str) -> str:
    """An image inside the page, with links (from `folder`) to it and its numbers."""
    if not png.is_file():
        return missing(f"{png.name} is missing: evaluate the run again to draw it.")
    image = base64.b64encode(png.read_bytes()).decode("ascii")
    links = " · ".join(
        f'<a href="{_link(file, folder)}">{kind}</a>'
        for file, kind in ((png, "PNG"), (png.with_suffix(".csv"), "numbers (CSV)"))
        if file.is_file()
    )
    return (
        f'<figure><div class="wide"><img alt="{text(caption)}" '
        f'src="data:image/png;base64,{image}"></div>'
        f"<figcaption>{text(caption)} {links}</figcaption></figure>"
    )


def data(name: str, value: Any) -> str:
    """JSON that the page's script reads; nothing in it can end the element."""
    escaped = json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{escaped}</script>'


def bar(weight: Number, highest: Number, shown: str) -> str:
    """A number over a bar whose length is `weight` as a fraction of `highest`."""
    share = min(1.0, float(weight) / float(highest)) if highest > 0 else 0.0
    return f'<span class="bar" style="--share:{share:.4f}">{shown}</span>'


def _breakable(name: str) -> str:
    """A metric's name, which a narrow page may break after its slashes."""
    return text(name).replace("/", "/<wbr>")


def _link(file: Path, folder: Path) -> str:
    return quote(Path(os.path.relpath(file, folder)).as_posix())


STYLE = """
:root { --ground:#fff; --card:#f6f7f9; --ink:#1d2330; --soft:#5c6575; --line:#dde1e8;
  --accent:#0067a3; --fill:#cfe4f3; --second:#f7dfb0; --mark:#fff4c2; }
@media (prefers-color-scheme: dark) { :root { --ground:#14171c; --card:#1d222a;
  --ink:#e4e8ee; --soft:#9aa4b3; --line:#343b47; --accent:#6fb9ec; --fill:#1f4d70;
  --second:#66480f; --mark:#3b3514; } }
* { box-sizing:border-box; }
html { scroll-padding-top:3.2rem; }
body { margin:0; background:var(--ground); color:var(--ink);
  font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
header,main,footer,nav div { max-width:72rem; margin:0 auto; padding:0 1.25rem; }
header { padding-top:2.2rem; padding-bottom:1.2rem; }
h1 { font-size:1.9rem; line-height:1.2; margin:.1rem 0 .8rem; overflow-wrap:anywhere; }
h2 { font-size:1.3rem; margin:0 0 .8rem; }
h3 { font-size:1.05rem; margin:1.6rem 0 .5rem; }
.kind { color:var(--soft); letter-spacing:.08em; text-transform:uppercase;
  font-size:.8rem; }
nav { position:sticky; top:0; z-index:2; background:var(--ground);
  border-bottom:1px solid var(--line); overflow-x:auto; }
nav div { display:flex; gap:1.4rem; padding-top:.6rem; padding-bottom:.6rem;
  white-space:nowrap; font-size:.92rem; }
a { color:var(--accent); } nav a { text-decoration:none; }
section { padding:2rem 0 1.4rem; }
section + section { border-top:1px solid var(--line); }
ul.chips { list-style:none; margin:0; padding:0; display:flex; flex-wrap:wrap;
  gap:.45rem; }
.chips li { background:var(--card); border:1px solid var(--line); border-radius:1rem;
  padding:.1rem .75rem; font-size:.86rem; } .chips b { font-weight:600; }
.wide { overflow-x:auto; }
table { border-collapse:collapse; font-size:.93rem; }
th,td { padding:.42rem .7rem; text-align:left; border-bottom:1px solid var(--line); }
thead th { color:var(--soft); font-weight:600; font-size:.84rem;
  vertical-align:bottom; }
.numbers td,.numbers thead th:not(:first-child) { text-align:right;
  font-variant-numeric:tabular-nums; min-width:7.5rem; }
.numbers th[scope=row] { font-weight:500; padding-right:2rem; }
.numbers.scores { width:100%; table-layout:fixed; }
.best { font-weight:700; }
.bar { display:block; padding:.08rem .4rem; border-radius:3px; min-width:4.5rem;
  font-variant-numeric:tabular-nums; print-color-adjust:exact;
  background:linear-gradient(var(--colour,var(--fill)) 0 0)
  0 0/calc(var(--share)*100%) 100% no-repeat var(--card); }
figure { margin:1rem 0 1.6rem; }
figcaption { color:var(--soft); font-size:.88rem; margin-top:.4rem; }
figure .wide { background:#fff; border:1px solid var(--line); border-radius:8px;
  padding:.5rem; }
img { display:block; max-width:100%; height:auto; margin:0 auto; }
.missing { color:var(--soft); background:var(--card); border-left:3px solid var(--line);
  padding:.6rem .9rem; }
pre { background:var(--card); border:1px solid var(--line); border-radius:6px;
  padding:.8rem 1rem; overflow-x:auto; font-size:.84rem; line-height:1.45; }
details { margin:.6rem 0; } summary { cursor:pointer; color:var(--accent); }
.strips { position:sticky; top:2.6rem; background:var(--ground); display:flex;
  gap:1.5rem; font-size:.86rem; padding:.5rem 0; border-bottom:1px solid var(--line); }
.strips > div { flex:1 1 0; min-width:0; }
.strip { display:flex; height:3.6rem; gap:1px; border-bottom:1px solid var(--soft); }
.strip i { flex:1 1 0; height:100%; cursor:pointer; min-width:2px;
  print-color-adjust:exact; background:linear-gradient(var(--colour) 0 0)
  0 100%/100% calc(var(--share)*100%) no-repeat; }
.strip i.on { background-color:var(--mark); }
.g0 { --colour:var(--fill); } .g1 { --colour:var(--second); }
.strip.g0 { --colour:#0072b2; } .strip.g1 { --colour:#e69f00; }
.passages { width:100%; } .passages td,.passages th { vertical-align:top; }
.passages tr.on { background:var(--mark); }
.passages tr.picked th { background:var(--fill); }
.passages .words { overflow-wrap:anywhere; white-space:pre-line; }
.js .passages .words { display:-webkit-box; -webkit-box-orient:vertical;
  -webkit-line-clamp:3; overflow:hidden; cursor:pointer; }
.js .passages .words.open { display:block; }
.passages button { font:inherit; color:var(--accent); background:none; cursor:pointer;
  border:1px solid var(--line); border-radius:4px; min-width:2.4rem; }
.heading { font-weight:500; min-width:8rem; max-width:14rem; overflow-wrap:anywhere; }
footer { color:var(--soft); font-size:.85rem; padding-top:1rem; padding-bottom:2.5rem; }
@media (max-width:44rem) {
  header { padding-top:1.4rem; } h1 { font-size:1.5rem; }
  figure img { max-width:none; width:46rem; }
  .numbers th[scope=row] { padding-right:.5rem; }
  .numbers td,.numbers thead th:not(:first-child) { min-width:4rem;
    padding:.42rem .3rem; }
  .numbers th:first-child { padding-left:0; } .numbers .bar { min-width:3.8rem; }
  .numbers.scores { table-layout:auto; font-size:.84rem; }
  .passages thead { display:none; }
  .passages tr { display:grid; grid-template-columns:3.2rem 1fr 1fr;
    border-bottom:1px solid var(--line); padding:.5rem 0; }
  .passages td,.passages th { border:0; padding:.15rem .3rem; }
  .passages .heading { grid-column:2/4; max-width:none; }
  .passages .g0 { grid-column:2; } .passages .g1 { grid-column:3; }
  .passages .weight::before { content:attr(data-graph); color:var(--soft);
    font-size:.75rem; }
  .passages .body { grid-column:1/4; } }
@media print {
  .passages button { border:0; } nav { display:none; } body { font-size:10pt; }
  .strips { position:static; }
  figure,.numbers tr { break-inside:avoid; } .passages { font-size:8pt; }
  .passages th,.passages td { padding:.2rem .3rem; } .passages .bar { min-width:3rem; }
  h2 { break-after:avoid; }
  .js .passages .words { display:block; } pre { white-space:pre-wrap; } }
"""

SCRIPT = """
(() => {
  const all = (query) => [...document.querySelectorAll(query)];
  document.documentElement.classList.add("js");
  addEventListener("beforeprint", () => all("details").forEach((d) => (d.open = true)));
  all(".words").forEach((w) => (w.onclick = () => w.classList.toggle("open")));
  const source = document.getElementById("attention-weights");
  if (!source) return;
  const graphs = JSON.parse(source.textContent);  // [graph][receiver][sender]
  const light = (node, on) => all(`[data-node="${node}"]`).forEach(
    (e) => e.classList.toggle("on", on));
  const pick = (receiver) => {
    document.getElementById("receiver").textContent =
      receiver ? `node ${receiver}` : "the document node";
    graphs.forEach((weights, g) => {
      const row = weights[receiver], highest = Math.max(...row);
      row.forEach((weight, node) => all(`.g${g} [data-node="${node}"], ` +
          `tr[data-node="${node}"] .g${g} .bar`).forEach((e) => {
        e.style.setProperty("--share", highest ? weight / highest : 0);
        const shown = weight ? weight.toFixed(4) : "no edge";
        if (e.matches(".bar")) e.textContent = shown;
        else e.title = `node ${node}: ${shown}`;
      }));
    });
    all("tr.picked").forEach((row) => row.classList.remove("picked"));
    document.querySelector(`tr[data-node="${receiver}"]`).classList.add("picked");
  };
  all("[data-node]").forEach((element) => {
    const node = +element.dataset.node;
    element.onmouseenter = () => light(node, true);
    element.onmouseleave = () => light(node, false);
    if (element.matches(".strip i")) element.onclick = () => {
      all(".on").forEach((e) => e.classList.remove("on"));
      light(node, true);
      document.querySelector(`tr[data-node="${node}"]`).scrollIntoView(
        { behavior: "smooth", block: "center" });
    };
  });
  all("tr button").forEach(
    (b) => (b.onclick = () => pick(+b.closest("tr").dataset.node)));
})();
"""
