"""Models from a run, an exported folder, or a Hugging Face folder or name.

Loading never unpickles, and never imports code from a model folder. A config may only
name functions of docjax, each from the module of its part.
"""

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from docjax.data.segments import OneEach
from docjax.data.tokenizer import check_fits, load_tokenizer
from docjax.data.units import Whole
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.shapes import check_sizes, shapes
from docjax.encoders.token_encoder import DTYPES
from docjax.encoders.towers import read_by_inference
from docjax.errors import UserError
from docjax.huggingface import configs, docjax_json, exported, files
from docjax.huggingface import weights as huggingface
from docjax.model.document_model import DocumentModel
from docjax.model.inputs import as_document, check_name, check_path, check_whole, shown
from docjax.parts import named, outside
from docjax.parts.homes import HOMES, OF_MODEL
from docjax.storage import json_file
from docjax.types import ReadLimits

logger = logging.getLogger(__name__)


def load(
    path: str | Path,
    *,
    revision: str | None = None,
    dtype: str | None = None,
    truncate_dim: int | None = None,
    segments: int | None = None,
    allow: str | Sequence[str] = (),
) -> DocumentModel:
    """A model from a run, an exported folder, or a Hugging Face folder or name.

    A plain transformer reads a document in consecutive pieces of at most the model's
    length. The folder says how tokens are pooled; if it does not, docjax takes their
    mean and warns. The document's vector is the mean of the pieces' vectors, weighted by
    tokens. The folder's prompts stand before each piece (`DocumentModel.prompts`).

    Args:
      revision: the revision of a hub name.
      dtype: "bfloat16" or "float32", the precision of the segment encoder; None takes
        the precision of the run, and float32 for a Hugging Face model.
      truncate_dim: the numbers of a vector that are kept; None: all, or those that an
        exported folder keeps.
      segments: the segments that are read of a document; None: all, or as the run says.
      allow: packages outside of docjax whose parts the model may have, such as
        ("mylab.",). Their code runs: name only packages that you trust.

    Raises:
      UserError: if there is no model, or if a file of the model is damaged.
    """
    check_path("the model", path)
    if dtype is not None:
        check_name("dtype", dtype, DTYPES)
    if not isinstance(revision, str | None):
        raise UserError(f"revision {shown(revision)} is no name of a revision")
    prefixes = outside.prefixes(allow)
    folder, commit = files.find(path, revision)
    if (Path(path) / "checkpoints").is_dir():
        model = of_run(Path(path), prefixes)
        _warn(Path(path), doubt(Path(path)))
    elif (folder / docjax_json.FACTS).exists():
        model = _load_export(folder, prefixes)
    else:
        name = f"{str(path).partition('@')[0]}@{commit}" if commit else path
        model = load_transformer(name)
    model = dataclasses.replace(model, source=str(path))
    model = _limited(model, truncate_dim, segments)
    return model if dtype is None else in_dtype(model, dtype)


def _limited(
    model: DocumentModel, truncate_dim: int | None, segments: int | None
) -> DocumentModel:
    """The model that keeps fewer numbers of a vector or reads the first segments.

    The first segment of a plain transformer is the text up to its length, as the models
    of many papers read it; that of a run may be a section or a passage.
    """
    if truncate_dim is not None:
        model = dataclasses.replace(model, truncate_dim=truncate_dim)
    if segments is None:
        return model
    check_whole("segments", segments)
    limits = model.limits._replace(inference_segments=segments)
    return dataclasses.replace(model, limits=limits)


def in_dtype(model: DocumentModel, dtype: str) -> DocumentModel:
    """The model with a segment encoder that computes in `dtype`. Raises UserError if the
    encoder does not support it."""
    encoder = model.encoder.clone(segment=model.encoder.segment.in_dtype(dtype))
    return dataclasses.replace(model, encoder=encoder)


def of_run(run: Path, allow: Sequence[str], params: Any = None) -> DocumentModel:
    """The model of a run directory, with the parameters that it ended with; `params` if
    the caller holds them: to read them all processes must read."""
    from docjax.storage.checkpoint import restore_params  # Orbax: a second to import

    source = run / "config.json"
    config = json_file.read(source)
    needed = (*OF_MODEL, "limits", "similarity")
    missing = [name for name in needed if name not in config]
    if missing:
        raise UserError(
            f"{source}: has no {', '.join(missing)}: an earlier docjax made this run, "
            "or the file is damaged; train the run again"
        )
    parts = _built(config, allow, source)
    docjax_json.check_limits(config.get("limits"), source)
    if params is None:
        params = restore_params(run, shapes(parts["encoder"], source))
    parts["encoder"], params = read_by_inference(parts["encoder"], params)
    prompts, _ = configs.prompts({"prompts": config.get("prompts")}, str(source))
    return _model(run, config, parts | {"params": params, "prompts": prompts})


