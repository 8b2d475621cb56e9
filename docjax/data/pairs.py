"""Pairs of documents that are similar or not, from a table.

A tab-separated file whose first line is `split, source, target, label`: two ids, and 1
for similar, 0 for not.
"""

from pathlib import Path
from typing import NamedTuple

from docjax.errors import UserError

COLUMNS = ["split", "source", "target", "label"]


class Pair(NamedTuple):
    source: str
    target: str
    similar: bool


def read_pairs(file: Path) -> dict[str, list[Pair]]:
    """The pairs of each split.

    Raises:
      UserError: for a missing file, another header, and a line that is no pair.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from None
    if not lines or lines[0].split("\t") != COLUMNS:
        raise UserError(f"{file}, line 1: not {', '.join(COLUMNS)} with tabs between")
    found: dict[str, list[Pair]] = {}
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS) or fields[3] not in ("0", "1"):
            raise UserError(
                f"{file}, line {number}: {line!r} is not {', '.join(COLUMNS)} with "
                "tabs between, and label 0 or 1"
            )
        pair = Pair(fields[1], fields[2], fields[3] == "1")
        found.setdefault(fields[0], []).append(pair)
    return found
