"""Damaged files: every reader reads what is left, or refuses in one line that names the
file; 200 mutations each, always the same."""

import importlib.util
import random

import pytest

from docjax.data.sources.files import files
from docjax.errors import UserError
from tests.data.sources import forms

OFFICE = all(map(importlib.util.find_spec, ("openpyxl", "docx", "pypdf")))
COUNT = 200
LINES = [b"", b'"', b"{", b"[]", b"\xff", b",,,,", b"null", b"<b", b"\t\t", b'"a""']
READERS = [
    *("JSON lines", "JSON array over lines", "JSON by columns", "gzip", "CSV"),
    *("CSV in UTF-16", "TSV", "TSV of MS MARCO", "Parquet", "Arrow file"),
    *("Arrow stream", "zstd of CSV", "xz of CSV", "bzip2"),
]
CASES = {name: forms.TABLES[name][:3] for name in READERS}
CASES |= {
    name: (*form[:2], {})
    for name, form in forms.TEXTS.items()
    if name in ("text", "Markdown", "HTML")
}


def mutated(raw: bytes, draw: random.Random) -> bytes:
    """The bytes with some flipped, cut, inserted or taken out, or with another line."""
    changed, place, kind = bytearray(raw), draw.randrange(len(raw)), draw.randrange(6)
    if kind == 0:
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    elif kind == 1:
        del changed[place:]
    elif kind == 2:
        changed[place:place] = draw.randbytes(draw.randint(1, 8))
    elif kind == 3:
        del changed[place : place + draw.randint(1, 20)]
    else:
        lines = raw.split(b"\n")
        line = draw.randrange(len(lines))
        lines[line : line + (kind == 4)] = [draw.choice(LINES)] * (kind == 5)
        changed = bytearray(b"\n".join(lines))
    return bytes(changed)


def check(folder, name, content, keywords):
    raw = content.encode() if isinstance(content, str) else content
    draw, refused = random.Random(65), 0
    for _ in range(COUNT):
        path = forms.write(folder, name, mutated(raw, draw))
        try:
            list(files(str(path), **keywords))
        except UserError as error:
            refused += 1
            assert name in str(error) and str(error).isprintable()
    assert refused  # the mutations do something


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_damaged_file_is_read_or_refused_by_its_name(tmp_path, case):
    check(tmp_path, *case)


@pytest.mark.skipif(not OFFICE, reason="needs the extra files")
@pytest.mark.parametrize("form", ["Excel", "Word", "PDF"])
def test_a_damaged_file_of_an_office_is_read_or_refused(tmp_path, form):
    name, content, *_ = (forms.excel_forms() | forms.office_forms())[form]
    check(tmp_path, name, content, {})