def _load_export(folder: Path, allow: Sequence[str]) -> DocumentModel:
    facts = docjax_json.read(folder)
    prompts, default = configs.prompts(facts, str(folder / docjax_json.FACTS))
    parts = _built(facts, allow, folder / docjax_json.FACTS)
    _warn(folder, facts.get("doubt", ""))
    parts["params"] = jax.device_put(exported.read_params(folder, parts["encoder"]))
    more = {
        "truncate_dim": facts.get("truncate_dim"),
        "prompts": prompts,
        "default_prompt_name": default,
        "include_prompt": docjax_json.include_prompt(facts),
    }
    return _model(folder, facts, parts | more)


def doubt(run: Path) -> str:
    """Why a run does not know that what it keeps is better than its start; "" if it
    does, or if it did not judge."""
    judged = judgement(run)
    return "" if judged.get("helps", True) else judged["reason"]


def judgement(run: Path) -> dict[str, Any]:
    """What a run keeps, why, and whether that helps; {} if it did not judge."""
    path = run / "judgement.json"
    return json_file.read(path) if path.exists() else {}


def _warn(folder: Path, doubt: str) -> None:
    if doubt:
        logger.warning(
            "%s was not shown to be better than its start: %s", folder, doubt
        )


def _model(folder: Path, facts: Any, parts: Mapping[str, Any]) -> DocumentModel:
    """The model with the tokenizer of a folder, and what its config says."""
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    check_fits(tokenizer, parts["encoder"].segment.vocabulary)
    return DocumentModel(
        **parts,
        tokenizer=tokenizer,
        limits=ReadLimits.of(facts["limits"]),
        labels=facts.get("labels", ()),
        similarity_fn_name=facts["similarity"],
    )


def _built(config: Any, allow: Sequence[str], source: Path) -> dict[str, Any]:
    """The parts of a model, built from a config. Raises UserError for a config that
    describes no model; `source` names its file."""
    parts = {}
    try:
        check_sizes(config["encoder"], source)
        for name in OF_MODEL:
            parts[name] = named.build(config[name], (*HOMES[name], *allow), name)
        _try(parts)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{source}: no such model ({reason})") from None
    return parts


def _try(parts: Mapping[str, Any]) -> None:
    """Cuts a document, so that loading finds keywords of a wrong type."""
    pieces = parts["units"](as_document("One sentence. Another one.", 0))
    list(parts["segments"].spans([1] * len(pieces), [0] * len(pieces), 8))
    if parts["graph"] is not None:
        sections = np.array([piece.section for piece in pieces], np.int32)
        parts["graph"](len(pieces), sections, np.zeros((0, 2), np.int32))


def load_transformer(name: str | Path, pooling: str | None = None) -> DocumentModel:
    """A model from a Hugging Face folder or name.

    Args:
      pooling: "first" or "mean", if the folder does not say it; None: the mean, and a
        warning.
    """
    weights = huggingface.load(name)
    if weights.says_pooling:
        pooling = weights.pooling
    elif pooling is None:
        logger.warning(
            "%s does not say how the vectors of tokens become one vector: docjax takes "
            "their mean; if it was trained otherwise, add modules.json and "
            "1_Pooling/config.json, as sentence-transformers writes them",
            name,
        )
    segment = weights.family.module(
        **weights.keywords, pooling=pooling or weights.pooling
    )
    tokenizer = load_tokenizer(weights.folder, weights.lowercase)
    check_fits(tokenizer, segment.vocabulary)
    limits = ReadLimits(weights.max_tokens, weights.max_tokens, None)
    return DocumentModel(
        encoder=DocumentEncoder(segment, Mean(normalize=weights.normalize)),
        params={"segment": jax.device_put(weights.params)},
        tokenizer=tokenizer,
        units=Whole(),
        segments=OneEach(),
        graph=None,
        limits=limits,
        similarity_fn_name=weights.similarity,
        prompts=weights.prompts,
        default_prompt_name=weights.default_prompt_name,
        include_prompt=weights.include_prompt,
    )
