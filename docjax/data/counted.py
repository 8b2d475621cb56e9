"""Documents of many records: the first bad one raises, or bad ones are counted."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import charset_normalizer

from docjax.data import once
from docjax.data.documents import BadDocument, NoDocuments, decode, parse
from docjax.data.seen import Seen
from docjax.errors import UserError
from docjax.types import Document

MEND = (
    "; mend it, or raise max_bad_fraction (of the source, or of the task that reads it; "
    "--max-bad-fraction of a command) to leave it out"
)
COMMON = (  # encodings of people's files, as charset-normalizer calls them
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r"),
    *("shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "mac_roman", "cp437"),
)
SHORT = 200  # bytes that tell little; such a text is most often a western one


def read(
    records: Iterable[tuple[str, Any]],
    convert: Callable[[Any, str], Document],
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The documents of `(place, record)` pairs; bad ones raise or are counted.

    With `max_bad_fraction` 0 the first bad record raises. Otherwise `report` counts
    bad records by reason and good records under "documents"; without a `report` the log
    gets the counts at the end. Memory does not grow.

    Raises:
      BadDocument: for the first bad record, if `max_bad_fraction` is 0.
      UserError: at the end, if the share of bad records is above `max_bad_fraction`,
        or no record is good.
    """
    if not 0 <= max_bad_fraction <= 1:
        raise UserError(
            f"max_bad_fraction {max_bad_fraction} is not a share from 0 to 1"
        )
    counts: Counter = Counter()
    first = None
    with contextlib.closing(Seen()) as ids:
        for place, record in records:
            try:
                document = convert(record, place)
                check_names(document, place, ids)
            except BadDocument as error:
                if max_bad_fraction <= 0:
                    told = with_encodings(error)
                    detail = error.detail + MEND if told is error else told.detail
                    raise BadDocument(error.place, error.reason, detail) from None
                counts[error.reason] += 1
                first = first or error
                continue
            counts["documents"] += 1
            yield document
    _check_counts(counts, max_bad_fraction, first)
    if report is None:
        warn_of_bad(counts, str(first))
    else:
        report.update(counts)


def check_names(document: Document, place: str, ids: Seen) -> None:
    """Raises BadDocument for an id, a label or a split that is no text, and for an id that
    is among `ids`, to which it is added."""
    for key in ("id", "label", "split"):
        name = getattr(document, key)
        if not isinstance(name, str) and (key == "id" or name is not None):
            kind = type(name).__name__
            detail = f"{key!r} must be a string, not {kind}"
            raise BadDocument(place, "wrong type", detail)
    if not ids.add(document.id):
        raise BadDocument(place, "duplicate id", f"{document.id!r} was used before")


def with_encodings(error: BadDocument) -> BadDocument:
    """The error with the encodings that its bytes may have."""
    if not error.raw or not (names := encodings(error.raw)):
        return error
    detail = (
        f"{error.detail}; it can be read as {' or '.join(names)}: name the encoding of "
        f"the file with --encoding {names[0]}, or source.encoding of a run"
    )
    return BadDocument(error.place, error.reason, detail)


def encodings(raw: bytes) -> list[str]:
    """Up to three common encodings in which the bytes are a text, the likeliest first."""
    found = charset_normalizer.from_bytes(raw[: 1 << 16], cp_isolation=COMMON)
    names = [match.encoding for match in found]
    western = "cp1252"
    with contextlib.suppress(UnicodeDecodeError):
        raw.decode(western)
        names.insert(0 if len(raw) < SHORT else 2, western)
    return list(dict.fromkeys(names))[:3]


def check_columns(names: Mapping[str, str], columns: Iterable[str], place: str) -> None:
    """Raises UserError if a table lacks a column that a keyword names."""
    columns = list(columns)
    for key, name in names.items():
        if name not in columns:
            mend = "" if key == "text" else f"; {key}=None leaves it out"
            raise UserError(
                f"{key}={name!r}: {place} has no such column; "
                f"it has {', '.join(columns)}{mend}"
            )


def read_tables(
    tables: Mapping[str, Iterable[Mapping]],
    names: Mapping[str, str],
    label_of: Callable[[Any], Any],
    place: str,
    max_bad_fraction: float,
    report: Counter | None,
) -> Iterator[Document]:
    """The documents of tables by split, one a row, as `read`; ids are "SPLIT/NUMBER".

    names: the column of each key of a record; label_of: makes labels of its values.
    """
    rows = (
        (f"{place}, split {split}, example {number}", (split, number, row))
        for split, table in tables.items()
        for number, row in enumerate(table)
    )

    def convert(record: tuple[str, int, Mapping], where: str) -> Document:
        split, number, row = record
        values = {key: row[name] for key, name in names.items()}
        for key, value in values.items():
            if isinstance(value, bytes):
                values[key] = decode(value, where)
        if values["text"] is None:
            detail = (
                "the text is a gap; of a CSV the source docjax.data.sources.files.files "
                "keeps NA and null as texts"
            )
            raise BadDocument(where, "empty text", detail)
        if "label" in values:
            values["label"] = label_of(values["label"])
        own = {"id": f"{split}/{number}", "split": split.partition("[")[0]}
        return parse(own | values, where)

    return read(rows, convert, max_bad_fraction, report)


def _check_counts(
    counts: Counter, max_bad_fraction: float, first: BadDocument | None
) -> None:
    total, bad = counts.total(), counts.total() - counts["documents"]
    reasons = by_reason(counts)
    if bad > max_bad_fraction * total:
        raise UserError(
            f"{bad} of {total} documents are bad ({reasons}), more than "
            f"max_bad_fraction={max_bad_fraction}; mend them, the first is {first}"
        )
    if total == bad:
        left = f"; {bad} bad records were left out ({reasons})" if bad else ""
        raise NoDocuments(f"empty corpus: the source has no documents{left}")


def warn_of_bad(counts: Counter, see: str) -> None:
    """Warns of what `read` left out, if anything; once for equal counts and place.

    see: the first bad record, or the file.
    """
    if bad := counts.total() - counts["documents"]:
        text = "left out %d of %d documents, which are bad: %s; see %s"
        once.warn(text, bad, counts.total(), by_reason(counts), see)


def by_reason(counts: Counter) -> str:
    """What was left out, such as "2 duplicate id, 1 bad JSON"."""
    return ", ".join(
        f"{number} {reason}"
        for reason, number in counts.most_common()
        if reason != "documents"
    )
