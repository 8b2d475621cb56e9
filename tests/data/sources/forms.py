"""One small corpus in the forms that people have, each with what must be read of it."""

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zstandard

RECORDS = [
    {"id": "a1", "title": "Flood", "text": "The river rose.", "label": "news"},
    {"id": "b2", "title": "Café", "text": 'He said "no",\nthen left.', "label": "art"},
    {"id": "c3", "title": "", "text": "Größe; 5 €", "label": "news"},
]
COLUMNS = list(RECORDS[0])
Expected = list[tuple[str, str, str, str | None]]  # id, title, text, label
WHOLE: Expected = [(r["id"], r["title"], r["text"], r["label"]) for r in RECORDS]
NUMBERED = [(str(n), *row[1:]) for n, row in enumerate(WHOLE, start=1)]
UNLABELLED = [(*row[:3], None) for row in WHOLE]


def csv(
    delimiter: str = ",",
    columns: list[str] = COLUMNS,
    names: list[str] | None = None,
    end: str = "\n",
    quote_all: bool = False,
) -> str:
    """The records as a table; `names` is the header."""
    special = (delimiter, '"', "\n", "\r")

    def cell(text: str) -> str:
        has = quote_all or any(each in text for each in special)
        return '"' + text.replace('"', '""') + '"' if has else text

    rows = [names or columns, *([r[c] for c in columns] for r in RECORDS)]
    return "".join(delimiter.join(map(cell, row)) + end for row in rows)


def lines(records: list[dict] = RECORDS) -> str:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)


def renamed(**names: str) -> list[dict]:
    return [{names.get(k, k): v for k, v in r.items()} for r in RECORDS]


def without(*keys: str) -> list[dict]:
    return [{k: v for k, v in r.items() if k not in keys} for r in RECORDS]


def table(records: list[dict] = RECORDS) -> pa.Table:
    return pa.Table.from_pylist(records)


def parquet(records: list[dict] = RECORDS) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table(records), stream)
    return stream.getvalue()


def arrow(kind: str) -> bytes:
    stream = io.BytesIO()
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(stream, table().schema) as writer:
        writer.write_table(table())
    return stream.getvalue()


def excel(rows: list[list[Any]], other: list[list[Any]] | None = None) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for row in other or []:
        (book["More"] if "More" in book else book.create_sheet("More")).append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def word(title: str, sections: list[tuple[str, str]]) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading(title, 0)
    for heading, text in sections:
        if heading:
            document.add_heading(heading, 1)
        document.add_paragraph(text)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def pdf(text: str, title: str = "") -> bytes:
    """A PDF of one page with a line of text, written by hand."""
    content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode("latin-1")
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
    page += b"/Resources << /Font << /F1 5 0 R >> >> >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        font,
        b"<< /Title (%s) >>" % title.encode("latin-1"),
    ]
    raw, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(raw)
    raw += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    raw += b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<< /Size %d /Root 1 0 R /Info 6 0 R >>" % (len(objects) + 1)
    return raw + b"trailer\n%s\nstartxref\n%d\n%%%%EOF\n" % (trailer, start)


def zipped(name: str, raw: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, raw)
    return stream.getvalue()


PAGE = """<!DOCTYPE html><html><head><title>Flood - The Daily</title>
<script>var words = 1;</script><style>p {color: red}</style></head><body>
<nav>Home About</nav><h1>Flood</h1><p>The river   rose.<br>Fast.</p>
<h2>Cause</h2><ul><li>rain</li><li>snow &amp; ice</li></ul><script>x()</script>
</body></html>"""
NOTES = "# Flood\n\nThe river *rose*.\n\n## Cause\n\n- rain\n- snow\n"
OF_NOTES = [("Flood", [("", "The river rose."), ("Cause", "rain\nsnow")])]
OF_PAGE = [("Flood", [("", "The river rose.\nFast."), ("Cause", "rain\nsnow & ice")])]

