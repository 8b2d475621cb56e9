"""Options that several commands take, and checks of the outputs that they name."""

import argparse
from pathlib import Path
from typing import Any

from docjax.errors import UserError

OPTIONS: dict[str, dict[str, Any]] = {
    "allow": dict(
        action="append",
        default=[],
        metavar="PREFIX",
        help="trust the code of a package outside of docjax, such as mylab. (may be "
        "repeated)",
    ),
    "truncate-dim": dict(type=int, help="the numbers of a vector that are kept (all)"),
    "segments": dict(
        type=int,
        metavar="N",
        help="read the first N segments of each document only (all, or as the run says): "
        "1 is the text up to the length of a plain transformer; for a run a segment may "
        "end earlier, with a section or a passage",
    ),
    "max-bad-fraction": dict(
        type=float,
        default=0.0,
        help="bad documents that may be left out, as a share of all",
    ),
    "encoding": dict(
        help="of texts, such as cp1252 (UTF-8, or what the first bytes say)"
    ),
    "words": dict(
        default="docjax",
        help="settings of BM25: docjax, anserini, rank_bm25, wikir, or a JSON object "
        "(%(default)s)",
    ),
    "processes": dict(
        type=int, default=1, help="processes that share the work (%(default)s)"
    ),
    "process": dict(type=int, default=0, help="number of this process (%(default)s)"),
}
KEYS = ("text", "title", "label", "id", "split", "query", "links")
OPTIONS |= {
    f"{key}-column": dict(
        metavar="NAME",
        help=f"the column of the {key} (one with a usual name; '': none)",
    )
    for key in KEYS
}
COLUMNS = tuple(f"{key}-column" for key in KEYS)
# How documents are read; docs/files.md lists the files.
READING = ("max-bad-fraction", "encoding", *COLUMNS)
FILES = "JSON lines, CSV, Parquet, texts or a folder of texts (docs/files.md)"


def add(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options of OPTIONS."""
    for name in names:
        parser.add_argument(f"--{name}", **OPTIONS[name])


def reading(flags: argparse.Namespace) -> dict[str, Any]:
    """The flags of READING that are given, as keywords of
    `docjax.data.sources.files.files`."""
    given = {key: getattr(flags, f"{key}_column") for key in KEYS}
    given |= {"encoding": flags.encoding}
    given |= {"max_bad_fraction": flags.max_bad_fraction or None}
    return {key: value for key, value in given.items() if value is not None}


def check_not_given(reading: dict[str, Any], why: str) -> None:
    """Raises UserError for keywords of `reading` that do nothing."""
    for key in reading:
        flag = f"{key}-column" if key in KEYS else key.replace("_", "-")
        raise UserError(f"--{flag}: {why}; leave it out")


def prompt(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--prompt",
        metavar="TEXT",
        help="words before each segment of a document, such as an instruction "
        "(the model's own); '' for none",
    )
    either.add_argument(
        "--prompt-name", metavar="NAME", help="the name of one of the model's prompts"
    )


def check_least(flags: argparse.Namespace, **least: int) -> None:
    """Raises UserError for a flag whose number is below its least."""
    for name, number in least.items():
        value = getattr(flags, name)
        if value is not None and value < number:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} {value} is too small; give at least {number}")


def check_folder(name: str) -> None:
    """Raises UserError for an --output that is a file where a folder is written."""
    if Path(name).is_file():
        raise UserError(f"--output {name} is a file: give the name of a folder")


def check_file(flag: str, name: str) -> None:
    """Raises UserError for an output that cannot be a file, before any work."""
    if not Path(name).name or Path(name).is_dir():
        raise UserError(f"{flag} {name!r} names no file: give the path of a file")


def check_file_in_folder(flag: str, name: str) -> None:
    """As `check_file`, for a command that makes no folder."""
    check_file(flag, name)
    if not Path(name).parent.is_dir():
        raise UserError(f"{name}: cannot be written (there is no such folder)")


def check_other(flag: str, name: str, **inputs: str) -> None:
    """Raises UserError for an output that is one of the inputs, which would be lost."""
    for what, given in inputs.items():
        if given != "-" and Path(given).resolve() == Path(name).resolve():
            raise UserError(f"{flag} {name} is {what} too: name another file")
