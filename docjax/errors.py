"""The one error that a user reads."""


class UserError(ValueError):
    """A mistake in an input, a flag or a file: shown as one line, no traceback."""