# Name of the file, its bytes or text, keywords of `files`, and what must be read.
Form = tuple[str, bytes | str, dict[str, Any], Expected]
TABLES: dict[str, Form] = {
    "JSON lines": ("a.jsonl", lines(), {}, WHOLE),
    "ndjson": ("a.ndjson", lines(), {}, WHOLE),
    "JSON lines called .json": ("a.json", lines(), {}, WHOLE),
    "JSON lines, CRLF": ("a.jsonl", lines().replace("\n", "\r\n"), {}, WHOLE),
    "JSON lines with a mark": ("a.jsonl", lines().encode("utf-8-sig"), {}, WHOLE),
    "JSON lines in UTF-16": ("a.jsonl", lines().encode("utf-16"), {}, WHOLE),
    "JSON lines, upper case": ("A.JSONL", lines(), {}, WHOLE),
    "JSON lines without ids": ("a.jsonl", lines(without("id")), {}, NUMBERED),
    "JSON lines, other names": (
        *("a.jsonl", lines(renamed(id="doc_id", text="body", label="category")), {}),
        WHOLE,
    ),
    "JSON lines, no last line end": ("a.jsonl", lines().rstrip(), {}, WHOLE),
    "gzip": ("a.jsonl.gz", gzip.compress(lines().encode()), {}, WHOLE),
    "gzip without its suffix": ("a.jsonl", gzip.compress(lines().encode()), {}, WHOLE),
    "xz of CSV": ("a.csv.xz", lzma.compress(csv().encode()), {}, WHOLE),
    "zstd of CSV": ("a.csv.zst", zstandard.compress(csv().encode()), {}, WHOLE),
    "bzip2": ("a.jsonl.bz2", bz2.compress(lines().encode()), {}, WHOLE),
    "packed Parquet": ("a.parquet.gz", gzip.compress(parquet()), {}, WHOLE),
    "JSON array": ("a.json", json.dumps(RECORDS), {}, WHOLE),
    "JSON array over lines": ("a.json", json.dumps(RECORDS, indent=2), {}, WHOLE),
    "JSON array called .jsonl": ("a.jsonl", json.dumps(RECORDS), {}, WHOLE),
    "JSON object with a list": (
        *("a.json", json.dumps({"n": 3, "data": RECORDS}), {}, WHOLE),
    ),
    "JSON object with a list over lines": (
        *("a.json", json.dumps({"n": 3, "data": RECORDS}, indent=1), {}, WHOLE),
    ),
    "JSON by columns": (
        *("a.json", json.dumps({c: [r[c] for r in RECORDS] for c in COLUMNS}), {}),
        WHOLE,
    ),
    "JSON by columns of pandas": (
        "a.json",
        json.dumps({c: {str(n): r[c] for n, r in enumerate(RECORDS)} for c in COLUMNS}),
        {},
        WHOLE,
    ),
    "JSON by rows of pandas": (
        *("a.json", json.dumps({str(n): r for n, r in enumerate(RECORDS)}), {}, WHOLE),
    ),
    "JSON of pandas' orient split": (
        "a.json",
        json.dumps({"columns": COLUMNS, "data": [list(r.values()) for r in RECORDS]}),
        {},
        WHOLE,
    ),
    "JSON array of texts": (
        "a.json",
        json.dumps(["one", "two"]),
        {},
        [("1", "", "one", None), ("2", "", "two", None)],
    ),
    "CSV": ("a.csv", csv(), {}, WHOLE),
    "CSV, all quoted": ("a.csv", csv(quote_all=True), {}, WHOLE),
    "CSV, semicolons": ("a.csv", csv(";"), {}, WHOLE),
    "CSV, tabs": ("a.csv", csv("\t"), {}, WHOLE),
    "CSV, bars": ("a.csv", csv("|"), {}, WHOLE),
    "CSV, sep= of Excel": ("a.csv", "sep=;\r\n" + csv(";", end="\r\n"), {}, WHOLE),
    "CSV, CRLF": ("a.csv", csv(end="\r\n"), {}, WHOLE),
    "CSV with a mark": ("a.csv", csv().encode("utf-8-sig"), {}, WHOLE),
    "CSV in UTF-16": ("a.csv", csv().encode("utf-16"), {}, WHOLE),
    "CSV in UTF-16 without a mark": (
        *("a.csv", csv().encode("utf-16-le"), {"encoding": "utf-16-le"}, WHOLE),
    ),
    "CSV in cp1252": (
        *("a.csv", csv().encode("cp1252"), {"encoding": "cp1252"}, WHOLE),
    ),
    "CSV, upper case": (
        "NEWS.CSV",
        csv(names=["ID", "Title", "TEXT", "Label"]),
        {},
        WHOLE,
    ),
    "CSV, other names": (
        *("a.csv", csv(names=["Doc ID", "Headline", "Content", "Category"]), {}, WHOLE),
    ),
    "CSV, named columns": (
        "a.csv",
        csv(names=["key", "kop", "tekst", "rubriek"]),
        dict(id="key", title="kop", text="tekst", label="rubriek"),
        WHOLE,
    ),
    "CSV, old line ends of the Mac": ("a.csv", csv(end="\r"), {}, WHOLE),
    "CSV, spaces behind commas": (
        *("a.csv", 'id, text\n1, "a, b"\n2, c\n', {}),
        [("1", "", "a, b", None), ("2", "", "c", None)],
    ),
    "CSV without ids": ("a.csv", csv(columns=COLUMNS[1:]), {}, NUMBERED),
    "CSV with pandas' index": (
        "a.csv",
        csv(names=["", "title", "text", "label"]),
        {},
        NUMBERED,
    ),
    "CSV of one column": (
        "a.csv",
        'text\n"one, two"\nthree\n',
        {},
        [("1", "", "one, two", None), ("2", "", "three", None)],
    ),
    "CSV, NA and null are texts": (
        "a.csv",
        "text,label\nNA,x\nnull,\n",
        {},
        [("1", "", "NA", "x"), ("2", "", "null", None)],
    ),
    "CSV, text NA of a bool": (
        *("a.csv", "text,label\na,True\n", {}, [("1", "", "a", "True")]),
    ),
    "CSV, no label wanted": ("a.csv", csv(), {"label": ""}, UNLABELLED),
    "TSV": ("a.tsv", csv("\t"), {}, WHOLE),
    "TSV, upper case": ("A.TSV", csv("\t"), {}, WHOLE),
    "TSV, quotes are text": (
        "a.tsv",
        'id\ttext\nd1\t"Yes" he said\nd2\t"no\n',
        {},
        [("d1", "", '"Yes" he said', None), ("d2", "", '"no', None)],
    ),
    "TSV, quotes that join no rows": (
        "a.tsv",
        'id\ttext\nd1\t"b\nd2\tc"\n',
        {},
        [("d1", "", '"b', None), ("d2", "", 'c"', None)],
    ),
    "TSV of MS MARCO": (
        "a.tsv",
        "7\twhat is wifi\n8\ttext\n",
        {},
        [("7", "", "what is wifi", None), ("8", "", "text", None)],
    ),
    "TSV of MS MARCO, first row text": (
        *("a.tsv", "7\ttext\n8\tmore\n", {}),
        [("7", "", "text", None), ("8", "", "more", None)],
    ),
    "Parquet": ("a.parquet", parquet(), {}, WHOLE),
    "Parquet without ids": ("a.pq", parquet(without("id")), {}, NUMBERED),
    "Parquet with gaps": (
        "a.parquet",
        parquet([{"text": "a", "label": 1.0}, {"text": "b", "label": None}]),
        {},
        [("1", "", "a", "1"), ("2", "", "b", None)],
    ),
    "Parquet with truth values": (
        *("a.parquet", parquet([{"id": 7, "text": "a", "label": True}]), {}),
        [("7", "", "a", "True")],
    ),
    "Parquet with bytes": (
        *("a.parquet", parquet([{"id": b"7", "text": "é".encode()}]), {}),
        [("7", "", "é", None)],
    ),
    "Arrow file": ("a.arrow", arrow("file"), {}, WHOLE),
    "Arrow stream": ("a.arrow", arrow("stream"), {}, WHOLE),
    "Feather": ("a.feather", arrow("file"), {}, WHOLE),
}


