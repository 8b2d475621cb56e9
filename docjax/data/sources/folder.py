"""Documents from a folder of text files; sub-folders give label and split."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from docjax.data import documents
from docjax.errors import UserError
from docjax.storage import digest
from docjax.types import Document, Section

SPLIT = re.compile(
    r"(?:^|[-_.])(train|test|dev|val|valid|validation|unsup|unlabeled)$", re.IGNORECASE
)
UNLABELLED = ("", "unsup", "unlabeled", "unlabelled")


def folder(
    path: str,
    max_bad_fraction: float = 0.0,
    encoding: str = "utf-8",
    report: Counter | None = None,
) -> Iterator[Document]:
    """The files under `path` as documents, in the order of their names.

    `LABEL/file` gives the label, `SPLIT/file` the split, and `SPLIT/LABEL/file` both,
    where a split is "train", "test" and the like, or a name that ends in it
    ("20news-bydate-train"). Deeper folders make one label ("rec/autos"); "unsup" and
    "unlabeled" in a split mean no label. The id is the path below `path`. Hidden files
    are left out. Raises UserError if there is no such folder, and what `documents.read`
    raises.
    """
    root = Path(path)
    if not root.is_dir():
        raise UserError(f"{path}: no such folder")

    def convert(file: Path, place: str) -> Document:
        try:
            raw = file.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            raise documents.BadDocument(place, "unreadable file", reason) from None
        text = documents.decode(raw, place, encoding)
        relative = file.relative_to(root)
        split, label = split_and_label(relative.parts[:-1])
        sections = (Section("", text),)
        document = Document(relative.as_posix(), sections, label=label, split=split)
        documents.check_text(document, place)
        return document

    files = ((str(file), file) for file in _files(root))
    return documents.read(files, convert, max_bad_fraction, report)


def stamp(path: str, content: bool = False, **keywords) -> list[tuple]:
    return [(str(file), *digest.stamp(file, content)) for file in _files(Path(path))]


def split_and_label(folders: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The split and the label that the folders above a file name."""
    if not folders:
        return None, None
    match = SPLIT.search(folders[0])
    if not match:
        return None, "/".join(folders)
    label = "/".join(folders[1:])
    return match.group(1).lower(), None if label in UNLABELLED else label


def _files(root: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(here, name)
