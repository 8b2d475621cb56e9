"""The parameters of a run, at its start and at its end."""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.encoders.document import DocumentEncoder, fresh_params, param_shapes
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.run.fields import RunConfig, is_run, read
from docjax.storage import checkpoint

logger = logging.getLogger(__name__)

Params = Any
WORDS, COMPONENTS = "words.npy", "components.npy"

# Fields of an encoder that may differ from the encoder of the run `init`.
TRAINING = (
    *("dropout", "attention_dropout", "dtype", "attention", "sparse", "masked_lm"),
    *("share", "name", "parent"),
)


def initial_params(config: RunConfig, encoder: DocumentEncoder) -> Params:
    """The parameters that training begins with: fresh, or from `init`.

    Parameters that `init` lacks stay fresh, and so does a head.

    Raises:
      UserError: for weights that do not fit the encoder.
    """
    if not config.init:
        return fresh_params(encoder, config.seed)
    if is_run(config.init):
        loaded = _from_run(Path(config.init), encoder, config.allow)
    else:
        loaded = _from_folder(config.init, encoder)
    fresh = flatten_dict(fresh_params(encoder, config.seed, loaded), sep="/")
    return unflatten_dict(fresh | jax.tree.map(jnp.asarray, loaded), sep="/")


def start_params(config: RunConfig, encoder: DocumentEncoder, run: Path) -> Params:
    """`initial_params` with what was fitted to the run's documents.

    That is the word vectors (`docjax/recipe/words.py`) and the principal components
    (`docjax/recipe/components.py`). Those of a run `init` stay as they are.
    """
    params = initial_params(config, encoder)
    if config.init and is_run(config.init):
        return params
    params = flatten_dict(params, sep="/")
    fits = {WORDS: "words/table", COMPONENTS: "document/components"}
    for name, end in fits.items():
        if (run / name).exists():
            fitted = jnp.asarray(np.load(run / name, allow_pickle=False))
            params |= {path: fitted for path in params if path.endswith(end)}
    return unflatten_dict(params, sep="/")


def trained_params(run: Path, encoder: DocumentEncoder) -> Params:
    """The parameters that a run ended with."""
    return checkpoint.restore_params(run, param_shapes(encoder))


def _from_folder(init: str, encoder: DocumentEncoder) -> dict[str, Any]:
    """The parameters of a Hugging Face segment encoder, in every tower, by path."""
    module = encoder.inner_segment
    loaded = weights.load(init, masked_lm=module.masked_lm)
    mismatches = _mismatches(module, loaded.keywords)
    if mismatches or not isinstance(module, loaded.family.module):
        raise UserError(
            f"init {init} does not fit encoder.segment {type(module).__name__}: "
            f"{', '.join(mismatches)}; set --config.encoder.segment.KEY=VALUE"
        )
    if module.masked_lm and "masked_lm" not in loaded.params:
        logger.warning(
            "init %s has no head for masked tokens: training begins with a random one",
            init,
        )
    params = {"segment": _in_every_tower(encoder, loaded.params)}
    return flatten_dict(params, sep="/")


def _from_run(
    run: Path, encoder: DocumentEncoder, allow: Sequence[str]
) -> dict[str, Any]:
    """The parameters of another run's encoder without its head, by path; a single
    segment encoder fills every tower."""
    init_encoder = read(run, allow).encoder.built
    names, towers = _towers(encoder), _towers(init_encoder)
    if towers not in ((), names):
        raise UserError(
            f"init {run} does not fit the encoder: init has the towers "
            f"{' and '.join(towers)}, but encoder.segment has "
            f"{' and '.join(names) or 'none'}; give a run with the same towers"
        )
    mismatches = []
    for part in ("inner_segment", "document"):
        module, init_module = getattr(encoder, part), getattr(init_encoder, part)
        names = [field.name for field in dataclasses.fields(module)]
        theirs = {name: getattr(init_module, name, None) for name in names}
        label = part.removeprefix("inner_")
        mismatches += [f"{label}.{text}" for text in _mismatches(module, theirs)]
    if mismatches:
        raise UserError(
            f"init {run} does not fit the encoder: {', '.join(mismatches)}; "
            "set --config.encoder.PART.KEY=VALUE"
        )
    loaded = trained_params(run, init_encoder)
    if names and not towers:
        loaded["segment"] = _in_every_tower(encoder, loaded["segment"])
    known = flatten_dict(param_shapes(encoder), sep="/").keys()
    return {
        path: array
        for path, array in flatten_dict(loaded, sep="/").items()
        if path in known and not path.startswith("head/")
    }


def _mismatches(module: Any, theirs: Mapping[str, Any]) -> list[str]:
    """The fields of `theirs` that the module has otherwise, each with both values."""
    ours = {name: getattr(module, name, None) for name in theirs}
    return [
        f"{name} {ours[name]!r} (init has {value!r})"
        for name, value in theirs.items()
        if name not in TRAINING and ours[name] != value
    ]


def _towers(encoder: DocumentEncoder) -> tuple[str, ...]:
    """The names of the towers; none for a single segment encoder."""
    return encoder.segment.names if encoder.segment.has_towers else ()


def _in_every_tower(encoder: DocumentEncoder, loaded: Params) -> Params:
    """The parameters of `encoder.segment`, with `loaded` in every tower."""
    names = _towers(encoder)
    return {name: loaded for name in names} if names else loaded