def excel_forms() -> dict[str, Form]:
    """Forms that need the extra `files`."""
    rows = [[r[c] for c in COLUMNS] for r in RECORDS]
    return {
        "Excel": ("a.xlsx", excel([COLUMNS, *rows]), {}, WHOLE),
        "Excel, numbers and empty rows": (
            "A.XLSX",
            excel([["ID", "Text", "Year"], [1, "one", 1999], [], [2.0, 12, None]]),
            {},
            [("1", "", "one", None), ("2", "", "12", None)],
        ),
        "Excel, an empty second sheet": (
            *("a.xlsx", excel([COLUMNS, *rows], [[None]]), {}, WHOLE),
        ),
    }


OfTexts = tuple[str, bytes | str, list[tuple[str, list[tuple[str, str]]]]]
TEXTS: dict[str, OfTexts] = {
    "text": ("a.txt", "Line one.\nLine two.", [("", [("", "Line one.\nLine two.")])]),
    "text in UTF-16": ("a.txt", "Größe".encode("utf-16"), [("", [("", "Größe")])]),
    "Markdown": ("a.md", NOTES, OF_NOTES),
    "Markdown, CRLF": ("A.MD", NOTES.replace("\n", "\r\n"), OF_NOTES),
    "Markdown, deeply nested": (*("a.md", "> " * 60 + "x\n", [("", [("", "x")])]),),
    "Markdown with a front matter": (
        "a.md",
        "---\ntitle: 'Flood'\ntags: [x]\n---\nThe river *rose*.\n\n## Cause\n\n- rain\n- snow\n",
        OF_NOTES,
    ),
    "Markdown with two titles": (
        "a.md",
        "---\ntitle: My notes\n---\n# Flood\n\nIt rose.\n\n## Cause\n\nRain.\n",
        [("My notes", [("Flood", "It rose."), ("Cause", "Rain.")])],
    ),
    "Markdown of a title alone": ("a.md", "# Flood\n", [("Flood", [("", "")])]),
    "HTML with its title as first line": (
        *(
            "a.html",
            "<title>Flood</title><p>Flood<p>It rose.",
            [("Flood", [("", "It rose.")])],
        ),
    ),
    "HTML with a form around it and code": (
        "a.html",
        "<form><h1>A <h2>B</h2></h1><pre><code>x\n  y</code></pre> z <b>b</b></form>",
        [("A", [("B", "x\n  y\n\nz b")])],
    ),
    "HTML": ("a.html", PAGE, OF_PAGE),
    "HTML, upper case": ("A.HTM", PAGE, OF_PAGE),
    "HTML in its own encoding": (
        "a.html",
        '<html><head><meta charset="latin-1"><title>Größe</title></head><body>ä</body>'.encode(
            "latin-1"
        ),
        [("Größe", [("", "ä")])],
    ),
    "HTML without headings": (
        *("a.html", "<title>T</title><p>one<p>two", [("T", [("", "one\n\ntwo")])]),
    ),
}


