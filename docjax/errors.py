"""The one error that a user reads, and libraries that she may have to install."""

import importlib
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
