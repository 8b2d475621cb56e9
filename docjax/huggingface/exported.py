"""The parts of an exported folder that docjax reads back, and how they are written.

    docjax.json           encoder, units, segments, graph, limits, as a config has them
    model.safetensors     the segment encoder, under the names of its family
    document.safetensors  all other parameters that inference reads, by our own paths
    manifest.json         the sha256 of every file

`docjax.export.write` adds the files of other libraries. The names of tensors are in
`families.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax import config as config_lib
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.errors import UserError
from docjax.huggingface import configs, files, names
from docjax.huggingface.families import family_of
from docjax.storage import json_file, manifest

FACTS = "docjax.json"
FORMAT = 2
WEIGHTS, REST = "model.safetensors", "document.safetensors"
FIELDS = ("encoder", "units", "segments", "graph", "limits", "labels", "similarity")
LIMITS = ("segment_tokens", "query_tokens", "inference_segments")
NOT_READ = (".py", ".md")  # docjax reads none: a download may leave them out
TEXTS = ("", ".md", ".txt", ".png", ".jpg", ".svg")  # users may add such files: LICENSE
LAYERS = 1000  # no encoder has more, and each layer takes time to build
TOKENS = 1 << 20  # no encoder reads longer segments
MODULE, STOCK = "docjax_module.LongDocuments", "sentence_transformers."


def write(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes docjax.json."""
    config_lib.save({"format": FORMAT} | dict(facts), folder / FACTS)


def write_params(folder: Path, encoder: DocumentEncoder, params: Any) -> None:
    """Writes model.safetensors and document.safetensors; an empty file is left out."""
    table = _table(encoder)
    parts: dict[str, dict[str, np.ndarray]] = {WEIGHTS: {}, REST: {}}
    for path, array in _read_by_inference(encoder, params).items():
        tensor = np.asarray(array, np.float32)
        if path in table:
            tensor = names.swap(path, tensor)
        part = parts[WEIGHTS if path in table else REST]
        part[table.get(path, path)] = np.ascontiguousarray(tensor)
    for name, tensors in parts.items():
        if tensors:
            form = {"format": "pt"}  # transformers asks for this
            safetensors.numpy.save_file(tensors, folder / name, form)
            (folder / name).chmod(0o644)  # safetensors lets the owner alone read it


def read(folder: Path) -> dict[str, Any]:
    """docjax.json, after all files were compared with the manifest.

    Raises:
      UserError: for a file that is damaged, missing or not of the export, and for a
        docjax.json that lacks a field or has another format.
    """
    _verify(folder)
    files.refuse_code(folder)
    _check_modules(folder / "modules.json")
    path = folder / FACTS
    facts = json_file.read(path)
    if facts.get("format") != FORMAT:
        raise UserError(
            f"{path}: format {facts.get('format')!r}, this docjax reads {FORMAT}: "
            "export the model again, or install the docjax that wrote it"
        )
    missing = [name for name in FIELDS if name not in facts]
    if missing:
        raise UserError(f"{path}: {', '.join(missing)} missing; export it again")
    check_limits(facts["limits"], path)
    return facts


def pooling(folder: Path) -> tuple[str, bool]:
    """Pooling of the segment encoder, and whether its vectors have length 1.

    Raises:
      UserError: if transformers does not know the segment encoder.
    """
    encoder = config_lib.build(read(folder)["encoder"], ("docjax.encoders.",))
    _check_kind(encoder, folder / FACTS)
    if not family_of(encoder.segment).in_transformers:
        raise UserError(
            f"{folder}: its segment encoder {type(encoder.segment).__name__} is no "
            "transformer; give the folder of a transformer"
        )
    return encoder.segment.pooling, encoder.segment.normalize


def read_params(folder: Path, encoder: Any) -> dict[str, Any]:
    """The parameters of an encoder that inference reads, nested, float32.

    Raises:
      UserError: if the tensors are not those of the encoder.
    """
    expected = _read_by_inference(encoder, shapes(encoder, folder / FACTS))
    table = _table(encoder)
    with files.tensors(_weights(folder)) as tensors:
        _check_tensors(folder, tensors, expected, table)
        flat = {path: _read(tensors, path, table) for path in expected}
    return unflatten_dict(flat, sep="/")


