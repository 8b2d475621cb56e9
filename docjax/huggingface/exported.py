"""The parts of an exported folder that docjax reads back, and how they are written.

    docjax.json           encoder, segments, graph and limits, as a config has them
    model.safetensors     the segment encoder, under the names of its library
    document.safetensors  all other parameters that inference reads, by our own paths
    manifest.json         the sha256 of every file

`docjax.export.write` adds what other libraries read. A new segment encoder gets its names in
`segment_names`; without, its parameters lie in document.safetensors too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import safetensors.numpy

from docjax import config as config_lib
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.huggingface import configs, files, names
from docjax.storage import manifest

FACTS = "docjax.json"
FORMAT = 1
WEIGHTS, REST = "model.safetensors", "document.safetensors"
FIELDS = ("encoder", "segments", "graph", "limits", "labels", "similarity")
LIMITS = ("segment_tokens", "query_tokens", "inference_segments")
NOT_READ = (".py", ".md")  # by docjax: may be missing, as after a download
TEXTS = ("", ".md", ".txt", ".png", ".jpg", ".svg")  # may be added, as LICENSE
LAYERS = 1000  # more than any encoder has; each takes time to build
TOKENS = 1 << 20  # of a segment: more than any encoder reads
MODULE, STOCK = "docjax_module.LongDocuments", "sentence_transformers."


def segment_names(segment: nn.Module) -> dict[str, str]:
    """Parameter path of a segment encoder -> name in model.safetensors."""
    if isinstance(segment, Transformer):
        return names.table(segment.layers)
    if isinstance(segment, WordAverage):
        return {"words": "embedding.weight"}  # of sentence-transformers
    return {}


def write(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes docjax.json."""
    config_lib.save({"format": FORMAT} | dict(facts), folder / FACTS)


def write_params(folder: Path, encoder: DocumentEncoder, params: Any) -> None:
    """Writes model.safetensors and document.safetensors, those of them not empty."""
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
            form = {"format": "pt"}  # what transformers asks for
            safetensors.numpy.save_file(tensors, folder / name, form)
            (folder / name).chmod(0o644)  # it is written for its owner alone


def read(folder: Path) -> dict[str, Any]:
    """docjax.json, after all files were found as the manifest has them.

    Raises:
      UserError: for a file that is damaged, missing or not of the export, and for
        facts that are none.
    """
    _verify(folder)
    files.refuse_code(folder)
    _check_modules(folder / "modules.json")
    path = folder / FACTS
    facts = config_lib.read_json(path)
    if facts.get("format") != FORMAT:
        raise UserError(
            f"{path}: format {facts.get('format')!r}, this docjax reads {FORMAT}: "
            "export the model again, or take the docjax that wrote it"
        )
    missing = [name for name in FIELDS if name not in facts]
    if missing:
        raise UserError(f"{path}: {', '.join(missing)} missing")
    check_limits(facts["limits"], path)
    return facts


def pooling(folder: Path) -> tuple[str, bool]:
    """Pooling of the segment encoder, and whether its vectors have length 1."""
    encoder = config_lib.build(read(folder)["encoder"], ("docjax.encoders.",))
    segment = getattr(encoder, "segment", None)
    if not isinstance(segment, Transformer):
        raise UserError(f"{folder}: its segment encoder is no transformer")
    return segment.pooling, segment.normalize


def read_params(folder: Path, encoder: nn.Module) -> dict[str, Any]:
    """The parameters of an encoder that inference reads, nested, float32.

    Raises:
      UserError: if the tensors are not those of the encoder.
    """
    expected = _read_by_inference(encoder, shapes(encoder, folder / FACTS))
    table = _table(encoder)
    with files.tensors(_weights(folder)) as tensors:
        found = {path: table.get(path, path) for path in expected}
        odd = set(found.values()) ^ set(tensors)
        if odd:
            raise UserError(
                f"{folder}: {FACTS} asks for {len(found)} tensors, the files hold "
                f"{len(tensors)}: {names.some(sorted(odd))}"
            )
        for path, name in found.items():
            got, want = tuple(tensors[name].get_shape()), expected[path].shape
            if path in table and names.swapped(path):
                want = want[::-1]
            if got != want:
                raise UserError(
                    f"{folder}: {name} has shape {list(got)}, {FACTS} asks for "
                    f"{list(want)}"
                )
        return names.nest({path: _read(tensors, path, table) for path in found})


def _read(tensors: Mapping[str, Any], path: str, table: Mapping[str, str]):
    tensor = tensors[table.get(path, path)][:].astype(np.float32)
    return np.ascontiguousarray(names.swap(path, tensor) if path in table else tensor)


def _read_by_inference(encoder: DocumentEncoder, params: Any) -> dict[str, Any]:
    """By path: not the words to be predicted, nor a head that gives no classes."""
    left = ("segment/targets",) if encoder.classifies else ("segment/targets", "head/")
    flat = names.flatten(params).items()
    return {path: array for path, array in flat if not path.startswith(left)}


def _table(encoder: DocumentEncoder) -> dict[str, str]:
    found = segment_names(encoder.segment)
    return {f"segment/{path}": name for path, name in found.items()}


def _weights(folder: Path) -> list[Path]:
    return [folder / name for name in (WEIGHTS, REST) if (folder / name).exists()]


def _verify(folder: Path) -> None:
    """Raises UserError if the files are not those that were exported."""
    try:
        found = manifest.compare(folder)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: the model cannot be verified ({error}); export it again"
        ) from None
    missing = [name for name in found.missing if not name.endswith(NOT_READ)]
    differing = [name for name in found.differing if not name.endswith(".md")]
    unknown = [name for name in found.unknown if Path(name).suffix not in TEXTS]
    for faulty, fault in (
        (differing, "differs from what was exported: it is damaged or changed"),
        (missing, "is missing"),
        (unknown, "is no file of the export: take it out of this folder"),
    ):
        if faulty:
            raise UserError(f"{folder / faulty[0]} {fault}")


def _check_modules(path: Path) -> None:
    """Raises UserError for modules that no export has; docjax itself reads none."""
    for module in config_lib.read_json(path, list):
        kind = module.get("type") if isinstance(module, dict) else module
        if not str(kind).startswith((MODULE, STOCK)):
            raise UserError(f"{path}: module {kind} is not of an export")


def check_limits(limits: Any, source: Path) -> None:
    """Raises UserError for limits that no model has; `source` names their file."""
    found = limits if isinstance(limits, dict) else {}
    for name in LIMITS:
        value = found.get(name, 0)
        optional = value is None and name == "inference_segments"
        if not optional and (type(value) is not int or not 0 < value <= TOKENS):
            raise UserError(
                f"{source}: limits.{name} {value!r} is no number from 1 to {TOKENS:,}"
            )


def check_sizes(node: Any, source: Path) -> None:
    """Raises UserError for sizes that no encoder has, before any is used."""
    for name, value in names.flatten(node).items():
        most = LAYERS if name.endswith("layers") else configs.MOST
        if isinstance(value, (int, float)) and not 0 <= value <= most:
            path = name.replace("/", ".")
            raise UserError(
                f"{source}: encoder.{path} is {value}, not from 0 to {most}"
            )


def shapes(encoder: Any, source: Path) -> Any:
    """The parameters of an encoder, nested, of which only shapes and types are there.

    Raises:
      UserError: if it is none; `source` names the file that says so.
    """
    if not isinstance(encoder, DocumentEncoder):
        raise UserError(f"{source}: encoder is no DocumentEncoder")
    try:
        return jax.eval_shape(lambda: fresh_params(encoder, 0))
    except UserError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{source}: no such encoder ({reason})") from None
