"""The `docjax` command.

Exit codes (`train` has those of `docjax.main`): 0 done; 2 a mistake in a flag, a model
or the data, explained in one line; 130 stopped by Ctrl-C, 75 by SIGTERM. Commands
import heavy libraries only when they run, so help is instant.
"""

import argparse
import contextlib
import importlib
import os
import re
import sys
from collections.abc import Sequence

import shtab

import docjax
from docjax.errors import UserError
from docjax.parts.outside import errors_named
from docjax.progress import bars, session
from docjax.progress.signals import Stopped
from docjax.storage import disk_errors

COMMANDS = (
    "train augment compare encode evaluate export index mine pair queries search "
    "serve similarities"
).split()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code.

    argv: the words behind the command; None: those of this process, which a signal ends.
    """
    alone, options, code = argv is None, (), 0
    if alone:
        session.begin()
    argv = sys.argv[1:] if alone else list(argv)
    try:
        parser = _parser(argv)
        flags, unknown = parser.parse_known_args(argv)
        if unknown:
            flags.refuse(flags, unknown)
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        options = flags.options
        foreign = errors_named(getattr(flags, "allow", ()), f"docjax {argv[0]}")
        with session.under_way(), _shown(argv[0]), foreign:
            code = flags.run_command(flags) or 0
        sys.stdout.flush()
    except UserError as error:
        print(
            f"docjax: {_in_one_line(with_flags(str(error), options))}", file=sys.stderr
        )
        return 2
    except Stopped as stopped:
        print(f"docjax: {stopped}", file=sys.stderr, flush=True)
        if alone:  # Python would end while threads compile, and crash
            os._exit(stopped.code)
        return stopped.code
    except BrokenPipeError:  # the reader has closed the output
        _leave_output()
    except OSError as error:
        cause = disk_errors.cause(error)
        if cause is None:
            raise
        if cause.path is None:
            _leave_output()
        line = _in_one_line(f"{cause.path or 'the output'}: {cause.line}")
        print(f"docjax: {line}", file=sys.stderr)
        return 2
    return code


def _shown(command: str) -> contextlib.AbstractContextManager:
    """A bar, so that no command is silent for long. A server waits for requests, and
    training has bars of its own."""
    if command in ("serve", "train"):
        return contextlib.nullcontext()
    return bars.bar(command, ends=False)


def _in_one_line(error: str) -> str:
    """The text of an error; a line break or an escape in a user's name is written out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in error)


def _leave_output() -> None:
    """Drops output that is not yet written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands.

    A command may have `named_options(parser, words)`, which adds the options of a part
    that the words of the command name, and `refuse(flags, unknown)`, which raises
    UserError for an option of another part, and may take words off `unknown`.
    """
    parser = argparse.ArgumentParser(
        prog="docjax", description="Embeddings of long documents."
    )
    version = f"docjax {docjax.__version__}"
    parser.add_argument("--version", action="version", version=version)
    shtab.add_argument_to(parser, help="print the completion of a shell's TAB key")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        command = importlib.import_module(f"docjax.commands.{name}")
        subparser = commands.add_parser(
            name,
            help=command.HELP,
            description=command.__doc__,
            epilog=f"example: {command.EXAMPLE}",
        )
        command.arguments(subparser)
        for action in subparser._actions:
            # TAB completes the names of files.
            if action.nargs != 0 and not action.choices:
                action.complete = shtab.FILE
        if argv[:1] == [name] and hasattr(command, "named_options"):
            command.named_options(subparser, argv[1:])
        refuse = getattr(command, "refuse", lambda *_: None)
        options = [name for a in subparser._actions for name in a.option_strings]
        subparser.set_defaults(run_command=command.run, refuse=refuse, options=options)
    return parser


def with_flags(error: str, options: Sequence[str]) -> str:
    """The text of an error, in which the arguments of Python are the options of the
    command, such as --truncate-dim for truncate_dim."""
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        if option == f"--{name.replace('_', '-')}" and option not in error:
            anywhere = rf"(?<![\w.'\"/-]){name}(?![\w.'\"/])"
            error = re.sub(anywhere if "_" in name else rf"^{name}(?= )", option, error)
    return error


if __name__ == "__main__":
    sys.exit(main())
