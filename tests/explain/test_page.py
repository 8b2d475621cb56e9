"""The frame of all pages: what is escaped, what may run, how numbers are shown."""

import base64
import fnmatch
import hashlib
import re
import tomllib
from pathlib import Path

import jinja2
import numpy as np
import pytest

import docjax
from docjax.explain import page

SCRIPT = "if (1 < 2 && 'a' > \"b\") document.title = 'ran';\n"
BODY = """{% extends "page.html.jinja" %}
{% block kind %}test{% endblock %}
{% block main %}<p title="{{ text }}">{{ text }}</p>{% endblock %}"""


@pytest.fixture
def template(tmp_path) -> jinja2.Template:
    (tmp_path / "body.html.jinja").write_text(BODY)
    (tmp_path / "body.js").write_text(SCRIPT)
    (tmp_path / "body.css").write_text("p > b { color:red; }")
    return page.template(
        tmp_path / "body.html.jinja",
        script=tmp_path / "body.js",
        styles=[tmp_path / "body.css"],
    )


def test_the_policy_names_the_hash_of_the_script_as_it_is_written(template):
    html = template.render(title="t", text="t")
    [written] = re.findall("<script>(.*)</script>", html, re.DOTALL)
    sha256 = base64.b64encode(hashlib.sha256(written.encode()).digest()).decode()
    assert written == SCRIPT and f"script-src 'sha256-{sha256}';" in html
    assert "p > b { color:red; }</style>" in html


def test_text_cannot_leave_its_element_or_its_attribute(template):
    html = template.render(title="<b>", text="</p>\"'&<script>")
    escaped = "&lt;/p&gt;&#34;&#39;&amp;&lt;script&gt;"
    assert f'<p title="{escaped}">{escaped}</p>' in html
    assert "<title>&lt;b&gt; · docjax</title>" in html


def test_characters_that_no_page_may_hold_are_marked(template):
    html = template.render(title="t", text="a\0\x1b\ud800\n\tb")
    assert ">a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" in html
    html.encode("utf-8")
    assert "\N{REPLACEMENT CHARACTER}\n\tb</p>" in html


def test_a_value_that_is_not_given_is_an_error(template):
    with pytest.raises(jinja2.UndefinedError, match="'text' is undefined"):
        template.render(title="t")


def test_numbers_are_grouped_and_rounded():
    assert page.readable(np.int64(1234567)) == "1,234,567"
    assert page.readable(np.float32(0.043214)) == "0.04321"
    assert page.readable(True) is True
    assert page.readable(float("inf")) == "not finite"
    assert page.readable("1234567") == "1234567"


def test_bars_stay_within_their_cells():
    assert page.share(3, 2) == "1.0000"
    assert page.share(-1, 2) == page.share(0, 0) == page.share(1, 0) == "0.0000"
    assert page.share(np.float32(1), 4) == "0.2500"


def test_rows_of_a_table_come_in_the_order_of_its_columns():
    assert page.row_names({"a": {"x": 1, "y": 2}, "b": {"z": 1, "x": 2}}) == list("xyz")


def test_a_picture_links_only_to_files_that_are_there(tmp_path):
    png = tmp_path / "figures/a b.png"
    assert page.picture(None, tmp_path) is None
    assert page.picture(png, tmp_path).data is None
    png.parent.mkdir()
    png.write_bytes(b"png")
    shown = page.picture(png, tmp_path / "report")
    assert shown.links == {"PNG": "../figures/a%20b.png"}
    assert base64.b64decode(shown.data) == Path(png).read_bytes()


def test_every_file_of_a_page_is_shipped():
    root = Path(docjax.__file__).parent
    declared = tomllib.loads((root.parent / "pyproject.toml").read_text("utf-8"))
    patterns = declared["tool"]["setuptools"]["package-data"]["*"]
    files = [p for folder in ("explain", "serve") for p in (root / folder).iterdir()]
    others = [p.name for p in files if p.is_file() and p.suffix != ".py"]
    assert len([name for name in others if name.endswith(".jinja")]) > 5
    for name in others:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name
