"""Arguments of sentence-transformers' `encode`: what docjax does for each of them.

Most have the same meaning here. The others are refused in a line that says the docjax
way.
"""

import logging
from typing import Any, TypedDict

import jax
import numpy as np
from jaxtyping import Float

from docjax.errors import UserError, library
from docjax.model.cosines import unit
from docjax.model.inputs import check_flag, check_name, check_whole, shown

logger = logging.getLogger(__name__)

PRECISIONS = "float32", "int8", "uint8", "binary", "ubinary"
FLAGS = "normalize_embeddings", "convert_to_numpy", "convert_to_tensor"
FEW = 100  # vectors that are too few to choose the steps of 8-bit numbers by


class Options(TypedDict, total=False):
    """Keywords of `encode` and `encode_queries`, as in sentence-transformers.

    normalize_embeddings: scales vectors to length 1. truncate_dim: the numbers of a
    vector that are kept (None: the model's own `truncate_dim`). precision: "float32",
    or "int8" and "uint8" by the least and the highest of each number, or "binary" and
    "ubinary" by its sign, 8 in a byte. convert_to_tensor: a tensor of torch in place of
    an array; with `convert_to_numpy=False` a list of tensors. device: that on which JAX
    runs; others are refused. output_value, pool, chunk_size: their defaults only.
    """

    normalize_embeddings: bool
    truncate_dim: int | None
    precision: str
    convert_to_numpy: bool
    convert_to_tensor: bool
    device: Any
    output_value: str | None
    pool: Any
    chunk_size: int | None


def check(options: Options) -> None:
    """Raises UserError for an argument that docjax has not or a value that it cannot
    give, before anything is encoded."""
    given: dict[str, Any] = dict(options)
    for name in ("inputs", "sentences"):
        if name in given:
            raise UserError(f"{name}: encode calls its first argument documents")
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        names = "batch_size, prompt, prompt_name, show_progress_bar, return_stats"
        others = ", ".join(Options.__annotations__)
        raise UserError(
            f"encode has no argument {min(unknown)}: it has {names}, {others}"
        )
    if given.get("precision") is not None:
        check_name("precision", given["precision"], PRECISIONS)
    for name in FLAGS:
        check_flag(name, given.get(name))
    check_whole("truncate_dim", given.get("truncate_dim"))
    _check_refused(given)
    if given.get("convert_to_tensor") or not given.get("convert_to_numpy", True):
        _torch()


def _check_refused(given: dict[str, Any]) -> None:
    """Raises UserError for what JAX or docjax does in another way."""
    value = given.get("output_value", "sentence_embedding")
    if not isinstance(value, str) or value != "sentence_embedding":
        raise UserError(
            f"output_value {shown(value)}: docjax keeps no vectors of tokens; "
            "model.segment_vectors(documents) gives those of segments, and "
            "encode(..., return_stats=True) counts what was read"
        )
    for name in ("pool", "chunk_size"):
        if given.get(name) is not None:
            raise UserError(
                f"{name}: docjax encodes on all devices of this process, without a pool; "
                "leave it out (docjax encode --processes shares a file among processes)"
            )
    check_device(given.get("device"))


def check_device(device: Any) -> None:
    """Raises UserError for another device than that on which JAX runs."""
    platform = jax.default_backend()
    names = {platform, f"{platform}:0", *(["cuda", "cuda:0"] * (platform == "gpu"))}
    if device is not None and str(device) not in names:
        raise UserError(
            f"device {shown(device)}: JAX runs on {platform}; it chooses the devices "
            "when it starts: set the environment variable JAX_PLATFORMS to cpu, cuda or "
            "tpu before Python starts, and leave device out"
        )


def finished(vectors: Float[np.ndarray, "b d"], options: Options, alone: bool) -> Any:
    """The vectors as the options want them; the first vector if one document came
    `alone`. The caller may change the result."""
    if options.get("normalize_embeddings"):
        vectors = unit(vectors)
    vectors = quantized(vectors, options.get("precision") or "float32")
    result: Any = np.ascontiguousarray(vectors)
    if options.get("convert_to_tensor"):
        result = _torch().from_numpy(result)
    elif not options.get("convert_to_numpy", True):
        result = list(_torch().from_numpy(result))
    if not alone:
        return result
    return result[0].copy() if isinstance(result, np.ndarray) else result[0]


def quantized(vectors: Float[np.ndarray, "b d"], precision: str) -> np.ndarray:
    """The vectors in one of PRECISIONS, as `quantize_embeddings` of
    sentence-transformers gives them. Raises UserError for a single vector of 8-bit
    numbers, whose steps are chosen by the lowest and highest of several."""
    if precision == "float32" or not len(vectors):
        return vectors
    if precision.endswith("binary"):
        bits = np.packbits(vectors > 0, axis=-1)
        return bits if precision == "ubinary" else (bits - 128).astype(np.int8)
    if len(vectors) == 1:
        raise UserError(
            f"precision {precision!r}: the steps are chosen by the lowest and the "
            "highest of each number, which a single vector does not have; encode "
            "several documents, or take precision 'binary'"
        )
    if len(vectors) < FEW:
        text = "the steps of %s are chosen by %d vectors: more make better steps"
        logger.warning(text, precision, len(vectors))
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    steps = (high - low) / 255
    steps = np.where(steps == 0, 1, steps)
    numbers = np.clip(np.floor((vectors - low) / steps), 0, 255)
    if precision == "uint8":
        return numbers.astype(np.uint8)
    return (numbers - 128).astype(np.int8)


def _torch() -> Any:
    what = "convert_to_tensor, or convert_to_numpy=False,"
    return library("torch", what, "export")
