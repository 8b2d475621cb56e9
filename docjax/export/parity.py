"""The differences between our vectors and those of other libraries, for an export.

transformers and sentence-transformers import torch, which nothing else in docjax needs.
"""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.export.libraries import adds_to_transformers, is_stock
from docjax.huggingface.family import Family, family_of
from docjax.model import compare as comparison
from docjax.model.document_model import DocumentModel
from docjax.types import Document

ROWS = 32  # the most segments or documents in one call
TOKENS = 1 << 14  # the most tokens in one call, unless one segment has more
PLACES = 16  # of a segment, at which masked tokens are compared
QUERIES = (1, 4, 8)  # numbers of first words that make a query


def check_installed() -> None:
    """Raises UserError if sentence-transformers is not installed."""
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        raise UserError(
            "sentence-transformers is not installed; an export compares its vectors "
            "with those of that library: pip install 'docjax[export]'"
        ) from None


def differences(
    folder: Path,
    model: DocumentModel,
    reloaded: DocumentModel,
    documents: Sequence[Document],
) -> dict[str, float]:
    """The largest difference of any number, by the library that reads `folder`.

    The vectors are those of documents and short queries; for transformers, those of
    segments, unless the segment encoder has more than transformers' model has.

    Args:
      model, reloaded: the exported model, and the one that docjax reads back; float32.

    Raises:
      UserError: if a library cannot read the folder, or cuts texts into other tokens.
    """
    queries, peer = _queries(model, documents), _sentence_transformer(folder)
    as_item = full_text if is_stock(folder) else _item
    items = [as_item(document) for document in documents]
    expected = model.encode(documents)
    arrays = {"docjax": reloaded.encode(documents) - expected}
    segment = model.encoder.segment
    more = adds_to_transformers(folder)
    if family_of(segment).in_transformers and not more:
        arrays["transformers"] = _transformers(folder, model, documents)
        if segment.masked_lm:
            name = "transformers, masked tokens"
            arrays[name] = _masked_tokens(folder, model, documents)
    options = dict(batch_size=ROWS, show_progress_bar=False)
    vectors = peer.encode(items, prompt=model.document_prompt, **options)
    arrays["sentence-transformers"] = vectors - expected
    if queries:
        vectors = peer.encode_query(queries, prompt=model.query_prompt, **options)
        name = "sentence-transformers, queries"
        arrays[name] = vectors - model.encode_queries(queries)
    return {name: float(np.abs(array).max()) for name, array in arrays.items()}


def _sentence_transformer(folder: Path) -> Any:
    """The folder as sentence-transformers reads it, on the CPU."""
    from sentence_transformers import SentenceTransformer

    try:
        with _quiet():
            return SentenceTransformer(
                str(folder),
                device="cpu",
                trust_remote_code=not is_stock(folder),
                local_files_only=True,
            )
    except ValueError as error:
        raise UserError(f"sentence-transformers: {error}") from None


def _queries(model: DocumentModel, documents: Sequence[Document]) -> list[str]:
    """The first words of some documents, if they are short enough for a query."""
    tokenizer, limits = model.tokenizer, model.limits
    room = limits.query_segment
    [prompt] = tokenizer.encode([model.query_prompt or ""])
    room -= len(tokenizer.prefix) + len(prompt) + len(tokenizer.suffix)
    words = [full_text(document).split() for document in documents[:ROWS]]
    texts = [" ".join(first[:count]) for first in words for count in QUERIES]
    return [t for t, ids in zip(texts, tokenizer.encode(texts)) if len(ids) <= room]


def _item(document: Document) -> dict[str, Any]:
    """A document as a dict, as in a corpus file."""
    sections = [{"heading": s.heading, "text": s.text} for s in document.sections]
    edges = [list(edge) for edge in document.edges]
    return {"title": document.title, "sections": sections, "edges": edges}


