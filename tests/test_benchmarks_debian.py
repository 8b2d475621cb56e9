"""The corpora of pages: titles, folders, pages that are left out."""

import gzip

import pytest

from benchmarks import debian_texts

PAGE = """.. SPDX-License-Identifier: GPL-2.0

=========
First one
=========

Words of the first section.
A table, which has no title:

====  ====
a     b
====  ====

Second, without words
---------------------

Third
~~~~~
{words}
"""


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Writes pages by name; `dpkg` lists them."""

    def write(folder: str = "Documentation", ending: str = ".rst.gz", **pages: str):
        paths = []
        for name, text in pages.items():
            path = tmp_path / folder / f"{name.replace('__', '/')}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = text.encode()
            path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
            paths.append(str(path))
        listed = "\n".join([str(tmp_path), *paths])
        monkeypatch.setattr(debian_texts, "_output", lambda command: listed)

    monkeypatch.setattr(debian_texts, "LEAST_PAGES", 2)
    return write


def test_a_page_is_cut_at_its_titles(pages):
    page = PAGE.format(words="many words " * 20)
    pages(mm__a=page, mm__b=page, arm__alone=page, root=page, mm__index=page)
    found = [*debian_texts.kernel()]
    assert sorted(document["id"] for document in found) == ["mm/a", "mm/b"]
    assert {document["label"] for document in found} == {"mm"}
    first, third = found[0]["sections"]
    assert first["heading"] == "First one"
    assert first["text"].startswith("Words of the first") and "====" in first["text"]
    assert third == {"heading": "Third", "text": ("many words " * 20).strip()}


def test_short_pages_and_translations_are_left_out_and_a_folder_has_a_limit(
    pages, monkeypatch
):
    monkeypatch.setattr(debian_texts, "MOST_PAGES", 2)
    page, short = PAGE.format(words="many words " * 20), PAGE.format(words="few")
    pages(mm__a=page, mm__b=page, mm__c=page, mm__d=short, translations__e=page)
    found = [document["id"] for document in debian_texts.kernel()]
    assert len(found) == 2 and {*found} < {"mm/a", "mm/b", "mm/c"}


def test_a_help_page_is_its_text_under_headings(pages):
    text = """<html><title>Help</title><h1>Module</h1><p>Contents</p>
        <div id="DisplayArea"><h1 id="a">Fill &amp; <b>line</b></h1><p>Words.</p>
        <h2>Empty</h2> <h2 id="b">More</h2><p>{words}</p>
        <div id="SearchFrame"></div><h3>Debug</h3><p>Words</p></html>"""
    page = text.format(words="many words " * 20)
    names = dict(scalc__a=page, scalc__b=page, shared__c=page, swriter__d=page)
    pages("text", ".html", **names, swriter__e=text.format(words="few"))
    found = [*debian_texts.help_pages()]
    assert sorted(document["id"] for document in found) == ["scalc/a", "scalc/b"]
    first, more = found[0]["sections"]
    assert first["heading"].split() == ["Fill", "&", "line"]
    assert first["text"] == "Words."
    assert more == {"heading": "More", "text": ("many words " * 20).strip()}
