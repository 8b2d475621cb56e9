"""NumPy files that are written row by row, and the hash of a tree of arrays."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import jax
import numpy as np


@contextlib.contextmanager
def growing_array(
    file: Path, dtype: type, row: tuple[int, ...] = ()
) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens a .npy file that may hold more rows than memory.

    Yields the function that appends rows.
    """
    rows = 0

    def append(array: np.ndarray) -> None:
        nonlocal rows
        stream.write(np.ascontiguousarray(array).astype(dtype).tobytes())
        rows += len(array)

    with open(file, "wb") as stream:
        _write_header(stream, dtype, (0, *row))
        yield append
        stream.seek(0)
        _write_header(stream, dtype, (rows, *row))  # NumPy leaves room for any number


def write_rows(file: Path, count: int, rows: np.ndarray, values: np.ndarray) -> None:
    """Writes a .npy file of `count` float32 rows: `values` at `rows`, zeros elsewhere.

    Rows of zeros take no room on the disk.
    """
    values = np.ascontiguousarray(values, np.float32)
    size = values.nbytes // max(len(values), 1)
    with open(file, "wb") as stream:
        _write_header(stream, np.float32, (count, *values.shape[1:]))
        first = stream.tell()
        for row, value in zip(rows.tolist(), values, strict=True):
            stream.seek(first + row * size)
            stream.write(value.tobytes())
        stream.truncate(first + count * size)


def mapped(file: Path) -> np.ndarray:
    """The array in a file. Raises for a file that is shorter than its header says."""
    return np.load(file, mmap_mode="r", allow_pickle=False)


def digest(facts: str, params: Any) -> str:
    """The sha256 of `facts` and of the names and values of all parameters."""
    sha256 = hashlib.sha256(facts.encode())
    for path, leaf in jax.tree.leaves_with_path(params):
        sha256.update(jax.tree_util.keystr(path).encode())
        sha256.update(np.asarray(leaf).tobytes())
    return sha256.hexdigest()


def _write_header(stream: BinaryIO, dtype: type, shape: tuple[int, ...]) -> None:
    header = np.lib.format.header_data_from_array_1_0(np.empty(0, dtype))
    np.lib.format.write_array_header_1_0(stream, {**header, "shape": shape})
