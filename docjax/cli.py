"""The `docjax` command. Errors are one line each, with exit code 2."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from docjax.augment import augmented
from docjax.config import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    flags = _parser().parse_args(argv)
    try:
        flags.run_command(flags)
    except UserError as error:
        print(f"docjax: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="docjax", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    augment = commands.add_parser("augment", help="show a text under each paraphrase")
    augment.add_argument("text")
    augment.add_argument("--model", type=Path, help="a run: its vocabulary only")
    augment.add_argument("--lexicons", help="the folder of NLTK's data")
    augment.add_argument("--paraphrases", help="a file of word pairs, as PPDB's")
    augment.add_argument("--seed", type=int, default=0)
    augment.set_defaults(run_command=_augment)
    return parser


def _augment(flags: argparse.Namespace) -> None:
    found = augmented(
        flags.text,
        run=flags.model,
        lexicons=flags.lexicons,
        paraphrases=flags.paraphrases,
        seed=flags.seed,
    )
    for name, text in found.items():
        print(f"{name:14} {text}")


if __name__ == "__main__":
    sys.exit(main())
