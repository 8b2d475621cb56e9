"""Options that several commands take."""

import argparse
from pathlib import Path

from docjax.errors import UserError


def truncate_dim(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--truncate-dim", type=int, help="the numbers of a vector that are kept (all)"
    )


def segments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--segments",
        type=int,
        metavar="N",
        help="read the first N segments of each document only (all, or as the run says): "
        "1 is the text up to the length of a plain transformer; for a run a segment may "
        "end earlier, with a section or a passage",
    )


def allow(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="PREFIX",
        help="trust the code of a package outside of docjax, such as mylab. (may be "
        "repeated)",
    )


def check_folder(name: str) -> None:
    """Raises UserError for an --output that is a file where a folder is written."""
    if Path(name).is_file():
        raise UserError(f"--output {name} is a file: give the name of a folder")


def max_bad_fraction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-bad-fraction",
        type=float,
        default=0.0,
        help="bad documents that may be left out, as a share of all",
    )


WORDS = "settings of BM25: docjax, anserini, rank_bm25, wikir, or a JSON object"


def words(parser: argparse.ArgumentParser, use: str = "") -> None:
    parser.add_argument("--words", default="docjax", help=f"{use}{WORDS} (%(default)s)")


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


def processes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        help="processes that share the work (%(default)s)",
    )
    parser.add_argument(
        "--process", type=int, default=0, help="number of this process (%(default)s)"
    )
