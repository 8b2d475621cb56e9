"""Documents from Hugging Face `datasets`, which is not installed by default."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docjax.data import counted, saved_dataset
from docjax.data.sources import files
from docjax.data.tables import class_names
from docjax.errors import UserError, library
from docjax.types import Document


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
      path: a folder that `save_to_disk` wrote, a file of a table (all of it is one
        split), or a name on the hub.
      split: one or several; the documents of a slice such as "train[:10%]" are in
        the split "train".
      text, label, title: names of columns; None: no such column. Class numbers of a
        column with class names become these names, and -1 no label.
      revision: the commit of a dataset on the hub, so that it is always the same.

    Raises:
      UserError: if `datasets` is not installed, or the dataset, a split or a column is
        not there; and what `counted.read` raises.
    """
    splits = [split] if isinstance(split, str) else split
    _check_one(path, splits)
    if Path(path).is_file():
        asked = dict(text=text, label=label or "", title=title or "")
        asked |= dict.fromkeys(("id", "split", "query", "links"), "")
        whole = files.files(path, **asked, **_counting(max_bad_fraction, report))
        return _in_split(whole, splits[0])
    tables = {part: _table(path, part, revision) for part in splits}
    names = {"text": text, "label": label, "title": title}
    names = {key: name for key, name in names.items() if name is not None}
    for part, table in tables.items():
        counted.check_columns(names, table.column_names, f"{path}, split {part}")
    features = next(iter(tables.values())).features
    named = class_names(features)
    label_of = functools.partial(named, label)
    counting = _counting(max_bad_fraction, report)
    return counted.read_tables(tables, names, label_of, path, **counting)


def stamp(path: str, content: bool = False, **keywords) -> list[Any]:
    """Changes when local files change; a dataset on the hub changes by `revision`."""
    return files.stamp(path, content) if Path(path).exists() else []


def _counting(max_bad_fraction: float, report: Counter | None) -> dict[str, Any]:
    return {"max_bad_fraction": max_bad_fraction, "report": report}


def _in_split(whole: Iterator[Document], split: str) -> Iterator[Document]:
    """The documents of one table, with ids "SPLIT/NUMBER"."""
    for each in whole:
        name = f"{split}/{int(each.id) - 1}"
        yield dataclasses.replace(each, id=name, split=split.partition("[")[0])


def _table(path: str, split: str, revision: str | None) -> Any:
    """One split, as a `datasets.Dataset`."""
    if saved_dataset.is_saved(path):
        found = saved_dataset.load(path)
        table = found.get(split, found.get(""))
        if table is None:
            raise UserError(
                f"dataset {path!r}, split {split!r}: no such split; the splits are "
                f"{', '.join(found)}"
            )
        return table
    datasets = library("datasets", "the source huggingface", "huggingface")
    try:
        return datasets.load_dataset(path, split=split, revision=revision)
    except Exception as error:  # noqa: BLE001 of any of its readers
        reason = saved_dataset.cause(error)
        raise UserError(f"dataset {path!r}, split {split!r}: {reason}") from None


def _check_one(path: str, splits: Sequence[str]) -> None:
    """Raises UserError if `splits` are several, but the data is a single table."""
    one_table = Path(path).is_file() or (Path(path) / "state.json").exists()
    if one_table and len(splits) > 1:
        raise UserError(
            f"{path} is one table, not the splits {', '.join(splits)}: name one split, "
            "and divide it with --config.holdout"
        )
