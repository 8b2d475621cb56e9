"""How far the vectors that other libraries read of an exported folder are from ours.

transformers and sentence-transformers bring torch, which nothing else in docjax needs.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from docjax.data.documents import full_text
from docjax.errors import UserError
from docjax.export.libraries import is_stock
from docjax.model.document_model import DocumentModel
from docjax.model.inference import Inference
from docjax.model.load import in_dtype, load
from docjax.types import Document

ROWS = 32  # segments or documents in one call
QUERIES = (1, 4, 8)  # words that begin a document


def check_installed() -> None:
    """Raises UserError without the libraries that vectors are compared with."""
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        raise UserError(
            "exported vectors are compared with those of sentence-transformers, which "
            "is not here: pip install 'docjax[export]'"
        ) from None


def differences(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> dict[str, float]:
    """The largest difference of any number, by the library that reads `folder`.

    Of the vectors of documents and of short queries; for transformers, of the vectors
    of segments. All in float32.

    Raises:
      UserError: if a library cannot read the folder, or cuts texts into other tokens.
    """
    model = in_dtype(model, "float32")
    queries, peer = _queries(model, documents), _sentence_transformer(folder)
    items = [full_text(one) if is_stock(folder) else _item(one) for one in documents]
    # A GPU would multiply float32 numbers in fewer digits.
    with jax.default_matmul_precision("float32"):
        expected = model.encode(documents)
        found = {"docjax": load(folder, dtype="float32").encode(documents) - expected}
        if (folder / "config.json").exists():
            found["transformers"] = _transformers(folder, model, documents)
        vectors = peer.encode(items, batch_size=ROWS, show_progress_bar=False)
        found["sentence-transformers"] = vectors - expected
        if queries:
            vectors = peer.encode_query(queries, show_progress_bar=False)
            name = "sentence-transformers, queries"
            found[name] = vectors - model.encode_queries(queries)
    return {name: float(np.abs(rest).max()) for name, rest in found.items()}


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
    """The first words of some documents that are short enough for queries."""
    own, most = model.tokenizer, model.limits
    room = min(most["query_tokens"], most["segment_tokens"])
    room -= len(own.prefix) + len(own.suffix)
    words = [full_text(one).split() for one in documents[:ROWS]]
    texts = [" ".join(some[:count]) for some in words for count in QUERIES]
    return [t for t, ids in zip(texts, own.encode(texts)) if len(ids) <= room]


def _item(document: Document) -> dict[str, Any]:
    """A document as a dict of a corpus."""
    sections = [{"heading": s.heading, "text": s.text} for s in document.sections]
    edges = [list(edge) for edge in document.edges]
    return {"title": document.title, "sections": sections, "edges": edges}


def _transformers(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> Float[np.ndarray, "n d"]:
    """Differences of the vectors of all segments."""
    from transformers import AutoModel, AutoTokenizer

    with _quiet():
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        encoder = AutoModel.from_pretrained(
            folder, add_pooling_layer=False, local_files_only=True
        ).requires_grad_(False)
    _check_tokens(tokenizer, model, documents)
    limits = model.limits
    cut = model.cut.documents(documents)
    cut = [one.first(limits["inference_segments"]) for one in cut]
    mesh = jax.sharding.Mesh(jax.local_devices(), ("data",))
    inference = Inference(model.encoder, None, mesh, limits["segment_tokens"])
    rows = [ids for one in cut for ids in np.split(one.tokens, one.offsets[1:-1])]
    found = []
    for start in range(0, len(rows), ROWS):
        ids = [row.tolist() for row in rows[start : start + ROWS]]
        given = tokenizer.pad({"input_ids": ids}, return_tensors="pt")
        states = encoder(**given).last_hidden_state.numpy()
        found.append(_pooled(states, given["attention_mask"].numpy(), model))
    own = np.concatenate(inference.segments(model.params, cut))
    return np.concatenate(found) - own


def _pooled(states: np.ndarray, mask: np.ndarray, model: DocumentModel) -> np.ndarray:
    """Segment vectors as the segment encoder makes them of the states of tokens."""
    segment = model.encoder.segment
    if segment.pooling == "first":
        found = states[:, 0]
    else:
        found = (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    if segment.normalize:
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
    return found


def _check_tokens(
    tokenizer: Any, model: DocumentModel, documents: Sequence[Document]
) -> None:
    """Raises UserError if transformers' tokenizer gives other ids than the model's."""
    own, texts = model.tokenizer, [full_text(one) for one in documents]
    for text, ids in zip(texts, own.encode(texts), strict=True):
        expected = [*own.prefix, *ids, *own.suffix]
        if tokenizer(text, verbose=False)["input_ids"] != expected:
            raise UserError(
                f"transformers' tokenizer gives {text[:40]!r} other ids than the model's"
            )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' progress bars and its report of a pooler that is not there."""
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
