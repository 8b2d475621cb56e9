"""A model's folder, its JSON files and its tensors, opened but not yet read.

Weights come from safetensors alone: nothing is unpickled. What the tensors mean is in
`names.py`.
"""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  lets NumPy read bfloat16 tensors
import safetensors

from docjax.config import UserError

DOWNLOADED = ["*.json", "*/config.json", "*.safetensors", "*.txt", "*.model"]


def find(
    name_or_folder: str | Path,
    revision: str | None = None,
    local_files_only: bool = False,
) -> tuple[Path, str | None]:
    """The folder of a model and, if it came from the hub, its commit.

    Raises:
      UserError: if there is no such folder, and the hub has or gives none.
    """
    folder = Path(name_or_folder)
    if folder.is_dir():
        return folder, None
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        path = huggingface_hub.snapshot_download(
            str(name_or_folder),
            revision=revision,
            local_files_only=local_files_only,
            allow_patterns=DOWNLOADED,
        )
    except (HFValidationError, HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{name_or_folder}: no such folder, and not had from the Hugging Face hub "
            f"({type(error).__name__}: {reason}); give a folder with config.json and "
            "model.safetensors"
        ) from None
    return Path(path), Path(path).name


def read_json(path: Path, kind: type = dict) -> Any:
    """The JSON object in a file, or with `kind` list the array.

    Raises:
      UserError: for a missing file, or one with something else in it.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; is this a model folder?") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not JSON ({error})") from None
    if not isinstance(value, kind):
        raise UserError(f"{path}: no JSON {'array' if kind is list else 'object'}")
    return value


@contextlib.contextmanager
def tensors(folder: Path) -> Iterator[dict[str, Any]]:
    """All tensors of a folder by name, opened but not yet read."""
    with contextlib.ExitStack() as stack:
        found = {}
        for path in _weight_files(folder):
            try:
                file = stack.enter_context(safetensors.safe_open(path, framework="np"))
            except (safetensors.SafetensorError, OSError) as error:
                raise UserError(f"{path}: not readable ({error})") from None
            found |= {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        yield found


def _weight_files(folder: Path) -> list[Path]:
    whole, index = (folder / f"model.safetensors{end}" for end in ("", ".index.json"))
    if whole.exists():
        return [whole]
    if index.exists():
        parts = {folder / part for part in read_json(index)["weight_map"].values()}
        missing = sorted(part.name for part in parts if not part.exists())
        if missing:
            raise UserError(f"{index}: {', '.join(missing)} missing; copy them too")
        return sorted(parts)
    pickled = sorted(
        p.name for end in ("bin", "pt", "ckpt") for p in folder.glob(f"*.{end}")
    )
    if pickled:
        raise UserError(
            f"{folder}: weights only as {', '.join(pickled)}, which is never unpickled; "
            "save them once as safetensors: transformers.AutoModel.from_pretrained("
            "FOLDER).save_pretrained(NEW_FOLDER)"
        )
    raise UserError(f"{folder}: no model.safetensors")
