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
PADDING = 1e-4  # what padding may change of vectors, by rounding


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
    vector to each document and query, or if padding changes vectors; reads small arrays."""
    branch = getattr(encoder.document, "branch", None)
    for name, module in (("document", encoder.document), ("document.branch", branch)):
        if module is None or type(module).__module__.startswith("docjax."):
            continue
        label = f"{source}: encoder.{name} {type(module).__name__}"
        try:
            whole, padded, queries = _small_vectors(module, _segment_width(encoder))
        except Exception as error:  # noqa: BLE001 foreign code may raise anything
            reason = " ".join(str(error).split())
            raise UserError(
                f"{label} fails: {type(error).__name__}: {reason}"
            ) from None
        width = whole.shape[-1] if whole.ndim else 0
        of_query = (2, width // getattr(module, "parts", 1))
        is_one_each = whole.shape == padded.shape == (2, width)
        if not is_one_each or queries.shape != of_query:
            raise UserError(
                f"{label} gives {list(whole.shape)} for 2 documents of two segments and "
                f"{list(queries.shape)} for 2 queries: give [2, f], one vector each"
            )
        difference = np.abs(whole - padded).max()
        if not difference <= PADDING * max(1, np.abs(whole).max()):
            raise UserError(
                f"{label} reads padding: segments of length 0 behind those of a document "
                f"change its vector by up to {difference:.2g}; multiply by the mask "
                "(lengths > 0), and divide by the number of real segments"
            )


def _segment_width(encoder: DocumentEncoder) -> int:
    """The width of segment vectors, traced."""
    segments = functools.partial(encoder.apply, method="segments")
    read = np.ones((1, 8), int), np.ones(1, int), np.zeros((1, 2), int)
    return jax.eval_shape(segments, {"params": param_shapes(encoder)}, *read).shape[-1]


def _small_vectors(module: Any, width: int) -> tuple[np.ndarray, ...]:
    """What a fresh document encoder gives to two documents of two segments, to the same
    documents with two segments of padding, and to two queries."""
    vectors = np.random.default_rng(0).normal(size=(2, 4, width)).astype(np.float32)
    lengths = np.array([[5, 3, 0, 0], [4, 7, 0, 0]], np.int32)
    places = np.zeros((2, 4, 2), np.int32)
    adjacency = np.zeros((2, 5, 5), bool)
    adjacency[:, :3, :3] = True

    def given(most: int) -> tuple:
        graphs = Graphs(adjacency=adjacency[:, : 1 + most, : 1 + most])
        if module.sparse:
            graphs = Graphs(edges=np.zeros((2, 1, 2), np.int32))
        return vectors[:, :most], lengths[:, :most], places[:, :most], graphs

    of_views = jax.tree.map(lambda array: array[None], given(4))
    with jax.default_matmul_precision("highest"):
        made = module.init(jax.random.key(0), *of_views, method="views")
        params = {"params": made.get("params", {})}  # a run keeps nothing else
        found = [jax.jit(module.apply)(params, *given(most)) for most in (2, 4)]
        query = jax.jit(functools.partial(module.apply, method="query"))
        found.append(query(params, vectors[:, 0]))
    return tuple(map(np.asarray, found))


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
