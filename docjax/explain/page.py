"""Templates and number formats for all HTML pages.

A page loads nothing: it contains its style, script and images. Its
Content-Security-Policy forbids the network, and every script except the page's own,
which the policy names by a hash. Jinja2 escapes all values. `page.html.jinja` is the
frame of every page; `parts.html.jinja` has tables, bars and figures.
"""

import base64
import dataclasses
import hashlib
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import numpy as np
from markupsafe import Markup

import docjax
from docjax.explain.printable import printable

FOLDER = Path(__file__).parent
Number = int | float | np.number


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure for a page."""

    name: str  # the file name of the PNG
    data: str | None  # the PNG in base64; None if the file is missing
    links: Mapping[str, str]  # text of a link -> address


def template(path: Path, script: Path, styles: Sequence[Path] = ()) -> jinja2.Template:
    """The template in a file, with a script, the common style and further styles.

    The template may extend and import the templates of this folder.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([path.parent, FOLDER]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"readable": readable, "share": share}
    environment.tests["finite"] = math.isfinite
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    source, styles = script.read_text("utf-8"), (FOLDER / "page.css", *styles)
    environment.globals |= {
        "row_names": row_names,
        "script": Markup(source),
        "script_hash": digest(source),
        "style": Markup("".join(file.read_text("utf-8") for file in styles)),
        "version": docjax.__version__,
    }
    return environment.get_template(path.name)


def digest(script: str) -> str:
    """The name of a script in a Content-Security-Policy."""
    sha256 = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(sha256).decode()}"


def readable(value: Any) -> Any:
    """A number with grouped digits, rounded to four; any other value unchanged."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return value
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    return f"{float(value):,.4g}" if math.isfinite(value) else "not finite"


def share(value: Number, highest: Number) -> str:
    """The length of a bar: `value` as a fraction of `highest`, between 0 and 1."""
    fraction = float(value) / float(highest) if highest > 0 else 0.0
    return f"{min(max(fraction, 0.0), 1.0):.4f}"


def row_names(columns: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of the rows of all columns, in order of first appearance."""
    return list(dict.fromkeys(row for cells in columns.values() for row in cells))


def picture(png: Path | None, folder: Path) -> Picture | None:
    """A figure with links from `folder` to its PNG and CSV; None if `png` is None."""
    if png is None:
        return None
    files = {"PNG": png, "numbers (CSV)": png.with_suffix(".csv")}
    return Picture(
        name=png.name,
        data=base64.b64encode(png.read_bytes()).decode() if png.is_file() else None,
        links={
            name: quote(Path(os.path.relpath(file, folder)).as_posix())
            for name, file in files.items()
            if file.is_file()
        },
    )


def _finalize(value: Any) -> Any:
    """The value that a template writes: text without control characters."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(value)
