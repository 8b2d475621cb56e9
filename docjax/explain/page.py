"""The bricks of a self-contained HTML page: escaping, tables, figures, style, script.

Nothing here knows what a run is; report.py chooses what the page says. A page loads
nothing: images are data URIs, and its Content-Security-Policy forbids the network and
any script but the one that is named by its hash.
"""

import base64
import hashlib
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

STYLE = Path(__file__).with_name("page.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("run_page.js").read_text("utf-8")
Number = int | float | np.number


def page(
    title: str,
    body: str,
    *,
    style: str = "",
    script: str | None = None,
    forms: str = "'none'",
) -> str:
    """A whole HTML document around `body`, which must be escaped already.

    `style` is added to the style of all pages; `script` takes the place of the
    report's; `forms` says where the page may send forms, "'self'" or nowhere.
    """
    script = SCRIPT if script is None else script
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
form-action {forms}; base-uri 'none'">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
{body}
<script>{script}</script>
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
