"""Which format a file has: by the suffix of its name, checked against its first bytes."""

import csv
import io
import json
import re
import zipfile
from pathlib import Path

from docjax.data import columns, streams
from docjax.data.streams import PACKED, Opened
from docjax.errors import UserError

JSON, CSV, PARQUET, ARROW, EXCEL = "JSON", "CSV", "Parquet", "Arrow", "Excel"
TEXT, MARKDOWN, HTML, PDF, WORD = "text", "Markdown", "HTML", "PDF", "Word"
SUFFIXES = {
    JSON: (".jsonl", ".json", ".ndjson"),
    CSV: (".csv", ".tsv", ".tab"),
    PARQUET: (".parquet", ".pq"),
    ARROW: (".arrow", ".feather", ".ipc"),
    EXCEL: (".xlsx", ".xlsm"),
    TEXT: (".txt", ".text"),
    MARKDOWN: (".md", ".markdown"),
    HTML: (".html", ".htm", ".xhtml"),
    PDF: (".pdf",),
    WORD: (".docx",),
}
KINDS = {suffix: kind for kind, group in SUFFIXES.items() for suffix in group}
TABLES = (JSON, CSV, PARQUET, ARROW, EXCEL)
BINARY = (PARQUET, ARROW, EXCEL, PDF, WORD)
ALL = ", ".join(group[0] for group in SUFFIXES.values())
# How files of other formats begin, and what mends each.
FOREIGN = {
    b"\xd0\xcf\x11\xe0": ("an old Excel or Word file", "save it as .xlsx or .docx"),
    b"SQLite format 3": ("an SQLite database", "export a table as .csv"),
    b"\x89HDF": ("HDF5", "write it as .parquet"),
    b"\x93NUMPY": ("a NumPy array", "write the texts as .jsonl"),
    b"ORC": ("ORC", "write it as .parquet"),
    b"Obj\x01": ("Avro", "write it as .parquet"),
    b"FEA1": ("an old Feather file", "write it again with a newer pyarrow"),
    b"{\\rtf": ("RTF", "save it as .docx or .txt"),
    b"\x89PNG": ("an image", "leave it out"),
    b"\xff\xd8\xff": ("an image", "leave it out"),
    b"GIF8": ("an image", "leave it out"),
    b"Rar!": ("a RAR archive", "unpack it and name the folder or file inside"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it and name the folder or file inside"),
    b"\x80\x04\x95": ("a pickle, which docjax never reads", "write it as .parquet"),
    b"\x80\x05\x95": ("a pickle, which docjax never reads", "write it as .parquet"),
    b"LZ4": ("LZ4", "unpack it"),
}
IN_ZIP = {  # a file inside of a zip archive, and what the archive then is
    "xl/workbook.xml": EXCEL,
    "word/document.xml": WORD,
}
IS_HTML = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
IS_JSON = re.compile(rb"\s*(\{\s*[\"}]|\[\s*[\[{\"\]])")


class NotAText(UserError):
    """A file whose bytes are no text, or of another format than its name says."""


def stem(file: Path) -> Path:
    """The name of a file without the suffix of its packing."""
    return file.with_suffix("") if file.suffix.lower() in PACKED else file


def by_name(file: Path) -> str | None:
    """The format that a name says; None: none that docjax knows."""
    return KINDS.get(stem(file).suffix.lower())


def of(file: Opened, name: Path, default: str | None = None) -> str:
    """The format of an opened file, one of SUFFIXES; `default` if its name says none
    and its first bytes do not tell.

    Raises:
      NotAText: if its first bytes are of another format than its name says, or its name
        says none and its first bytes do not tell.
    """
    said = by_name(name)
    binary = _binary(file, name)
    if binary in BINARY and said is None:
        return binary
    if binary and binary != said:
        raise NotAText(_looks_like(file, name, binary))
    if binary:
        return binary
    if said in BINARY and file.head:
        looks = _text_format(file.head)
        raise NotAText(
            _looks_like(file, name, looks)
            if looks
            else f"{file.name} is no {said} file, or is damaged: it begins with "
            f"{file.head[:12]!r}; get it again, or rename it"
        )
    _check_no_nul(file)
    return _of_text(file, name, said, default)


def _of_text(file: Opened, name: Path, said: str | None, default: str | None) -> str:
    looks = _text_format(file.head)
    if isinstance(looks, tuple):
        raise NotAText(_looks_like(file, name, looks))
    if said is None:
        said = looks or default
        if said is None:
            suffix = stem(name).suffix
            raise NotAText(
                f"{file.name}: {f'the suffix {suffix}' if suffix else 'no suffix'} tells "
                f"no format; rename it: docjax reads {ALL} (also .gz, .xz, .zst, .bz2)"
            )
    if looks not in (None, said) and said not in (MARKDOWN, HTML):
        raise NotAText(_looks_like(file, name, looks))
    if said == JSON and file.head.strip() and not _has_json(file.head):
        line = file.head.strip().splitlines()[0][:60].decode("utf-8", "replace")
        raise NotAText(
            f"{file.name} is no JSON: no line begins with {{ or [, the first is "
            f"{line!r}; give it the suffix of what it is: docjax reads {ALL}"
        )
    return said


def _binary(file: Opened, name: Path) -> str | tuple[str, str] | None:
    """A format of BINARY, the name and mend of another binary format, or None."""
    head = file.head
    if head.startswith(streams.PARQUET):
        return PARQUET
    if head.startswith((streams.ARROW_FILE, streams.ARROW_STREAM)):
        return ARROW
    if head[:1024].lstrip().startswith(streams.PDF):
        return PDF
    if head.startswith(streams.ZIP):
        return _in_zip(file, name)
    return next((v for first, v in FOREIGN.items() if head.startswith(first)), None)


def _in_zip(file: Opened, name: Path) -> str | tuple[str, str]:
    archive = "a zip archive", "unpack it and name the folder or file inside"
    if file.plain is None:  # packed, or a stream: its list stands at its end
        return next(
            (kind for inner, kind in IN_ZIP.items() if inner.encode() in file.head),
            archive,
        )
    try:
        names = set(zipfile.ZipFile(file.whole()).namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return by_name(name) if by_name(name) in IN_ZIP.values() else archive
    if "xl/workbook.bin" in names or any(n.startswith("Index/") for n in names):
        return "a spreadsheet of another kind", "save it as .xlsx"
    if "mimetype" in names:
        return "OpenDocument or an e-book", "save it as .xlsx, .docx or .html"
    return next((kind for inner, kind in IN_ZIP.items() if inner in names), archive)


def _text_format(head: bytes) -> str | tuple[str, str] | None:
    """HTML, JSON, CSV or a foreign format, if a text cannot be anything else."""
    if IS_HTML.match(head):
        return HTML
    if head.lstrip().startswith(b"<?xml"):
        return "XML", "write the texts as .txt or .html, or a table as .csv"
    if IS_JSON.match(head) and _is_json(head):
        return JSON
    return CSV if _is_table(head) else None


def _is_json(head: bytes) -> bool:
    """Whether the first line is an object of JSON, or a longer value begins."""
    first = head.strip().split(b"\n", 1)[0]
    try:
        return isinstance(json.loads(first), dict | list)
    except (ValueError, RecursionError):
        return bool(re.match(rb"\s*(\[\s*)?(\{\s*\"|\{\s*$|\[\s*$)", first))


def _is_table(head: bytes) -> bool:
    """Whether the first lines are a header, with a text among others, and full rows."""
    lines = head.decode("utf-8", "replace").splitlines()[:4]
    for delimiter in ",;\t|":
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        header = rows[0] if rows else []
        known = columns.known(header)
        if len(header) > 1 and len(rows) > 1 and "text" in known and len(known) > 1:
            return True
    return False


def _has_json(head: bytes) -> bool:
    return any(line.lstrip()[:1] in (b"{", b"[") for line in io.BytesIO(head))


def _looks_like(file: Opened, name: Path, looks: str | tuple[str, str]) -> str:
    if isinstance(looks, tuple):
        what, mend = looks
        return f"{file.name} looks like {what}: {mend}; docjax reads {ALL}"
    new = stem(name).with_suffix(SUFFIXES[looks][0]).name
    kind = "JSON lines" if looks == JSON else looks
    return f"{file.name} looks like {kind}: rename it to {new}"


def _check_no_nul(file: Opened) -> None:
    """Raises NotAText for a text with NUL bytes, as UTF-16 without a mark has them."""
    sample = file.head[:4096]
    if b"\0" not in sample:
        return
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if len(sample) >= 8 and max(even, odd) > len(sample) // 16 and not min(even, odd):
        guess = "utf-16-le" if odd > even else "utf-16-be"
        raise NotAText(
            f"{file.name} has zero bytes as {guess.upper()} without a mark has them: "
            f"give --encoding {guess} (source.encoding of a run), or save it as UTF-8"
        )
    raise NotAText(
        f"{file.name} is no text: byte {sample.index(0)} is zero; if it is UTF-16, give "
        f"--encoding utf-16-le (source.encoding of a run); docjax reads {ALL}"
    )
