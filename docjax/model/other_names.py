"""Names of sentence-transformers on a docjax model: the same meaning, or the docjax way.

`encode_options.py` has the arguments of `encode`, and `face.py` those of `save`.
"""

from typing import TYPE_CHECKING, Any, NoReturn

import jax
import numpy as np
from jaxtyping import Float

from docjax.errors import UserError
from docjax.model import cosines
from docjax.types import ReadLimits

WHOLE = "docjax reads whole documents, in segments of at most max_seq_length tokens"
DEVICES = (
    "JAX chooses the devices when it starts: set the environment variable JAX_PLATFORMS "
    "to cpu, cuda or tpu before Python starts"
)
ALL_DEVICES = (
    "encode uses all devices of this process; docjax encode --processes shares"
)
DTYPE = (
    'docjax.load(path, dtype="bfloat16") computes in bfloat16, and "float32" exactly'
)
TRAINING = "docjax.train trains; for a loss of your own see docs/jax.md: model.apply"
# What docjax has in place of further names of sentence-transformers and torch.
ELSEWHERE = {
    "tokenize": "model.batch(documents) has the tokens that the model reads",
    "preprocess": "model.batch(documents) has the tokens that the model reads",
    "forward": "model.apply(model.params, model.batch(documents)) is a pure function",
    "start_multi_process_pool": ALL_DEVICES,
    "stop_multi_process_pool": ALL_DEVICES,
    "encode_multi_process": ALL_DEVICES,
    **dict.fromkeys(("to", "cuda", "cpu"), DEVICES),
    **dict.fromkeys(("half", "bfloat16", "float", "double", "dtype"), DTYPE),
    **dict.fromkeys(("fit", "old_fit", "train"), TRAINING),
    **dict.fromkeys(("parameters", "named_parameters", "state_dict"), "model.params"),
    "load_state_dict": "model.replace(params=...) gives a model with other parameters",
    "evaluate": "docjax evaluate MODEL --task NAME --data PATH measures a model",
    "truncate_embeddings": "encode(..., truncate_dim=N)",
    "truncate_sentence_embeddings": "encode(..., truncate_dim=N)",
    "set_pooling_include_prompt": "include_prompt is a field of the model",
    "save_to_hub": "model.push_to_hub",
    "compile": "JAX compiles by itself; jax.jit(model.apply) for your own code",
    "add_adapter": TRAINING,
}
# How a field is set: a model cannot be changed.
SET = {
    "max_seq_length": f"{WHOLE}: docjax.load(path, segments=1) reads the first segment",
    "truncate_dim": "give docjax.load or encode truncate_dim",
    "prompts": "give encode prompt or prompt_name",
    "default_prompt_name": "give encode prompt or prompt_name",
    "params": "model.replace(params=...) gives a model with other parameters",
}


class Elsewhere(UserError, AttributeError):
    """A name that docjax has not: `hasattr` is False."""


class OtherNames:
    """The part of `DocumentModel` with names of sentence-transformers; its attributes
    are fields there."""

    limits: ReadLimits
    similarity_fn_name: str

    def similarity(self: Any, a: Any, b: Any) -> Float[np.ndarray, "_ _"]:
        """The similarity of each vector of `a` with each vector of `b`.

        Vectors are arrays of NumPy or JAX, tensors or lists. `similarity_fn_name` says
        which similarity; the cosine of a zero vector is 0. Of a document's several
        vectors the one that is most similar to a query counts.

        Raises:
          UserError: for vectors of different lengths.
        """
        a, b = np.atleast_2d(_vectors(a), _vectors(b))
        if self.parts > 1 and b.shape[1] == self.parts * a.shape[1]:
            each = self.similarity(a, b.reshape(-1, a.shape[1]))
            return each.reshape(len(a), len(b), self.parts).max(-1)
        _check_widths(a, b)
        return a @ b.T if self.similarity_fn_name == "dot" else cosines.cosines(a, b)

    def similarity_pairwise(self, a: Any, b: Any) -> Float[np.ndarray, " _"]:
        """The similarity of each vector of `a` with the vector of `b` in the same row.

        Raises:
          UserError: for vectors of different lengths or numbers.
        """
        a, b = np.atleast_2d(_vectors(a), _vectors(b))
        if len(a) != len(b):
            raise UserError(
                f"{len(a)} and {len(b)} vectors are no pairs: give as many on both "
                "sides, or call similarity for all with all"
            )
        _check_widths(a, b)
        if self.similarity_fn_name == "cosine":
            a, b = cosines.unit(a), cosines.unit(b)
        return (a * b).sum(axis=1)

    def get_embedding_dimension(self: Any) -> int:
        """The numbers of a document's vector, `width`."""
        return self.width

    get_sentence_embedding_dimension = get_embedding_dimension  # its older name

    @property
    def max_seq_length(self) -> int:
        """The most tokens of a segment; a longer document is read in several segments."""
        return self.limits.segment_tokens

    def get_max_seq_length(self) -> int:
        """As `max_seq_length`."""
        return self.max_seq_length

    @property
    def device(self) -> str:
        """The platform on which JAX runs: "cpu", "gpu" or "tpu"."""
        return jax.default_backend()

    def eval(self) -> Any:
        """The model itself: there is no dropout outside of training."""
        return self

    if not TYPE_CHECKING:  # else a type checker would allow all names

        def __getattr__(self, name: str) -> NoReturn:
            if name in ELSEWHERE:
                raise Elsewhere(f"a model of docjax has no {name}: {ELSEWHERE[name]}")
            raise AttributeError(f"DocumentModel has no attribute {name!r}")


def refuse_change(model: Any, name: str, value: Any) -> NoReturn:
    """In place of `__setattr__`. Raises Elsewhere, which says how to get such a model."""
    del model, value
    how = SET.get(name, "load or make another one")
    raise Elsewhere(f"{name} cannot be set, a model is never changed: {how}")


def _vectors(given: Any) -> np.ndarray:
    """Vectors as an array: of NumPy or JAX, tensors of torch, or a list of these. Raises
    UserError for anything else."""
    parts = given if isinstance(given, list | tuple) else [given]
    on_host = [
        part.detach().cpu() if hasattr(part, "detach") else part for part in parts
    ]
    try:
        arrays = [np.asarray(part, np.float32) for part in on_host]
        array = np.stack(arrays) if parts is given else arrays[0]
    except (TypeError, ValueError):
        array = np.zeros((0, 0, 0), np.float32)
    if array.ndim not in (1, 2):
        raise UserError(
            f"a {type(given).__name__} is no vectors: give what encode returns, one "
            "vector or one a row"
        )
    return array


def _check_widths(a: np.ndarray, b: np.ndarray) -> None:
    if a.shape[1] != b.shape[1]:
        raise UserError(
            f"vectors of {a.shape[1]} and of {b.shape[1]} numbers cannot be compared: "
            "encode both with the same model"
        )
