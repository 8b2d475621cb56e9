"""Records from Parquet, Arrow and Feather files."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from docjax.data import columns
from docjax.data.documents import parsing
from docjax.data.streams import ARROW_STREAM, Opened
from docjax.data.table import Row, Table
from docjax.data.tables import ROWS, class_names, plain


def parquet(file: Opened) -> Table:
    """The rows of a Parquet file. Raises UserError if it is damaged."""
    with parsing(file.name, "Parquet"):
        opened = pyarrow.parquet.ParquetFile(file.whole())
    batches = lambda: opened.iter_batches(ROWS)
    return _table(file, "Parquet", opened.schema_arrow, batches)


def arrow(file: Opened) -> Table:
    """The rows of an Arrow or Feather file. Raises UserError if it is damaged."""
    is_stream = file.head.startswith(ARROW_STREAM)
    read = pa.ipc.open_stream if is_stream else pa.ipc.open_file
    with parsing(file.name, "Arrow"):
        opened = read(file.whole())

    def batches() -> Iterator[pa.RecordBatch]:
        if is_stream:
            yield from opened
        else:
            for number in range(opened.num_record_batches):
                yield opened.get_batch(number)

    return _table(file, "Arrow", opened.schema, batches)


def _table(
    file: Opened,
    kind: str,
    schema: pa.Schema,
    batches: Callable[[], Iterable[pa.RecordBatch]],
) -> Table:
    columns.check_unique(schema.names, file.name)
    named = class_names(_features(schema))

    def rows() -> Iterator[Row]:
        with parsing(file.name, kind):
            found = (row for batch in batches() for row in _checked(batch).to_pylist())
            for number, row in enumerate(found, start=1):
                values = {key: plain(named(key, value)) for key, value in row.items()}
                yield f"{file.name}, row {number}", values

    return Table(kind, schema.names, rows())


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch. Raises for one whose bytes are damaged: to read them could crash."""
    batch.validate(full=True)
    return batch


def _features(schema: pa.Schema) -> dict[str, Any]:
    """The features that the library `datasets` writes into a schema."""
    try:
        facts = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = facts["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}
