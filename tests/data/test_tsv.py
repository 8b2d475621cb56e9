"""Tables of documents, as MS MARCO has them."""

from collections import Counter

import pytest

from docjax.data.records import full_text
from docjax.data.sources.tsv import tsv
from docjax.errors import UserError


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("7\twhat is wifi", "what is wifi"),
        ("7\tWifi\ta network", "Wifi\n\na network"),
        ("7\thttp://a\tWifi\ta network\r", "Wifi\n\na network"),
    ],
)
def test_columns_of_ms_marco(tmp_path, line, text):
    (tmp_path / "a.tsv").write_bytes(line.encode() + b"\n\n")
    [document] = tsv(str(tmp_path / "a.tsv"))
    assert document.id == "7" and full_text(document) == text


def test_another_number_of_columns_is_one_line_or_counted(tmp_path):
    (tmp_path / "a.tsv").write_text("2\ttext\n1\n3\t \n2\tagain\n")
    with pytest.raises(UserError, match="row 2 .line 2.: wrong columns: 1 columns in"):
        list(tsv(str(tmp_path / "a.tsv")))
    report = Counter()
    assert len(list(tsv(str(tmp_path / "a.tsv"), 0.9, report))) == 1
    assert report == {"wrong columns": 1, "empty text": 1, "duplicate id": 1} | {
        "documents": 1
    }
