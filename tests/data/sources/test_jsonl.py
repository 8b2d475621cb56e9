import gzip
import io
import json
import lzma
import sys

import pytest
import zstandard

from docjax.data.documents import BadDocument
from docjax.data.sources.jsonl import jsonl, stamp
from docjax.errors import UserError

RECORDS = [{"id": f"d{i}", "text": f"Text number {i}: ü\u2028."} for i in range(3000)]
RAW = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in RECORDS).encode()
COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def texts(path, **keywords):
    return [document.sections[0].text for document in jsonl(str(path), **keywords)]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_every_compression_gives_the_same_documents(tmp_path, suffix):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix](RAW))
    assert texts(path) == [record["text"] for record in RECORDS]


def test_a_hyphen_is_standard_input(monkeypatch):
    given = lambda raw: monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(raw))
    )
    given(RAW)
    assert texts("-") == [record["text"] for record in RECORDS]
    given(RAW[:100] + b"{}")
    with pytest.raises(BadDocument, match="standard input, line 3: bad JSON"):
        texts("-")


def test_a_zstandard_file_of_several_frames_is_read_to_its_end(tmp_path):
    compress = COMPRESS[".zst"]
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(compress(RAW[:1000]) + compress(RAW[1000:]))
    assert texts(path) == [record["text"] for record in RECORDS]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"x" + b])
def test_a_damaged_file_is_named(tmp_path, suffix, damage):
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(damage(COMPRESS[suffix](RAW)))
    with pytest.raises(UserError, match=r"a\.jsonl\..*: (damaged|cannot be read)"):
        texts(path, max_bad_fraction=1.0)


def test_a_pattern_reads_several_files_in_the_order_of_their_names(tmp_path):
    for number, name in enumerate(["b.jsonl", "a.jsonl.gz", "c.txt"]):
        line = json.dumps({"id": name, "text": f"text {number}"}).encode()
        packed = gzip.compress(line) if name.endswith(".gz") else line
        (tmp_path / name).write_bytes(packed)
    assert texts(tmp_path / "*.jsonl*") == ["text 1", "text 0"]


def test_an_id_in_two_files_is_a_duplicate(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"id": "x", "text": "y"}')
    with pytest.raises(BadDocument, match=r"b\.jsonl, line 1: duplicate id"):
        texts(tmp_path / "*.jsonl")


def test_blank_lines_and_a_byte_order_mark_are_no_documents(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"id": "x", "text": "y"}\r\n\r\n\n')
    assert texts(path) == ["y"]


def test_a_bad_line_is_named_by_file_and_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "x", "text": "y"}\n\n{"id": "z"}\n')
    with pytest.raises(BadDocument, match=r"a\.jsonl, line 3: missing key: no 'text'"):
        texts(path)


def test_a_missing_file_is_named():
    with pytest.raises(UserError, match="nowhere.jsonl: no such file"):
        jsonl("nowhere.jsonl")


def test_a_folder_of_tables_is_refused_with_the_mend(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(RAW)
    with pytest.raises(UserError, match=r"is a folder of tables \(a.jsonl\): name a"):
        texts(tmp_path)


def test_the_stamp_changes_with_the_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(RAW)
    before = stamp(str(path))
    path.write_bytes(RAW + b"\n")
    assert stamp(str(path)) != before


def test_a_real_file_has_the_documents_it_should(shared):
    documents = list(jsonl(str(shared / "data/openstax.jsonl.xz")))
    assert len(documents) == 1147
    assert len({document.label for document in documents}) == 9
    assert {document.split for document in documents} == {None}


def test_named_sections_are_left_out_and_counted(tmp_path, caplog):
    names = (
        "Abstract*",
        "1. Introduction",
        "2 METHODS",
        "7 References.",
        "Preferences",
    )
    sections = [{"heading": name, "text": name} for name in names]
    edges = [[0, 1], [1, 2], [2, 4]]
    lines = [
        {"id": "a", "sections": sections, "edges": edges},
        {"id": "b", "sections": sections[:1]},
    ]
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with caplog.at_level("INFO", "docjax"):
        (found,) = jsonl(str(path), without=("abstract", "References"))
    assert [s.heading for s in found.sections] == [names[1], names[2], names[4]]
    assert found.edges == ((0, 1), (1, 2))
    assert "left out 3 sections named abstract, references" in caplog.text
    assert "and 1 documents with no other section" in caplog.text
    assert len(list(jsonl(str(path)))) == 2