def _transformers(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> Float[np.ndarray, "n d"]:
    """The differences between transformers' segment vectors and the model's."""
    family = family_of(model.encoder.segment)
    tokenizer, encoder = _loaded(folder, family.auto_class, family.model_keywords)
    _check_tokens(tokenizer, model, documents)
    limits = model.limits
    cut = model.cut.documents(documents)
    cut = [document.first(limits.inference_segments) for document in cut]
    inference = model.inference()
    rows = [ids for d in cut for ids in np.split(d.tokens, d.offsets[1:-1])]
    vectors = []
    height = max(1, min(ROWS, TOKENS // limits.segment_tokens))
    height = 1 if family.alone_above else height
    for start in range(0, len(rows), height):
        ids = [row.tolist() for row in rows[start : start + height]]
        outputs, mask = _read(encoder, family, tokenizer, ids)
        states = outputs.last_hidden_state.numpy()
        vectors.append(_pooled(states, mask, inference.encoder.segment))
    expected = np.concatenate(inference.segments(model.params, cut))
    return np.concatenate(vectors) - expected


def _masked_tokens(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> Float[np.ndarray, "m r"]:
    """The differences between the scores that both give to the words of the vocabulary,
    at a few places of a few segments."""
    tokenizer, predict = _loaded(folder, "AutoModelForMaskedLM", {})
    cut = [document.first(1) for document in model.cut.documents(documents[:ROWS])]
    params = {"params": model.params["segment"]}
    segment, arrays = model.encoder.segment, []
    scores = jax.jit(functools.partial(segment.apply, method="token_scores"))
    for tokens in (document.tokens for document in cut if len(document.tokens)):
        at = np.linspace(0, len(tokens) - 1, PLACES).astype(np.int32)
        padded = np.pad(tokens, (0, model.limits.segment_tokens - len(tokens)))
        length = np.array([len(tokens)], np.int32)
        expected = scores(params, padded[None], length, None, at[None])
        outputs, _ = _read(predict, family_of(segment), tokenizer, [tokens.tolist()])
        arrays.append(outputs.logits[0].numpy()[at] - np.asarray(expected))
    return np.concatenate(arrays)


def _loaded(folder: Path, kind: str, keywords: Mapping[str, Any]) -> tuple[Any, Any]:
    """The tokenizer and the model of a folder, as transformers reads them."""
    import transformers

    local = {"local_files_only": True}
    with _quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **local)
        model = getattr(transformers, kind).from_pretrained(folder, **keywords, **local)
    return tokenizer, model.requires_grad_(False)


def _read(
    encoder: Any, family: Family, tokenizer: Any, rows: list[list[int]]
) -> tuple[Any, np.ndarray]:
    """What a model of transformers gives for the tokens of segments, and their mask."""
    batch = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
    if family.first_sees_all:
        mask = batch["attention_mask"].clone().zero_()
        mask[:, 0] = 1
        batch["global_attention_mask"] = mask
    if family.alone_above:  # a short segment would leave the model dense for good
        encoder.base_model.set_attention_type("block_sparse")
    return encoder(**batch), batch["attention_mask"].numpy()


def _pooled(states: np.ndarray, mask: np.ndarray, segment: Any) -> np.ndarray:
    """Segment vectors as the segment encoder makes them from the states of tokens."""
    if segment.pooling == "first":
        vectors = states[:, 0]
    else:
        mask = mask * (np.arange(mask.shape[1]) >= segment.left_out)
        count = np.maximum(mask.sum(1, keepdims=True), 1)
        vectors = (states * mask[..., None]).sum(1) / count
    if segment.normalize:
        return comparison.unit(vectors)
    return vectors


def _check_tokens(
    tokenizer: Any, model: DocumentModel, documents: Sequence[Document]
) -> None:
    """Raises UserError if transformers' tokenizer gives other ids than the model's."""
    ours, texts = model.tokenizer, [full_text(document) for document in documents]
    for text, ids in zip(texts, ours.encode(texts), strict=True):
        expected = [*ours.prefix, *ids, *ours.suffix]
        if tokenizer(text, verbose=False)["input_ids"] != expected:
            raise UserError(
                f"transformers' tokenizer cuts {text[:40]!r} into other tokens than "
                "the model's, so nothing is exported; please report this as a bug"
            )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides transformers' progress bars and its report that the pooler is missing."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
