"""`encode` against sentence-transformers, on whole documents of all lengths.

    python -m benchmarks.encode --path 20news.jsonl.xz

Both libraries have MiniLM's weights, the same device and the same cores; their runs
alternate. Each figure is a ratio to sentence-transformers in float32 (below 1: docjax
is faster), the median of `--repeats`. (1) Both read the first 512 tokens of a document.
(2) Both read whole documents in pieces of 512 tokens; for sentence-transformers the
time to make the pieces and their mean is not counted. Every run is checked against the
result of sentence-transformers. The second check is loose: its pieces that begin inside
a word have other tokens.
"""

import argparse
import dataclasses
from collections.abc import Sequence
from functools import partial

import jax
import numpy as np
from sentence_transformers import SentenceTransformer

import docjax
from benchmarks import tiny
from benchmarks.encoder import ROWS, Runs, interleaved, sample
from benchmarks.runs import add_init
from docjax.data.records import full_text
from docjax.encoders.token_encoder import DTYPES
from docjax.model.document_model import DocumentModel
from docjax.training import memory

LIMIT = 512


def loaded(folder: str, dtype: str, most: int | None) -> DocumentModel:
    """A transformer in docjax, which reads `most` segments of LIMIT tokens."""
    model = docjax.load(folder, dtype=dtype)
    limits = model.limits._replace(segment_tokens=LIMIT, inference_segments=most)
    return dataclasses.replace(model, limits=limits)


def theirs(peer: SentenceTransformer, texts: list[str]) -> np.ndarray:
    return peer.encode(texts, batch_size=ROWS, show_progress_bar=False)


def piecewise(
    peer: SentenceTransformer, texts: list[str], owners: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """The mean of the pieces' vectors, weighted by tokens and scaled to length 1."""
    summed = np.zeros((owners.max() + 1, peer.get_embedding_dimension()), np.float32)
    np.add.at(summed, owners, theirs(peer, texts) * sizes[:, None])
    return summed / np.linalg.norm(summed, axis=1, keepdims=True)


def main(given: Sequence[str] | None = None) -> None:
    memory.keep_freed()  # as training does; torch gains from it as well
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="JSON lines; without, the built-in corpus")
    parser.add_argument("--documents", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    add_init(parser)
    sizes = "--path", tiny.documents, "--documents", 4, "--repeats", 1
    flags = tiny.parse(parser, given, *sizes, "--init", tiny.checkpoint)
    documents = sample(flags.path, flags.documents)
    device = "cuda" if jax.default_backend() == "gpu" else "cpu"  # docjax's
    peer = SentenceTransformer(flags.init, device=device)
    peer.max_seq_length = LIMIT

    runs: Runs = {
        "sentence-transformers float32": partial(
            theirs, peer, [full_text(one) for one in documents]
        )
    }
    for dtype in flags.dtypes:
        runs[f"docjax {dtype}"] = partial(
            loaded(flags.init, dtype, 1).encode, documents
        )
    title = f"{len(documents)} documents, cut at {LIMIT} tokens"
    interleaved(title, runs, flags.repeats)

    model = loaded(flags.init, "float32", None)
    found = [model.cut.with_texts(document) for document in documents]
    pieces = [piece.text for _, some in found for piece in some]
    owners = np.repeat(np.arange(len(found)), [len(some) for _, some in found])
    sizes = np.concatenate([one.lengths for one, _ in found])
    runs = {
        "sentence-transformers float32": partial(piecewise, peer, pieces, owners, sizes)
    }
    for dtype in flags.dtypes:
        runs[f"docjax {dtype}"] = partial(
            loaded(flags.init, dtype, None).encode, documents
        )
    title = f"{len(documents)} whole documents, {sizes.sum():,} tokens"
    interleaved(title, runs, flags.repeats, tolerance=0.2, exact=0.2)


if __name__ == "__main__":
    main()
