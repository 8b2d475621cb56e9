"""A NumPy file that grows row by row, for more rows than memory holds."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np


@contextlib.contextmanager
def growing_array(
    file: Path, dtype: type, row: tuple[int, ...] = ()
) -> Iterator[Callable[[np.ndarray], None]]:
    """Opens a .npy file; gives the function that appends rows to it."""
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


def _write_header(stream: BinaryIO, dtype: type, shape: tuple[int, ...]) -> None:
    header = np.lib.format.header_data_from_array_1_0(np.empty(0, dtype))
    np.lib.format.write_array_header_1_0(stream, {**header, "shape": shape})
