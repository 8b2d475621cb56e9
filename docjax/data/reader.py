"""Records from any file or folder that docjax reads, each with its place."""

import itertools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from docjax.data import (
    columns,
    delimited,
    documents,
    excel,
    formats,
    json_records,
    once,
    saved_dataset,
)
from docjax.data.documents import BadDocument, NoDocuments
from docjax.data.sources import lines
from docjax.data.streams import STDIN, Opened, Unreadable, opened, shown
from docjax.data.table import Table
from docjax.errors import UserError
from docjax.types import Document

SPLIT = re.compile(
    r"(?:^|[-_.])(train|test|dev|val|valid|validation|unsup|unlabeled)$", re.IGNORECASE
)
UNLABELLED = ("", "unsup", "unlabeled", "unlabelled")
BETWEEN = re.compile(r"[\s,;|]+")  # the ids of links in a cell
Rows = Iterator[tuple[str, Any]]


class Options(NamedTuple):
    """How files are read.

    asked, usual: the columns that the user names, and usual names (`columns.resolve`);
    encoding: that of texts, None: UTF-8, or what the first bytes say; default: the
    format of a file whose name says none and whose bytes do not tell.
    """

    asked: Mapping[str, str | None] = MappingProxyType({})
    usual: Mapping[str, tuple[str, ...]] = columns.USUAL
    encoding: str | None = None
    default: str | None = None


def read(path: str, options: Options) -> Rows:
    """The records of what `path` names, each with its place and an id.

    Raises:
      UserError: for a missing or damaged file, one whose name says another format than
        its content, columns that are not clear, and an option that does nothing.
    """
    if path == STDIN:
        files, options = [Path(path)], options._replace(default=formats.JSON)
        return _with_ids(_files(files, options))
    if not lines.exists(path, Path.is_dir):
        return _with_ids(_files(lines.files(path), options))
    if saved_dataset.is_saved(path):
        return _with_ids(_saved(path, options))
    return _with_ids(_folder(Path(path), options))


def parsed(record: Any, place: str) -> Document:
    """The document of a record. Raises BadDocument for what is none."""
    if isinstance(record, BadDocument):
        raise record
    return documents.parse(record, place)


def inside(folder: Path | str) -> Iterator[Path]:
    """The files of a folder and its sub-folders, by their names, without hidden ones."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(here, name)


def split_and_label(folders: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The split and the label that the folders above a file name."""
    if not folders:
        return None, None
    match = SPLIT.search(folders[0])
    if not match:
        return None, "/".join(folders)
    label = "/".join(folders[1:])
    return match.group(1).lower(), None if label in UNLABELLED else label


def _with_ids(rows: Rows) -> Rows:
    """The records; one without ids has its number as id."""
    for number, (place, record) in enumerate(rows, start=1):
        if isinstance(record, Unnamed):
            record["id"] = str(number)
        yield place, record


class Unnamed(dict):
    """A record of a table that has no ids."""


def _files(files: list[Path], options: Options) -> Rows:
    told: set[str] = set()
    above = os.path.commonpath([file.parent for file in files])
    for file in files:
        with opened(file, options.encoding) as stream:
            kind = formats.of(stream, file, options.default)
            if kind in formats.TABLES:
                table = _table(stream, kind, options)
                yield from _of_table(table, stream.name, options, told)
            else:
                _check_no_columns(options.asked, stream.name)
                facts = {"id": os.path.relpath(file, above)}
                try:
                    record = facts | _read_text(stream, kind)
                except BadDocument as error:
                    record = error
                yield stream.name, record


def _table(stream: Opened, kind: str, options: Options) -> Table:
    if options.encoding and kind in formats.BINARY:
        raise UserError(
            f"{stream.name}: {kind} says its own encoding: leave "
            f"encoding={options.encoding} (--encoding) out"
        )
    if kind == formats.JSON:
        return json_records.table(stream)
    if kind == formats.CSV:
        return delimited.table(stream, filter(None, options.asked.values()))
    if kind == formats.EXCEL:
        return excel.table(stream)
    from docjax.data import arrow_files  # pyarrow loads slowly

    read = arrow_files.parquet if kind == formats.PARQUET else arrow_files.arrow
    return read(stream)


