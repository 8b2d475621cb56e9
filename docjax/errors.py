"""The one error that a user reads, and libraries that she may have to install."""

import contextlib
import importlib
import re
from collections.abc import Iterator
from types import ModuleType


class UserError(ValueError):
    """A mistake in an input, a flag or a file: shown as one line, no traceback."""


def library(name: str, what: str, extra: str) -> ModuleType:
    """A library of an extra of docjax. Raises UserError if `what` lacks the library."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(
            f"{what} needs {error.name}: pip install 'docjax[{extra}]'"
        ) from None


@contextlib.contextmanager
def in_python() -> Iterator[None]:
    """Names fields of a config and arguments in place of flags in a UserError, for who
    calls docjax from Python: config.batch for --config.batch."""
    try:
        yield
    except UserError as error:
        argument = lambda flag: flag[1].replace("-", "_")
        text = re.sub(r"--\S+ \(in Python ([^()]*(?:\([^()]*\))?)\)", r"\1", str(error))
        error.args = (re.sub(r"(?<![\w-])--([a-z][a-z-]*)", argument, text),)
        raise
