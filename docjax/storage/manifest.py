"""A folder's manifest: the sha256 of every file, which reveals a flipped bit."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from docjax.storage import json_file
from docjax.storage.digest import sha256

MANIFEST = "manifest.json"


class Comparison(NamedTuple):
    """The files of a folder against its manifest, by their path in the folder."""

    differing: list[str]
    missing: list[str]
    unknown: list[str]


def seal(folder: Path) -> None:
    """Writes the manifest."""
    json_file.write(folder / MANIFEST, _hashes(folder))


def compare(folder: Path) -> Comparison:
    """What has changed since the folder was sealed; hidden files do not count.

    Raises:
      FileNotFoundError: without a manifest.
      UserError: if the manifest is not a JSON object.
    """
    path = folder / MANIFEST
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    expected = json_file.read(path)
    hashes = _hashes(folder)
    both = hashes.keys() & expected
    differing = sorted(name for name in both if hashes[name] != expected[name])
    missing, unknown = expected.keys() - hashes, hashes.keys() - expected
    return Comparison(differing, sorted(missing), sorted(unknown))


def agrees(
    facts: Mapping[str, Any], fingerprint: str, contents: Callable[[], str | None]
) -> bool:
    """Whether a corpus has this fingerprint, or else the fingerprint of its contents.

    A corpus of queries has no fingerprint of contents; `contents` is not called then.
    """
    if facts["fingerprint"] == fingerprint:
        return True
    return bool(facts.get("contents")) and facts["contents"] == contents()


def _hashes(folder: Path) -> dict[str, str]:
    names = [p.relative_to(folder) for p in sorted(folder.rglob("*")) if p.is_file()]
    excluded = (MANIFEST, MANIFEST + ".partial")
    return {
        name.as_posix(): sha256(folder / name)
        for name in names
        if name.as_posix() not in excluded
        if not any(part.startswith(".") for part in name.parts)
    }
