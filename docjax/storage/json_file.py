"""JSON files of runs and model folders."""

import json
from pathlib import Path
from typing import Any

from docjax.errors import UserError
from docjax.storage import atomic

MAX_BYTES = 1 << 24  # an index of weight shards has some hundred thousand


def write(path: Path, value: Any) -> None:
    """Writes plain data as indented JSON, as `atomic.write_text`."""
    atomic.write_text(path, json.dumps(value, indent=2) + "\n")


def read_if_there(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None without such a file."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def read(path: Path, kind: type = dict) -> Any:
    """The JSON object in a file; the JSON array if `kind` is list. Raises UserError for
    a missing or unreadable file, or one with other contents."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(
            f"{path}: no such file; is {path.parent} a run or a model folder?"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise UserError(f"{path}: longer than {MAX_BYTES:,} bytes, so not a config")
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from None
    if not isinstance(value, kind):
        raise UserError(f"{path}: not a JSON {'array' if kind is list else 'object'}")
    return value
