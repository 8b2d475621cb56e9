"""docjax.json of an exported folder: what docjax reads back, except the parameters.

    docjax.json    encoder, units, segments, graph, limits, as a config has them; in
                   "torch" as the code in the folder has them
    manifest.json  the sha256 of every file

`exported.py` reads and writes the parameters; `docjax.export.write` adds the files of
other libraries.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.errors import UserError
from docjax.huggingface import files
from docjax.storage import json_file, manifest
from docjax.types import ReadLimits

FACTS = "docjax.json"
FORMAT = 2
FIELDS = ("encoder", "units", "segments", "graph", "limits", "labels", "similarity")
PROJECTION = "projection", "projection_activation"
NOT_READ = (".py", ".md")  # docjax reads no such file: a download may lack them
TEXTS = ("", ".md", ".txt", ".png", ".jpg", ".svg")  # files that users may add
TOKENS = 1 << 20  # no encoder reads longer segments
MODULE, STOCK = "docjax_module.LongDocuments", "sentence_transformers."


def write(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes docjax.json."""
    json_file.write(folder / FACTS, {"format": FORMAT} | dict(facts))


def read(folder: Path) -> dict[str, Any]:
    """The content of docjax.json; first compares all files with the manifest.

    Raises:
      UserError: for a damaged, missing or foreign file, and for a docjax.json that
        lacks a field or has another format.
    """
    _verify(folder)
    files.refuse_code(folder)
    _check_modules(folder / "modules.json")
    path = folder / FACTS
    facts = json_file.read(path)
    if facts.get("format") != FORMAT:
        raise UserError(
            f"{path}: format {facts.get('format')!r}, but this docjax reads {FORMAT}; "
            "export the model again, or install the docjax that exported it"
        )
    missing = [name for name in FIELDS if name not in facts]
    if missing:
        raise UserError(f"{path}: {', '.join(missing)} missing; export the model again")
    check_limits(facts["limits"], path)
    width = facts.get("truncate_dim")
    if width is not None and (type(width) is not int or width < 1):
        raise UserError(
            f"{path}: truncate_dim {width!r} is not a whole number from 1 on; export "
            "the model again"
        )
    return facts


def pooling(facts: Mapping[str, Any], folder: Path) -> tuple[str, bool, dict[str, Any]]:
    """Pooling of the segment encoder, whether its vectors have length 1, and the
    keywords of the dense layer between them; {} without that layer.

    Raises:
      UserError: if the segment encoder is not a transformer.
    """
    encoder = facts["encoder"]
    segment = encoder.get("segment") if isinstance(encoder, Mapping) else None
    if not isinstance(segment, Mapping) or "pooling" not in segment:
        kind = segment.get("fn") if isinstance(segment, Mapping) else segment
        raise UserError(
            f"{folder}: the segment encoder {kind} is not a transformer; give the "
            "folder of a transformer"
        )
    projected = {name: segment.get(name) for name in PROJECTION}
    projected = projected if projected["projection"] else {}
    return segment["pooling"], segment["normalize"], projected


def include_prompt(facts: Mapping[str, Any]) -> bool:
    """Whether the mean of a segment's tokens includes its prompt."""
    return facts.get("include_prompt") is not False


def check_limits(limits: Any, source: Path) -> None:
    """Raises UserError for impossible limits; `source` names their file."""
    limits = limits if isinstance(limits, dict) else {}
    for name in ReadLimits._fields:
        value = limits.get(name, 0)
        optional = value is None and name == "inference_segments"
        if not optional and (type(value) is not int or not 0 < value <= TOKENS):
            raise UserError(
                f"{source}: limits.{name} {value!r} is not a whole number from 1 to "
                f"{TOKENS:,}"
            )


def _verify(folder: Path) -> None:
    """Raises UserError if the files differ from what was exported."""
    try:
        compared = manifest.compare(folder)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder}: the model cannot be verified ({error}); export the model again"
        ) from None
    missing = [name for name in compared.missing if not name.endswith(NOT_READ)]
    differing = [name for name in compared.differing if not name.endswith(".md")]
    unknown = [name for name in compared.unknown if Path(name).suffix not in TEXTS]
    for faulty, fault in (
        (differing, "differs from what was exported; export the model again"),
        (missing, "is missing; copy this file too, or export the model again"),
        (unknown, "is not a file of the export; move it out of this folder"),
    ):
        if faulty:
            raise UserError(f"{folder / faulty[0]} {fault}")


def _check_modules(path: Path) -> None:
    """Raises UserError for modules that no export has; docjax itself runs no module."""
    for module in json_file.read(path, list):
        kind = module.get("type") if isinstance(module, dict) else module
        if not str(kind).startswith((MODULE, STOCK)):
            raise UserError(
                f"{path}: module {kind} is not of an export; export the model again"
            )
