"""Files of vectors with ids, by their suffix, written row by row in constant memory.

.npy       the vectors alone, float32 [documents, width]; the ids in OUT.ids.jsonl
.npz       the arrays `ids` (texts of equal length, so memory holds all) and `vectors`
.csv       the columns id, v0, v1 ...
.parquet   the columns `id` and `vector`
.jsonl     {"id": ..., "vector": [...]}
"""

import contextlib
import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.storage import atomic
from docjax.storage.arrays import growing_array, mapped

Append = Callable[[Float[np.ndarray, "b d"], Iterable[str]], None]
DIGITS = "%.9g"  # of a float32, so that it is read back as it was


def check(output: Path) -> None:
    """Raises UserError for a suffix that says no format."""
    if output.suffix.lower() not in WRITERS:
        raise UserError(
            f"--output {output}: the suffix says the format; give one of "
            f"{', '.join(WRITERS)}"
        )


def beside(output: Path, end: str) -> Path:
    """The path OUTPUT.END, beside the output."""
    return output.with_name(f"{output.name}.{end}")


@contextlib.contextmanager
def appending(output: Path, width: int) -> Iterator[Append]:
    """Yields the function that appends rows and their ids to the output, which appears
    at the end or not at all."""
    with WRITERS[output.suffix.lower()](output, width) as append:
        yield append


def is_whole(output: Path, documents: int, width: int, size: int | None) -> bool:
    """Whether an output has all its rows and ids; `size` is that of the written file, or
    None if it is not known."""
    try:
        if output.suffix.lower() != ".npy":
            return size in (None, output.stat().st_size)
        with open(beside(output, "ids.jsonl"), "rb") as lines:
            ids = sum(1 for _ in lines)
        return mapped(output).shape == (documents, width) and ids == documents
    except (OSError, EOFError, ValueError):
        return False


@contextlib.contextmanager
def _npy(output: Path, width: int) -> Iterator[Append]:
    ids = beside(output, "ids.jsonl")
    with (
        atomic.partial(output) as partial,
        atomic.partial(ids) as partial_ids,
        growing_array(partial, np.float32, (width,)) as append,
        open(partial_ids, "w", encoding="utf-8") as lines,
    ):

        def append_with_ids(
            vectors: Float[np.ndarray, "b d"], names: Iterable[str]
        ) -> None:
            append(vectors)
            lines.writelines(json.dumps({"id": name}) + "\n" for name in names)

        yield append_with_ids


@contextlib.contextmanager
def _npz(output: Path, width: int) -> Iterator[Append]:
    vectors, all_names = beside(output, "vectors"), []
    with atomic.partial(output) as partial:
        try:
            with growing_array(vectors, np.float32, (width,)) as append:

                def append_with_ids(
                    rows: Float[np.ndarray, "b d"], names: Iterable[str]
                ) -> None:
                    append(rows)
                    all_names.extend(names)

                yield append_with_ids
            with zipfile.ZipFile(partial, "w") as archive:
                archive.write(vectors, "vectors.npy")
                with archive.open("ids.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, np.array(all_names, str))
        finally:
            vectors.unlink(missing_ok=True)


@contextlib.contextmanager
def _csv(output: Path, width: int) -> Iterator[Append]:
    with (
        atomic.partial(output) as partial,
        open(partial, "w", encoding="utf-8", newline="") as stream,
    ):
        table = csv.writer(stream)
        table.writerow(["id", *(f"v{number}" for number in range(width))])

        def append(vectors: Float[np.ndarray, "b d"], names: Iterable[str]) -> None:
            for name, vector in zip(names, vectors.tolist(), strict=True):
                table.writerow([name, *(DIGITS % value for value in vector)])

        yield append


@contextlib.contextmanager
def _parquet(output: Path, width: int) -> Iterator[Append]:
    import pyarrow as pa  # slow to load
    import pyarrow.parquet

    kind = pa.list_(pa.float32(), width)
    schema = pa.schema([("id", pa.string()), ("vector", kind)])
    with (
        atomic.partial(output) as partial,
        pyarrow.parquet.ParquetWriter(partial, schema) as table,
    ):

        def append(vectors: Float[np.ndarray, "b d"], names: Iterable[str]) -> None:
            flat = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
            rows = pa.FixedSizeListArray.from_arrays(flat, width)
            columns = [pa.array(list(names), pa.string()), rows]
            table.write_table(pa.table(columns, schema=schema))

        yield append


@contextlib.contextmanager
def _jsonl(output: Path, width: int) -> Iterator[Append]:
    with (
        atomic.partial(output) as partial,
        open(partial, "w", encoding="utf-8") as lines,
    ):

        def append(vectors: Float[np.ndarray, "b d"], names: Iterable[str]) -> None:
            for name, vector in zip(names, vectors.tolist(), strict=True):
                short = [float(DIGITS % value) for value in vector]
                lines.write(json.dumps({"id": name, "vector": short}) + "\n")

        yield append


WRITERS = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
    ".jsonl": _jsonl,
}
