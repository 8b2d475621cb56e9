"""The `docjax` command.

Exit codes: 0 done; 2 a mistake in a flag, a model or the data, one line says which;
130 stopped by Ctrl-C. A command imports what it needs when it runs: help is instant.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from docjax.errors import UserError
from docjax.storage import disk_errors

COMMANDS = (
    "augment",
    "compare",
    "encode",
    "evaluate",
    "export",
    "mine",
    "search",
    "serve",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    flags = _parser().parse_args(argv)
    try:
        flags.run_command(flags)
        sys.stdout.flush()
    except UserError as error:
        print(f"docjax: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("docjax: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output has closed it
        _leave_output()
    except OSError as error:
        found = disk_errors.cause(error)
        if found is None:
            raise
        _leave_output()
        print(f"docjax: {found.path or 'the output'}: {found.line}", file=sys.stderr)
        return 2
    return 0


def _leave_output() -> None:
    """Drops what is still to be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="docjax", description="Embeddings of long documents."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        command = importlib.import_module(f"docjax.commands.{name}")
        own = commands.add_parser(
            name,
            help=command.HELP,
            description=command.__doc__,
            epilog=f"example: {command.EXAMPLE}",
        )
        command.arguments(own)
        own.set_defaults(run_command=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