def _of_table(table: Table, place: str, options: Options, told: set[str]) -> Rows:
    """The records of a table; `told` holds what the log has said of this reading."""
    rows = table.rows
    if not table.columns:  # no row at all, or none that is an object
        yield from rows
        return
    names = columns.resolve(
        options.asked, table.columns, place, options.usual, table.mend
    )
    line = f"{table.form}: {names}"
    if line not in told and (names.is_worth_telling or not table.is_json):
        once.say("%s: %s", place, line)
    told.add(line)
    for where, row in rows:
        if isinstance(row, Mapping):
            row = _record(row, names, table, where)
        yield where, row


def _record(
    row: Mapping[str, Any], names: columns.Names, table: Table, place: str
) -> dict[str, Any] | BadDocument:
    found = names.record(row)
    for key, name in names.of.items():
        if key in ("text", "id") and name not in row and "sections" not in row:
            return BadDocument(place, "missing key", f"no {name!r}")
    if not table.is_json:
        try:
            found = {k: _cell(k, v, place) for k, v in found.items() if v is not None}
        except BadDocument as error:
            return error
        if "sections" not in found:
            found.setdefault("text", "")  # a gap
    return found if {"id", "_id"} & found.keys() or "id" in names.of else Unnamed(found)


def _cell(key: str, value: Any, place: str) -> Any:
    """The value of a cell: sections, edges and links may be a text."""
    if isinstance(value, bytes):  # Parquet may not say that a column is a text
        value = documents.decode(value, place)
    if not isinstance(value, str):
        return value
    if key == "metadata":
        return {key: value}
    if key not in ("sections", "edges", "links"):
        return value
    if value.lstrip().startswith("["):
        return documents.json_value(value, place)
    if key == "links":
        return list(filter(None, BETWEEN.split(value)))
    return value if value.strip() else []


def _saved(path: str, options: Options) -> Rows:
    """The rows of a folder that Hugging Face's `save_to_disk` wrote, by split."""
    told: set[str] = set()
    for split, table in saved_dataset.tables(path).items():
        numbers = itertools.count()
        for place, record in _of_table(table, f"{path}, {split}", options, told):
            number = next(numbers)
            if isinstance(record, Unnamed) and split:
                record = {**record, "id": f"{split}/{number}"}
            if isinstance(record, dict) and split:
                record.setdefault("split", split)
            yield place, record


def _folder(folder: Path, options: Options) -> Rows:
    """The texts of a folder; sub-folders give split and label."""
    found = list(inside(folder))
    held = [file for file in found if formats.by_name(file) in formats.TABLES]
    if held and len(held) == len(found):
        raise UserError(
            f"{shown(folder)} is a folder of tables ({', '.join(f.name for f in held[:3])}"
            f"): name a table, or several: '{shown(folder)}/*{held[0].suffix}'"
        )
    if not found:
        raise NoDocuments("empty corpus: a folder without a file")
    _check_no_columns(options.asked, shown(folder))
    for file in found:
        place = shown(file)
        split, label = split_and_label(file.relative_to(folder).parts[:-1])
        facts = {
            "id": file.relative_to(folder).as_posix(),
            "split": split,
            "label": label,
        }
        try:
            yield place, facts | _text(file, options.encoding)
        except BadDocument as error:
            yield place, error


def _read_text(file: Opened, kind: str) -> dict[str, Any]:
    """The record of a text."""
    from docjax.data import text_forms  # its parsers load slowly

    title, sections = text_forms.read(file, kind)
    if len(sections) == 1 and not sections[0].get("heading"):
        return {"title": title, "text": sections[0]["text"]}
    return {"title": title, "sections": sections}


def _text(file: Path, encoding: str | None) -> dict[str, Any]:
    """A text of a folder. Raises BadDocument for what is none."""
    place = shown(file)
    try:
        with opened(file, encoding) as stream:
            kind = formats.of(stream, file, formats.TEXT)
            if kind in formats.TABLES:
                detail = "a table in a folder of texts: move it out, or name it alone"
                raise BadDocument(place, "not a text", detail)
            return _read_text(stream, kind)
    except Unreadable as error:
        raise BadDocument(place, "unreadable file", error.detail) from None
    except formats.NotAText as error:
        detail = str(error).removeprefix(place).removeprefix(":").strip()
        raise BadDocument(place, "not a text", detail) from None


def _check_no_columns(asked: Mapping[str, str | None], place: str) -> None:
    """Raises UserError for the name of a column where there is no table."""
    for key, name in asked.items():
        if name:
            raise UserError(
                f"{key}={name!r} ({columns.FLAGS[key]}) does nothing to {place}, which "
                "has no columns: leave it out"
            )
