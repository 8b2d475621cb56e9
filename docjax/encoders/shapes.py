"""Facts of an encoder: shapes of its parameters, its segment encoder, valid sizes."""

import functools
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax.traverse_util import flatten_dict

from docjax.encoders.document import DocumentEncoder, param_shapes
from docjax.errors import UserError
from docjax.parts.annotations import LARGEST
from docjax.parts.protocols import missing, unfit
from docjax.types import DocumentEncoder as OfDocuments
from docjax.types import Graphs, SegmentEncoder

LAYERS = 1000  # no real encoder has more layers, and each layer takes time to build


def check_sizes(node: Any, source: Path) -> None:
    """Raises UserError for impossible sizes, before anything is built."""
    if not isinstance(node, dict):
        raise UserError(f"{source}: encoder {node!r} is not a DocumentEncoder")
    for name, value in flatten_dict(node, sep="/").items():
        most = LAYERS if name.endswith("layers") else LARGEST
        if isinstance(value, (int, float)) and not 0 <= value <= most:
            path = name.replace("/", ".")
            raise UserError(
                f"{source}: encoder.{path} is {value}, not a number from 0 to {most}"
            )


def shapes(encoder: Any, source: Path) -> Any:
    """The shapes and types of an encoder's parameters, as a nested dict. Raises
    UserError if the encoder cannot be built; `source` is the file that describes it."""
    check_kind(encoder, source)
    try:
        return param_shapes(encoder)
    except UserError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"{source}: the encoder cannot be built: {reason}") from None


def check_vectors(encoder: DocumentEncoder, source: Path) -> None:
    """Raises UserError if a document encoder from outside of docjax does not give one
    vector to each of two documents and two queries; traces shapes alone."""
    if type(encoder.document).__module__.startswith("docjax."):
        return
    params = {"params": param_shapes(encoder)}

    def trace(method: str, *inputs: Any) -> Any:
        apply = functools.partial(encoder.apply, method=method)
        return jax.eval_shape(apply, params, *inputs)

    lengths, places = np.ones((2, 1), int), np.zeros((2, 1, 2), int)
    graphs = Graphs(adjacency=np.ones((2, 2, 2), bool))
    if encoder.sparse:
        graphs = Graphs(edges=np.zeros((2, 1, 2), int))
    segments = trace("segments", np.ones((2, 8), int), lengths[:, 0], places[:, 0])
    by_document = jax.ShapeDtypeStruct((2, 1, segments.shape[-1]), segments.dtype)
    label = f"{source}: encoder.document {type(encoder.document).__name__}"
    try:
        documents = np.shape(trace("documents", by_document, lengths, places, graphs))
        queries = np.shape(trace("queries", segments))
    except Exception as error:  # noqa: BLE001 foreign code may raise anything
        reason = " ".join(str(error).split())
        raise UserError(f"{label} fails: {type(error).__name__}: {reason}") from None
    width = documents[-1] if documents else 0
    if documents != (2, width) or queries != (2, width // encoder.parts):
        raise UserError(
            f"{label} gives {list(documents)} for 2 documents of one segment and "
            f"{list(queries)} for 2 queries: give [2, f], one vector each"
        )


def check_same(params: Any, own: Any) -> None:
    """Raises UserError unless parameters have the paths and the shapes of `own`."""
    given, expected = _shapes_by_path(params), _shapes_by_path(own)
    for path in sorted({*given, *expected}):
        found, wanted = given.get(path, "missing"), expected.get(path, "none")
        if found != wanted:
            raise UserError(
                f"params: {path} is {found}, expected {wanted}: give a nested dict with "
                "the names and the shapes of model.params"
            )


def _shapes_by_path(params: Any) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    name = functools.partial(jax.tree_util.keystr, simple=True, separator="/")
    return {name(path): np.shape(leaf) for path, leaf in leaves}


def check_kind(encoder: Any, source: Path) -> None:
    """Raises UserError if a part of the encoder is not an encoder of its kind."""
    if not isinstance(encoder, DocumentEncoder):
        raise UserError(
            f"{source}: encoder is not a DocumentEncoder: set encoder.fn to "
            "docjax.encoders.document.DocumentEncoder"
        )
    segment = encoder.segment
    if getattr(segment, "has_towers", False):
        segment = segment.encoder
    mend = "transformer.Transformer", "segment_defaults.SegmentDefaults"
    _check_part(source, "segment", segment, SegmentEncoder, *mend)
    mend = "pooling.Mean", "document_defaults.DocumentDefaults"
    _check_part(source, "document", encoder.document, OfDocuments, *mend)


def _check_part(source, name, part, protocol, stock, base) -> None:
    """Raises UserError if a part lacks something of its protocol, or takes other
    arguments."""
    label = f"{source}: encoder.{name} {type(part).__name__}"
    if lacking := missing(part, protocol):
        raise UserError(
            f"{label} has no {', '.join(sorted(lacking))}: take "
            f"docjax.encoders.{stock}, or inherit docjax.encoders.{base}"
        )
    if fault := unfit(part, protocol):
        raise UserError(f"{label}: {fault}, as docjax.types.{protocol.__name__} does")
