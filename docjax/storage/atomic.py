"""Files that appear whole or not at all.

New contents go to a file beside the final one, which is synced to the disk and renamed.
A kill, a power cut or a full disk never leaves half a file under the final name: the
functions raise OSError, and the old file stays.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np


def write_text(path: Path, text: str) -> None:
    """Writes `text` as UTF-8."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, raw: bytes) -> None:
    with partial(path) as beside:
        beside.write_bytes(raw)


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes a file of NumPy (.npy)."""
    with partial(path) as beside, beside.open("wb") as stream:
        np.save(stream, array)


@contextlib.contextmanager
def partial(path: Path, writer: str = "") -> Iterator[Path]:
    """Yields a path beside `path`; renames the file written there to `path` at the end.

    If the block raises, `path` stays as it was and the partial file is removed. A
    killed process leaves its partial file; the next writer of `path` overwrites it.
    A link stays a link, to the file that is written; a pipe or a device is written as
    it is.

    writer: a name for this process, if several may write `path` at the same time.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        yield path
        return
    path = path.resolve()
    beside = path.with_name(".".join(filter(None, [path.name, writer, "partial"])))
    try:
        yield beside
        rename(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def rename(partial: Path, path: Path) -> None:
    """Syncs a file, or all files of a folder, and renames it to `path`, which is no
    folder with files."""
    files = partial.rglob("*") if partial.is_dir() else [partial]
    for file in files:
        if file.is_file():
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
    partial.replace(path)