def _check_tensors(
    folder: Path,
    tensors: Mapping[str, Any],
    expected: Mapping[str, Any],
    table: Mapping[str, str],
) -> None:
    """Raises UserError for other names or shapes than those of docjax.json."""
    expected_names = {path: table.get(path, path) for path in expected}
    odd = set(expected_names.values()) ^ set(tensors)
    if odd:
        raise UserError(
            f"{folder}: {FACTS} asks for {len(expected)} tensors, the files hold "
            f"{len(tensors)}: {names.some(sorted(odd))}; export the model again"
        )
    for path, name in expected_names.items():
        got, want = tuple(tensors[name].get_shape()), expected[path].shape
        if path in table and names.swapped(path):
            want = want[::-1]
        if got != want:
            raise UserError(
                f"{folder}: {name} has shape {list(got)}, {FACTS} asks for "
                f"{list(want)}; export the model again"
            )


def _read(
    tensors: Mapping[str, Any], path: str, table: Mapping[str, str]
) -> np.ndarray:
    tensor = tensors[table.get(path, path)][:].astype(np.float32)
    return np.ascontiguousarray(names.swap(path, tensor) if path in table else tensor)


def _read_by_inference(encoder: DocumentEncoder, params: Any) -> dict[str, Any]:
    """By path: all but what only training reads, and a head without classes."""
    training_only = family_of(encoder.segment).training_only
    left_out = tuple(f"segment/{path}" for path in training_only)
    if not encoder.classifies:
        left_out += ("head/",)
    flat = flatten_dict(params, sep="/").items()
    return {path: array for path, array in flat if not path.startswith(left_out)}


def _table(encoder: DocumentEncoder) -> dict[str, str]:
    table = family_of(encoder.segment).table(encoder.segment)
    return {f"segment/{path}": name for path, name in table.items()}


def _weights(folder: Path) -> list[Path]:
    return [folder / name for name in (WEIGHTS, REST) if (folder / name).exists()]


def _verify(folder: Path) -> None:
    """Raises UserError if the files are not those that were exported."""
    try:
        compared = manifest.compare(folder)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: the model cannot be verified ({error}); export it again"
        ) from None
    missing = [name for name in compared.missing if not name.endswith(NOT_READ)]
    differing = [name for name in compared.differing if not name.endswith(".md")]
    unknown = [name for name in compared.unknown if Path(name).suffix not in TEXTS]
    for faulty, fault in (
        (differing, "differs from what was exported: export the model again"),
        (missing, "is missing: copy it too, or export the model again"),
        (unknown, "is no file of the export: take it out of this folder"),
    ):
        if faulty:
            raise UserError(f"{folder / faulty[0]} {fault}")


def _check_modules(path: Path) -> None:
    """Raises UserError for modules that no export has; docjax itself runs none."""
    for module in json_file.read(path, list):
        kind = module.get("type") if isinstance(module, dict) else module
        if not str(kind).startswith((MODULE, STOCK)):
            raise UserError(
                f"{path}: module {kind} is not of an export: export the model again"
            )


def check_limits(limits: Any, source: Path) -> None:
    """Raises UserError for limits that no model has; `source` names their file."""
    limits = limits if isinstance(limits, dict) else {}
    for name in LIMITS:
        value = limits.get(name, 0)
        optional = value is None and name == "inference_segments"
        if not optional and (type(value) is not int or not 0 < value <= TOKENS):
            raise UserError(
                f"{source}: limits.{name} {value!r} is no number from 1 to {TOKENS:,}"
            )


def check_sizes(node: Any, source: Path) -> None:
    """Raises UserError for sizes that no encoder has, before anything is built."""
    if not isinstance(node, dict):
        raise UserError(f"{source}: encoder {node!r} is no DocumentEncoder")
    for name, value in flatten_dict(node, sep="/").items():
        most = LAYERS if name.endswith("layers") else configs.MOST
        if isinstance(value, (int, float)) and not 0 <= value <= most:
            path = name.replace("/", ".")
            raise UserError(
                f"{source}: encoder.{path} is {value}, not from 0 to {most}"
            )


def shapes(encoder: Any, source: Path) -> Any:
    """The parameters of an encoder, nested, as shapes and types without numbers.

    Raises:
      UserError: if such an encoder cannot be made; `source` names the file that asks
        for it.
    """
    _check_kind(encoder, source)
    try:
        return jax.eval_shape(lambda: fresh_params(encoder, 0))
    except UserError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{source}: no such encoder ({reason})") from None


def _check_kind(encoder: Any, source: Path) -> None:
    if not isinstance(encoder, DocumentEncoder):
        raise UserError(
            f"{source}: encoder is no DocumentEncoder: its fn must be "
            "docjax.encoders.document.DocumentEncoder"
        )
