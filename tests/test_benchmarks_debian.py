"""The corpus of Linux's documentation: titles, folders, pages that are left out."""

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

    def write(**pages: str) -> None:
        paths = []
        for name, text in pages.items():
            path = tmp_path / "Documentation" / f"{name.replace('__', '/')}.rst.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(text.encode()))
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
