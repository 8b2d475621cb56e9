"""Models from a run, an exported folder, or a Hugging Face folder or name.

Nothing is unpickled, and no code is imported from a model folder: what a config may
name are functions of docjax, each from the module of its part.
"""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from docjax import config as config_lib
from docjax.data import units as segments
from docjax.data.tokenizer import check_fits, load_tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import DTYPES, Transformer
from docjax.errors import UserError
from docjax.huggingface import exported, files
from docjax.huggingface import weights as huggingface
from docjax.model.document_model import DocumentModel, as_document
from docjax.storage import checkpoint

HOMES = {  # of the functions that a run or folder may name for the parts of a model
    "encoder": "docjax.encoders.",
    "segments": "docjax.data.units.",
    "graph": "docjax.data.graphs.",
}


def load(
    path: str | Path,
    *,
    revision: str | None = None,
    dtype: str | None = None,
    allow: Sequence[str] = ("docjax.",),
) -> DocumentModel:
    """A model from a run directory, an exported folder, or a Hugging Face folder or name.

    A plain transformer reads consecutive pieces of at most its own length; a
    document is their mean weighted by tokens, pooled as the folder says.

    Args:
      revision: of a hub name.
      dtype: "bfloat16" or "float32", in which segments are encoded; None takes the
        run's own, and float32 for a Hugging Face model.
      allow: prefixes of the `fn` names that a config may use.

    Raises:
      UserError: if there is no model, or its files are damaged.
    """
    if dtype not in (None, *DTYPES):
        raise UserError(f"dtype {dtype!r} is none of {', '.join(DTYPES)}")
    folder, _ = files.find(path, revision)
    if (Path(path) / "checkpoints").is_dir():
        model = _load_run(Path(path), allow)
    elif (folder / exported.FACTS).exists():
        model = _load_export(folder, allow)
    else:
        model = _load_huggingface(folder)
    return model if dtype is None else in_dtype(model, dtype)


def in_dtype(model: DocumentModel, dtype: str) -> DocumentModel:
    """The model, its segments encoded in `dtype`.

    Raises:
      UserError: if its segment encoder has float32 only.
    """
    segment = model.encoder.segment
    if not hasattr(segment, "dtype") and dtype != "float32":
        raise UserError(f"dtype {dtype!r}: {type(segment).__name__} has float32 only")
    if hasattr(segment, "dtype"):
        segment = segment.clone(dtype=dtype)
    return dataclasses.replace(model, encoder=model.encoder.clone(segment=segment))


def _load_run(run: Path, allow: Sequence[str]) -> DocumentModel:
    source = run / "config.json"
    config = config_lib.load(source)
    built = _built(config, allow, source)
    exported.check_limits(config.get("limits"), source)
    shapes = exported.shapes(built["encoder"], source)
    tokenizer = load_tokenizer(run / "tokenizer.json")
    check_fits(tokenizer, built["encoder"].segment.vocabulary)
    return DocumentModel(
        **built,
        params=checkpoint.restore_params(run, shapes),
        tokenizer=tokenizer,
        limits=config["limits"],
        labels=config.get("labels", ()),
        similarity_fn_name=_similarity(config.get("objective")),
    )


def _load_export(folder: Path, allow: Sequence[str]) -> DocumentModel:
    facts = exported.read(folder)
    built = _built(facts, allow, folder / exported.FACTS)
    params = exported.read_params(folder, built["encoder"])
    tokenizer = load_tokenizer(folder / "tokenizer.json")
    check_fits(tokenizer, built["encoder"].segment.vocabulary)
    return DocumentModel(
        **built,
        params=jax.tree.map(jnp.asarray, params),
        tokenizer=tokenizer,
        limits=facts["limits"],
        labels=facts["labels"],
        similarity_fn_name=facts["similarity"],
    )


def _built(config: Any, allow: Sequence[str], source: Path) -> dict[str, Any]:
    """The parts of a model, of functions that are such parts.

    Raises:
      UserError: for a config that has none; `source` names its file.
    """
    found = {}
    try:
        exported.check_sizes(config["encoder"], source)
        for part, home in HOMES.items():
            prefixes = [home if prefix == "docjax." else prefix for prefix in allow]
            found[part] = config_lib.build(config[part], prefixes, part)
        _try(found["segments"], found["graph"])
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise UserError(f"{source}: no such model ({reason})") from None
    return found


def _try(cut: Any, graph: Any) -> None:
    """Cuts a document: keywords of a wrong type are found when a model is loaded."""
    pieces = cut(as_document("One sentence. Another one.", 0))
    if graph is not None:
        sections = np.array([piece.section for piece in pieces], np.int32)
        graph(len(pieces), sections, np.zeros((0, 2), np.int32))


def _similarity(objective: Any) -> str:
    """The `similarity` of an objective, or of the contrastive one that it holds."""
    if not isinstance(objective, Mapping):
        return "cosine"
    if objective.get("contrastive"):
        return _similarity(objective["contrastive"])
    try:
        fn = config_lib.resolve(objective.get("fn"), ("docjax.objectives.",))
    except UserError:  # a user's own, which encoding does without
        return "cosine"
    asked = inspect.signature(fn).parameters.get("similarity")
    return objective.get("similarity", asked.default) if asked else "cosine"


def _load_huggingface(folder: Path) -> DocumentModel:
    found = huggingface.load(folder)
    huggingface.refuse_prompts(found, folder)
    segment = Transformer(**found.keywords, pooling=found.pooling)
    tokenizer = load_tokenizer(found.folder, found.lowercase)
    check_fits(tokenizer, segment.vocabulary)
    limits = {
        "segment_tokens": found.max_tokens,
        "query_tokens": found.max_tokens,
        "inference_segments": None,
    }
    return DocumentModel(
        encoder=DocumentEncoder(segment, Mean(normalize=found.normalize)),
        params={"segment": jax.tree.map(jnp.asarray, found.params)},
        tokenizer=tokenizer,
        segments=segments.whole,
        graph=None,
        limits=limits,
        similarity_fn_name=found.similarity,
    )
