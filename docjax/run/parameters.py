"""The parameters of a run: those it begins with, and those it ended with."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.run.fields import RunConfig, is_run, read
from docjax.storage import checkpoint

Params = Any

# Fields of an encoder that may differ from those of the run that it begins with.
TRAINING = (
    *("dropout", "dtype", "attention", "sparse", "masked_lm", "name", "parent"),
)


def initial_params(config: RunConfig, encoder: DocumentEncoder) -> Params:
    """Parameters as the config's `init` says: fresh, of a folder, or of another run.

    What the folder or the run lacks stays fresh, and so does a head.

    Raises:
      UserError: for weights that do not fit the encoder.
    """
    params = fresh_params(encoder, config.seed)
    if not config.init:
        return params
    if is_run(config.init):
        return _from_run(Path(config.init), encoder, params)
    return _from_folder(config.init, encoder, params)


def trained_params(run: Path, encoder: DocumentEncoder) -> Params:
    """The parameters that a run ended with."""
    expected = jax.eval_shape(lambda: fresh_params(encoder, 0))
    return checkpoint.restore_params(run, expected)


def _from_folder(init: str, encoder: DocumentEncoder, params: Params) -> Params:
    """The segment encoder of a Hugging Face folder or name, in every tower."""
    module = _of_tower(encoder)
    loaded = weights.load(init, masked_lm=module.masked_lm)
    wrong = [
        f"{key} {getattr(module, key, None)!r} (it has {value!r})"
        for key, value in loaded.keywords.items()
        if key != "dropout" and getattr(module, key, None) != value
    ]
    if wrong or not isinstance(module, loaded.family.module):
        raise UserError(
            f"init {init} does not fit encoder.segment {type(module).__name__}: "
            f"{', '.join(wrong)}; set these with --config.encoder.segment.KEY=VALUE"
        )
    return _over(params, {"segment": _in_every_tower(encoder, loaded.params)})


def _from_run(run: Path, encoder: DocumentEncoder, params: Params) -> Params:
    """The encoder of another run; a single segment encoder goes into every tower."""
    other = read(run).encoder.build()
    names, towers = _towers(encoder), _towers(other)
    if towers not in ((), names):
        raise UserError(
            f"init {run} does not fit the encoder: it has the towers "
            f"{' and '.join(towers)}, encoder.segment {' and '.join(names) or 'none'}"
        )
    pairs = {
        "segment": (_of_tower(encoder), _of_tower(other)),
        "document": (encoder.document, other.document),
    }
    wrong = [
        f"{part}.{field.name} {ours!r} (it has {theirs!r})"
        for part, (own, begun) in pairs.items()
        for field in dataclasses.fields(own)
        if field.name not in TRAINING
        for ours in [getattr(own, field.name)]
        for theirs in [getattr(begun, field.name, None)]
        if ours != theirs
    ]
    if wrong:
        raise UserError(
            f"init {run} does not fit the encoder: {', '.join(wrong)}; "
            "set these with --config.encoder.PART.KEY=VALUE"
        )
    expected = jax.eval_shape(lambda: fresh_params(other, 0))
    loaded = checkpoint.restore_params(run, expected)
    if names and not towers:
        loaded["segment"] = _in_every_tower(encoder, loaded["segment"])
    kept = flatten_dict(params, sep="/").keys()
    loaded = {
        path: array
        for path, array in flatten_dict(loaded, sep="/").items()
        if path in kept and not path.startswith("head/")
    }
    return _over(params, unflatten_dict(loaded, sep="/"))


def _towers(encoder: DocumentEncoder) -> tuple[str, ...]:
    """The names of the towers; none for a single segment encoder."""
    return encoder.segment.names if encoder.segment.has_towers else ()


def _of_tower(encoder: DocumentEncoder) -> Any:
    """The segment encoder, or that of every tower."""
    segment = encoder.segment
    return segment.encoder if segment.has_towers else segment


def _in_every_tower(encoder: DocumentEncoder, loaded: Params) -> Params:
    """The parameters of one segment encoder, as those of `encoder.segment`."""
    names = _towers(encoder)
    return {name: loaded for name in names} if names else loaded


def _over(params: Params, loaded: Mapping[str, Any]) -> Params:
    """The parameters with the loaded ones in place of the fresh ones."""
    flat = flatten_dict(params, sep="/")
    for path, array in flatten_dict(loaded, sep="/").items():
        flat[path] = jnp.asarray(array)
    return unflatten_dict(flat, sep="/")
