"""A model's folder and its tensors, opened but not yet read.

Weights come only from safetensors: nothing is unpickled. `names.py` says what the
tensors mean.
"""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  lets NumPy read bfloat16 tensors
import safetensors

from docjax.errors import UserError
from docjax.storage import json_file

SAVE = (
    "save the model once with safetensors: sentence_transformers."
    "SentenceTransformer(FOLDER).save(NEW_FOLDER), transformers.AutoModel"
    ".from_pretrained(FOLDER).save_pretrained(NEW_FOLDER), or the same with "
    "AutoModelForMaskedLM for configs that predict masked tokens"
)
REST = "document.safetensors"  # of an exported folder: parameters of no other library
DOWNLOADED = ["*.json", "*/config.json", "*.safetensors", "*.txt", "*.model"]


def find(
    name_or_folder: str | Path, revision: str | None = None
) -> tuple[Path, str | None]:
    """The folder of a model and, if it came from the hub, its commit.

    `revision` pins a hub name; so does the form NAME@REVISION.

    Raises:
      UserError: if neither the disk nor the hub has the model, or for a folder with a
        revision.
    """
    folder = Path(name_or_folder)
    if folder.is_dir():
        if revision:
            raise UserError(
                f"{folder}: a folder has no revision {revision!r}; leave the revision "
                "out, or give a hub name"
            )
        return folder, None
    if folder.is_file():
        raise UserError(
            f"{folder} is a file: give the folder of a run or a model, or a hub name"
        )
    return _download(str(name_or_folder), revision)


def _download(name_at_revision: str, revision: str | None) -> tuple[Path, str]:
    """The folder of a hub name in the local cache, and its commit."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    name, _, pinned = name_at_revision.partition("@")
    try:
        path = huggingface_hub.snapshot_download(
            name, revision=revision or pinned or None, allow_patterns=DOWNLOADED
        )
    except (HFValidationError, HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{name_at_revision}: no such folder, and the Hugging Face hub gives no "
            f"model ({type(error).__name__}: {reason}); give a folder with config.json "
            "and model.safetensors"
        ) from None
    return Path(path), Path(path).name


def pinned(name_or_folder: str | Path) -> str:
    """A hub name as NAME@COMMIT, with its present commit; a folder stays as it is."""
    _, commit = find(name_or_folder)
    name = str(name_or_folder)
    return f"{name.partition('@')[0]}@{commit}" if commit else name


def refuse_code(folder: Path) -> None:
    """Raises UserError for a model with its own code, which docjax never runs."""
    code = sorted(path.name for path in folder.glob("modeling_*.py"))
    for name in ("config.json", "tokenizer_config.json"):
        if (folder / name).exists() and "auto_map" in json_file.read(folder / name):
            code.append(f"auto_map of {name}")
    if code:
        raise UserError(
            f"{folder}: the model brings its own code ({', '.join(code)}), which is "
            "never run; remove the code if the model works without it"
        )


@contextlib.contextmanager
def tensors(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """All tensors of the safetensors files by name, opened but not yet read."""
    with contextlib.ExitStack() as stack:
        by_name = {}
        for path in paths:
            try:
                file = stack.enter_context(safetensors.safe_open(path, framework="np"))
            except (safetensors.SafetensorError, OSError) as error:
                raise UserError(
                    f"{path}: not readable ({error}); copy or download it again"
                ) from None
            keys = file.keys()
            by_name |= {name: file.get_slice(name) for name in keys}
        yield by_name


def weights(folder: Path) -> list[Path]:
    """The safetensors files of a folder. Raises UserError if there is no such file, or
    a file that the index names is missing."""
    whole, index = (folder / f"model.safetensors{end}" for end in ("", ".index.json"))
    if whole.exists():
        return [whole]
    if index.exists():
        names = json_file.read(index).get("weight_map")
        names = list(names.values()) if isinstance(names, dict) else [None]
        if not all(isinstance(n, str) and Path(n).name == n for n in names):
            raise UserError(
                f"{index}: weight_map does not name files of this folder; copy the "
                "folder again"
            )
        parts = {folder / name for name in names}
        missing = sorted(part.name for part in parts if not part.exists())
        if missing:
            raise UserError(f"{index}: {', '.join(missing)} missing; copy them too")
        return sorted(parts)
    pickled = sorted(
        p.name for end in ("bin", "pt", "ckpt") for p in folder.glob(f"*.{end}")
    )
    if pickled:
        raise UserError(
            f"{folder}: the only weights are {', '.join(pickled)}, which is never "
            f"unpickled; {SAVE}"
        )
    raise UserError(
        f"{folder}: no model.safetensors; give a folder with weights, or, if the model "
        f"has pickled weights alone, {SAVE}"
    )