def office_forms() -> dict[str, OfTexts]:
    """Forms that need the extra `files`."""
    sections = [("", "The river rose."), ("Cause", "rain")]
    return {
        "Word": ("a.docx", word("Flood", sections), [("Flood", sections)]),
        "PDF": (
            *("a.pdf", pdf("The river rose.")),
            [("", [("", "The river rose.")])],
        ),
        "PDF with its title": (
            *("a.pdf", pdf("Flood: the river rose.", "Flood")),
            [("Flood", [("", "Flood: the river rose.")])],
        ),
        "PDF of a title": (*("a.pdf", pdf("Flood", "Flood"), [("Flood", [("", "")])]),),
    }


# What is refused: the file, keywords, and words of the one line.
Refused = tuple[str, bytes | str, dict[str, Any], str]
REFUSED: dict[str, Refused] = {
    "Parquet called CSV": (
        *("news.csv", parquet(), {}),
        "news.csv looks like Parquet: rename it to news.parquet",
    ),
    "Parquet called JSON": (
        *("news.jsonl", parquet(), {}),
        "news.jsonl looks like Parquet: rename it to news.parquet",
    ),
    "CSV called JSON lines": (
        *("a.jsonl", csv(), {}),
        "a.jsonl looks like CSV: rename it to a.csv",
    ),
    "CSV called Parquet": (
        *("a.parquet", csv(), {}),
        "a.parquet looks like CSV: rename it to a.csv",
    ),
    "CSV called text": (
        *("a.txt", csv(), {}),
        "a.txt looks like CSV: rename it to a.csv",
    ),
    "JSON lines called CSV": (
        *("a.csv", lines(), {}),
        "a.csv looks like JSON lines: rename it to a.jsonl",
    ),
    "HTML called CSV": (
        "a.csv",
        PAGE,
        {},
        "a.csv looks like HTML: rename it to a.html",
    ),
    "text called JSON lines": (
        *("a.jsonl", "plain text\nmore\n", {}),
        "a.jsonl is no JSON: no line begins with",
    ),
    "no suffix": ("corpus", "plain text", {}, "corpus: no suffix tells no format"),
    "old Excel": (
        *("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", {}),
        "a.xls looks like an old Excel or Word file: save it as .xlsx",
    ),
    "an archive": (
        "a.zip",
        zipped("a.txt", b"x"),
        {},
        "a.zip looks like a zip archive",
    ),
    "a pickle": ("a.csv", b"\x80\x04\x95\x00", {}, "looks like a pickle"),
    "XML": ("a.txt", "<?xml version='1.0'?><a>x</a>", {}, "a.txt looks like XML"),
    "bytes": ("a.txt", b"abc\x00\x01\x02", {}, "a.txt is no text: byte 3 is zero"),
    "UTF-16 without a mark": (
        *("a.csv", csv().encode("utf-16-le"), {}),
        "a.csv has zero bytes as UTF-16-LE without a mark has them",
    ),
    "another encoding": (
        *("a.csv", csv().encode("cp1252"), {}),
        "it can be read as cp1252",
    ),
    "another encoding, JSON": (
        *("a.jsonl", lines().encode("cp1252"), {}),
        "a.jsonl, line 2: invalid UTF-8: byte 26 is not utf-8",
    ),
    "a wrong encoding": (
        *("a.csv", "text\nGröße\n", {"encoding": "ascii"}),
        "a.csv: byte 7 is not ascii",
    ),
    "no encoding": ("a.csv", csv(), {"encoding": "utf9"}, "encoding='utf9': not an"),
    "no encoding of texts": (
        "a.csv",
        csv(),
        {"encoding": "hex"},
        "encoding='hex': not",
    ),
    "encoding with a zero": (
        "a.csv",
        csv(),
        {"encoding": "a\0b"},
        "encoding='a\\x00b'",
    ),
    "encoding of Parquet": (
        *("a.parquet", parquet(), {"encoding": "cp1252"}),
        "a.parquet: Parquet says its own encoding",
    ),
    "no header": (
        *("a.csv", "7,hello world\n8,more\n", {}),
        "a.csv: no column has a usual name of the text; the columns are '7', 'hello",
    ),
    "no header, what to do": (
        *("a.csv", "7,hello world\n8,more\n", {}),
        "if the first row is no header, add one, such as id,text,label",
    ),
    "no header, texts first": (
        *("a.tsv", "a good film\tpositive\na bad one\tnegative\n", {}),
        "a.tsv: no column has a usual name of the text; the columns are 'a good film'",
    ),
    "two texts": (
        *("a.csv", "body,content\na,b\n", {}),
        "a.csv: 'body', 'content' may each be the text: name it with text (--text-column, or",
    ),
    "a column that is not there": (
        *("a.csv", csv(), {"text": "tekst"}),
        "text='tekst' (--text-column, or source.text of a run): ",
    ),
    "a column named twice": (
        *("a.csv", "id,text,text\n1,a,b\n", {}),
        "a.csv: 2 columns are called 'text': rename all but one",
    ),
    "a ragged row": (
        *("a.csv", "id,text\n1,a\n2,b,c\n", {}),
        "a.csv, row 2 (line 3): wrong columns: 3 columns in place of 2 ('id', 'text')",
    ),
    "an open quote": (
        *("a.csv", 'id,text\n1,a\n2,"b\n3,c\n', {}),
        "a.csv, line 3: a quote opens here that nothing closes",
    ),
    "quotes that join rows": (
        "a.tsv",
        "id\ttext\n"
        + "".join(f"{i}\t{'a' * 90}\n" for i in range(1100))
        + 'x\t"b\ny\tc"\n',
        {},
        "a.tsv, row 1101 (line 1102): bad quotes: a quote at the beginning of a text",
    ),
    "a duplicate id": (
        *("a.csv", "id,text\n1,a\n1,b\n", {}),
        "a.csv, row 2 (line 3): duplicate id: '1' was used before",
    ),
    "a gap in the ids": (
        *("a.csv", "id,text\n1,a\n,b\n", {}),
        "a.csv, row 2 (line 3): missing key: no 'id'",
    ),
    "an empty text": (
        *("a.parquet", parquet([{"text": "a"}, {"text": None}]), {}),
        "a.parquet, row 2: empty text",
    ),
    "an empty file": ("a.csv", "", {}, "a.csv: empty corpus"),
    "an empty JSON array": ("a.json", "[]", {}, "a.json: empty corpus"),
    "a header alone": ("a.csv", "id,text\n", {}, "a.csv: empty corpus"),
    "Parquet without rows": (
        "a.parquet",
        parquet([]),
        {},
        "a.parquet",
    ),
    "two lists in JSON": (
        *("a.json", json.dumps({"a": RECORDS, "b": RECORDS}), {}),
        "a.json: 'a', 'b' are 2 lists of objects",
    ),
    "an object of something else": (
        *("a.json", json.dumps({"d1": "a text", "d2": "b"}), {}),
        "a.json: no column has a usual name of the text; the columns are 'd1', 'd2'",
    ),
    "a column of a text": (
        *("a.txt", "words", {"text": "body"}),
        "text='body' (--text-column, or source.text of a run) does nothing to ",
    ),
    "a cut gzip": (
        *("a.jsonl.gz", gzip.compress(lines().encode())[:-9], {}),
        "a.jsonl.gz: damaged or cut short",
    ),
    "a false gzip": (
        "a.csv.gz",
        csv(),
        {},
        "a.csv.gz: cannot be read: it is damaged, or not packed as .gz",
    ),
    "a cut Parquet": (
        *("a.parquet", parquet()[:-20], {}),
        "a.parquet: unreadable file: Parquet, damaged or cut short",
    ),
    "HTML that is nested too deep": (
        *("a.html", "<div>" * 5000 + "x", {}),
        "a.html: unreadable file: HTML that cannot be read to its end (Excessive depth",
    ),
    "Markdown that is nested too deep": (
        *("a.md", "> " * 5000 + "x", {}),
        "a.md: unreadable file: Markdown, damaged or cut short (RecursionError",
    ),
    "HTML without words": ("a.html", "<html></html>", {}, "a.html: empty text"),
}


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(raw)
    return path


Reader = Callable[[Path], Any]
