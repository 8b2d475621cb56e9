"""Documents from Hugging Face `datasets`, which is not installed by default."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docjax.data import documents
from docjax.data.sources import folder
from docjax.errors import UserError, library
from docjax.storage import digest
from docjax.types import Document

# The reader of a local file, by its suffix.
READERS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".txt": "text",
}


def huggingface(
    path: str,
    split: str | Sequence[str] = ("train", "test"),
    text: str = "text",
    label: str | None = "label",
    title: str | None = None,
    revision: str | None = None,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The rows of a dataset; ids are "SPLIT/NUMBER".

    Args:
      path: a folder that `save_to_disk` wrote, a file (CSV, JSON, Parquet, text; all
        of it is one split), or a name on the hub.
      split: one or several; the documents of a slice such as "train[:10%]" are in
        the split "train".
      text, label, title: names of columns; None: no such column. Class numbers of a
        column with class names become these names, and -1 no label.
      revision: the commit of a dataset on the hub, so that it is always the same.

    Raises:
      UserError: if `datasets` is not installed, or the dataset, a split or a column is
        not there; and what `documents.read` raises.
    """
    splits = [split] if isinstance(split, str) else split
    _check_one(path, splits)
    tables = {part: _table(path, part, revision) for part in splits}
    names = {"text": text, "label": label, "title": title}
    names = {key: name for key, name in names.items() if name is not None}
    for part, table in tables.items():
        documents.check_columns(names, table.column_names, f"{path}, split {part}")
    features = next(iter(tables.values())).features
    classes = getattr(features[label], "names", None) if label else None

    def label_of(value: Any) -> Any:
        if not classes or value is None:
            return value
        return classes[value] if value >= 0 else None

    options = path, max_bad_fraction, report
    return documents.read_tables(tables, names, label_of, *options)


def stamp(path: str, content: bool = False, **keywords) -> list[Any]:
    """Changes when local files change; a dataset on the hub changes by `revision`."""
    if Path(path).is_file():
        return [*digest.stamp(Path(path), content)]
    return folder.stamp(path, content)


def _table(path: str, split: str, revision: str | None) -> Any:
    """One split, as a `datasets.Dataset`."""
    datasets = library("datasets", "the source huggingface", "huggingface")
    file = Path(path)
    try:
        if file.is_file():
            if file.suffix not in READERS:
                raise UserError(f"{path}: not a file of {', '.join(READERS)}")
            kind, files = READERS[file.suffix], {split: str(file)}
            return datasets.load_dataset(kind, data_files=files, split=split)
        if (file / "dataset_dict.json").exists() or (file / "state.json").exists():
            table = datasets.load_from_disk(path)
            return table[split] if isinstance(table, dict) else table
        return datasets.load_dataset(path, split=split, revision=revision)
    except UserError:
        raise
    except (KeyError, ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"dataset {path!r}, split {split!r}: {reason}") from None


def _check_one(path: str, splits: Sequence[str]) -> None:
    """Raises UserError if `splits` are several, but the data is a single table."""
    one_table = Path(path).is_file() or (Path(path) / "state.json").exists()
    if one_table and len(splits) > 1:
        raise UserError(
            f"{path} is one table, not the splits {', '.join(splits)}: name one split, "
            "and divide it with --config.holdout"
        )
