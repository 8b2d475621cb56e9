"""Documents from TensorFlow Datasets, without TensorFlow: ArrayRecord files only.

TFRecord files need TensorFlow, and the library's own Parquet writer loses rows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow_datasets as library

from docjax.data import counted
from docjax.errors import UserError
from docjax.types import Document


def tfds(  # noqa: PLR0913 the fields of a config
    path: str,
    split: str | Sequence[str] = ("train", "test"),
    data_dir: str | None = None,
    text: str = "text",
    label: str | None = "label",
    title: str | None = None,
    download: bool = False,
    max_bad_fraction: float = 0.0,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The examples of a prepared dataset; ids are "SPLIT/NUMBER".

    Args:
      path: name of a dataset, or the folder of a prepared one (".../NAME/VERSION").
      split: one or several; slices such as "train[:10%]" are in the split "train".
      data_dir: where datasets are; the library's default if None.
      text, label, title: names of features; None: no such feature. Class numbers
        become class names; -1 means no label.
      download: downloads and prepares the dataset first if it is not there.

    Raises:
      UserError: if the dataset, its split or a feature is not there, or its files are
        not ArrayRecord; and what `counted.read` raises.
    """
    builder = _builder(path, data_dir, download)
    _check(builder, path)
    names = {"text": text, "label": label, "title": title}
    names = {key: name for key, name in names.items() if name is not None}
    features = builder.info.features
    counted.check_columns(names, features, f"dataset {builder.name!r}")
    classes = getattr(features[label], "names", None) if label else None

    def label_of(value: Any) -> str | None:
        if isinstance(value, str):
            return value
        number = int(value)
        if number < 0:
            return None
        return classes[number] if classes else str(number)

    splits = [split] if isinstance(split, str) else split
    tables = {part: _table(builder, part) for part in splits}
    options = builder.name, max_bad_fraction, report
    return counted.read_tables(tables, names, label_of, *options)


def stamp(
    path: str, data_dir: str | None = None, download: bool = False, **keywords
) -> list[Any]:
    """The version, and examples and bytes by split: change when the dataset changes."""
    info = _builder(path, data_dir, download).info
    splits = info.splits.values()
    return [info.full_name, [[s.name, s.num_examples, s.num_bytes] for s in splits]]


def _builder(
    name: str, data_dir: str | None, download: bool
) -> library.core.DatasetBuilder:
    try:
        if Path(name).is_dir():
            builder = library.builder_from_directory(name)
        else:
            options = {"data_dir": data_dir, "file_format": "array_record"}
            builder = library.builder(name, **options)
    except (library.core.DatasetNotFoundError, FileNotFoundError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"dataset {name!r} cannot be read ({reason})") from None
    if download and not builder.info.splits:
        try:
            builder.download_and_prepare()
        except ImportError as error:  # many datasets need packages of their own
            raise UserError(
                f"preparing dataset {builder.name!r} needs {error.name}: pip install it"
            ) from None
    return builder


def _check(builder: library.core.DatasetBuilder, name: str) -> None:
    if not builder.info.splits:
        raise UserError(
            f"dataset {name!r} is not prepared in {builder.data_path}: name its "
            "data_dir, or let download=True fetch it"
        )
    file_format = builder.info.file_format
    if file_format != library.core.FileFormat.ARRAY_RECORD:
        raise UserError(
            f"dataset {name!r} has {file_format.value} files: prepare it again with "
            "file_format='array_record'"
        )


def _table(builder: library.core.DatasetBuilder, split: str) -> Iterable[Mapping]:
    known = builder.info.splits
    if split.partition("[")[0] not in known:
        raise UserError(
            f"split {split!r}: dataset {builder.name!r} has {', '.join(known)}"
        )
    try:
        return builder.as_data_source(split=split)
    except ValueError as error:
        raise UserError(f"split {split!r}: {error}") from None
