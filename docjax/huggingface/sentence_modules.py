"""The modules of a sentence-transformers folder: transformer, pooling, dense layer.

`configs.py` reads config.json, `weights.py` the tensors.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from docjax.errors import UserError
from docjax.huggingface import configs
from docjax.storage import json_file

logger = logging.getLogger(__name__)

MODULES = ("Transformer", "Pooling", "Dense", "Normalize")  # in this order
POOLINGS = {"mean": "mean", "cls": "first"}  # theirs -> ours
TANH = "torch.nn.modules.activation.Tanh"  # the activation of a Dense that names none
NAMES, VECTOR = ("module_input_name", "module_output_name"), "sentence_embedding"
PROJECTIONS = {  # theirs -> ours
    "torch.nn.modules.linear.Identity": "identity",
    TANH: "tanh",
}
OLD_POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# sentence-transformers leaves the prompt out of the mean of these, whatever they say.
INSTRUCTORS = tuple(f"hkunlp/instructor-{size}" for size in ("base", "large", "xl"))


class Modules(NamedTuple):
    """How the vector of a segment comes from the states of its tokens."""

    folder: Path  # of the transformer and the tokenizer
    pooling: str = "mean"  # or "first"
    normalize: bool = False  # the vector is scaled to length 1
    include_prompt: bool = True  # the mean includes the tokens of a prompt
    dense: Path | None = None  # the folder of the dense layer after the pooling
    projection: Mapping[str, Any] = {}  # keywords of a segment encoder for that layer
    says_pooling: bool = False  # else the pooling is a guess, which may be wrong


def read(folder: Path, name: str) -> Modules:
    """The modules in a folder's modules.json; the user called the folder `name`. Raises
    UserError for a module that docjax does not support."""
    path = folder / "modules.json"
    if not path.exists():
        return Modules(folder)
    folders = modules(json_file.read(path, list), str(path))
    made = Modules(
        folder / folders.get("Transformer", ""), normalize="Normalize" in folders
    )
    if "Pooling" in folders:
        path = folder / folders["Pooling"] / "config.json"
        config = json_file.read(path)
        made = made._replace(
            pooling=pooling_of(config, str(path)),
            says_pooling=True,
            include_prompt=_include_prompt(config, str(path), name),
        )
    if "Dense" in folders:
        dense = folder / folders["Dense"]
        path = dense / "config.json"
        layer = _projection(json_file.read(path), str(path))
        made = made._replace(dense=dense, projection=layer)
    return made


def modules(listed: Sequence[Any], source: str) -> dict[str, str]:
    """The kind of each module in a modules.json -> its folder. Raises UserError for an
    unknown module, for an order other than MODULES, and for a folder elsewhere."""
    kinds = {}
    for module in listed:
        kind = module.get("type") if isinstance(module, Mapping) else module
        home, _, name = str(kind).rpartition(".")
        path = module.get("path", "") if isinstance(module, Mapping) else None
        if home.split(".")[0] != "sentence_transformers" or name not in MODULES:
            raise UserError(
                f"{source}: module {kind} is not supported; supported are "
                f"{', '.join(MODULES)} of sentence_transformers"
            )
        if not isinstance(path, str) or path in (".", "..") or {"/", "\0"} & {*path}:
            raise UserError(
                f"{source}: path {path!r} of module {name} is not a folder beside "
                "that file; write the name of a folder, or an empty path"
            )
        if any(MODULES.index(name) <= MODULES.index(kind) for kind in kinds):
            raise UserError(
                f"{source}: module {name} after {', '.join(kinds)}: docjax reads one "
                f"of each, in the order {', '.join(MODULES)}"
            )
        kinds[name] = path
    return kinds


def _projection(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The keywords of a segment encoder for the config.json of a Dense module. Raises
    UserError for an unknown activation, a wrong width, and other inputs or outputs."""
    for key in NAMES:
        name = config.get(key)
        if name not in (None, VECTOR):
            raise UserError(
                f"{source}: {key} {name!r} is not supported: only {VECTOR} is"
            )
    if config.get("use_residual"):
        raise UserError(f"{source}: use_residual is set, which docjax does not support")
    name = str(config.get("activation_function", TANH))
    if name not in PROJECTIONS:
        raise UserError(
            f"{source}: activation_function {name!r} is not supported; supported are "
            f"{', '.join(PROJECTIONS)}"
        )
    width = configs.size(config, "out_features", source)
    return {"projection": width, "projection_activation": PROJECTIONS[name]}


def pooling_of(config: Mapping[str, Any], source: str) -> str:
    """ "mean" or "first", as the config.json of a Pooling module says.

    A module that names no pooling has the mean, as in sentence-transformers.

    Raises:
      UserError: for another pooling.
    """
    old = [mode for key, mode in OLD_POOLINGS.items() if config.get(key)]
    mode = config.get("pooling_mode", old or "mean")
    modes = [str(name) for name in (mode if isinstance(mode, list) else [mode])]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise UserError(
            f"{source}: pooling {' + '.join(modes)} is not supported; "
            f"supported are {', '.join(POOLINGS)}"
        )
    return POOLINGS[modes[0]]


def include_prompt(config: Mapping[str, Any], source: str) -> bool:
    """Whether the mean of a Pooling module includes the tokens of a prompt.

    Raises:
      UserError: for another value than true and false, and for a pooling other than the
        mean that leaves the prompt out.
    """
    included = config.get("include_prompt", True)
    if not isinstance(included, bool):
        raise UserError(f"{source}: include_prompt {included!r} is not true or false")
    if not included and pooling_of(config, source) != "mean":
        raise UserError(
            f"{source}: include_prompt false is supported for the pooling 'mean' only; "
            "set it to true"
        )
    return included


def _include_prompt(config: Mapping[str, Any], source: str, name: str) -> bool:
    """`include_prompt`, but as sentence-transformers has it for INSTRUCTOR."""
    model = name.partition("@")[0]
    if model in INSTRUCTORS:
        return False
    included = include_prompt(config, source)
    if included and "instructor" in model.rpartition("/")[2].lower():
        logger.warning(
            "%s: the mean of tokens includes the prompt, but INSTRUCTOR leaves it out: "
            "set include_prompt to false in %s",
            name,
            source,
        )
    return included
