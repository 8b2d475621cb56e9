"""Writes and reads the parameters of an exported folder.

    model.safetensors     the segment encoder, under the names of its family, with the
                          head that predicts masked tokens if the encoder has one
    document.safetensors  all other parameters that inference reads, by our own paths

`docjax_json.py` reads the other files; the records in `families/` have the names of
tensors.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.encoders.document import DocumentEncoder
from docjax.encoders.shapes import shapes
from docjax.errors import UserError
from docjax.huggingface import files, names
from docjax.huggingface.docjax_json import FACTS
from docjax.huggingface.family import family_of

WEIGHTS = "model.safetensors"


def write_params(folder: Path, encoder: DocumentEncoder, params: Any) -> None:
    """Writes model.safetensors and document.safetensors; an empty file is left out."""
    table = _table(encoder)
    parts: dict[str, dict[str, np.ndarray]] = {WEIGHTS: {}, files.REST: {}}
    for path, array in _read_by_inference(encoder, params).items():
        tensor = np.asarray(array, np.float32)
        if path in table:
            tensor = names.swap(path, tensor)
        part = parts[WEIGHTS if path in table else files.REST]
        part[table.get(path, path)] = np.ascontiguousarray(tensor)
    for name, tensors in parts.items():
        if tensors:
            form = {"format": "pt"}  # transformers asks for this
            safetensors.numpy.save_file(tensors, folder / name, form)
            (folder / name).chmod(0o644)  # safetensors lets only the owner read it


def read_params(folder: Path, encoder: Any) -> dict[str, Any]:
    """The parameters that inference reads, nested, float32. Raises UserError if the
    tensors do not fit the encoder."""
    expected = _read_by_inference(encoder, shapes(encoder, folder / FACTS))
    table = _table(encoder)
    with files.tensors(_weights(folder)) as tensors:
        _check_tensors(folder, tensors, expected, table)
        flat = {
            path: names.read(tensors[table[path]], path)
            if path in table
            else tensors[path][:].astype(np.float32)
            for path in expected
        }
    return unflatten_dict(flat, sep="/")


def _check_tensors(
    folder: Path,
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    table: Mapping[str, str],
) -> None:
    """Raises UserError for names or shapes that do not fit docjax.json."""
    expected_names = {path: table.get(path, path) for path in expected}
    unmatched = set(expected_names.values()) ^ set(tensors)
    if unmatched:
        raise UserError(
            f"{folder}: {FACTS} asks for {len(expected)} tensors, but the files hold "
            f"{len(tensors)}: {names.some(sorted(unmatched))}; export the model again"
        )
    for path, name in expected_names.items():
        got, want = tuple(tensors[name].get_shape()), expected[path].shape
        want = names.shape_in_file(path, want) if path in table else want
        if got != want:
            raise UserError(
                f"{folder}: {name} has shape {list(got)}, but {FACTS} asks "
                f"for {list(want)}; export the model again"
            )


def _read_by_inference(encoder: DocumentEncoder, params: Any) -> dict[str, Any]:
    """The parameters that inference reads, by path; a head only if it classifies or
    predicts masked tokens."""
    family, segment = family_of(encoder.segment), encoder.segment
    left_out = tuple(f"segment/{path}" for path in family.training_only)
    if not encoder.classifies:
        left_out += ("head/",)
    kept = {f"segment/{path}" for path in family.exported(segment)}
    flat = flatten_dict(params, sep="/").items()
    return {
        path: array
        for path, array in flat
        if path in kept or not path.startswith(left_out)
    }


def _table(encoder: DocumentEncoder) -> dict[str, str]:
    table = family_of(encoder.segment).exported(encoder.segment)
    return {f"segment/{path}": name for path, name in table.items()}


def _weights(folder: Path) -> list[Path]:
    both = WEIGHTS, files.REST
    return [folder / name for name in both if (folder / name).exists()]
