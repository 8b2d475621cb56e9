"""Any line of a file at once."""

import pytest

from docjax.storage import line_starts as lines
from docjax.storage.line_starts import Lines


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_every_line_is_found(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(lines, "AT_ONCE", at_once)
    texts = ["a\n", "ä long one\n", "\n", "last\n"]
    lines.write(texts, tmp_path / "a.jsonl")
    found = Lines(tmp_path / "a.jsonl")
    assert [each.decode() for each in found] == texts and len(found) == 4
    assert found[2] == b"\n"
    with pytest.raises(IndexError):
        found[4]
