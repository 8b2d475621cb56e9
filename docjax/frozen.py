"""The vectors of a segment encoder that is not trained, computed once for a corpus.

They lie in `RUN/corpus/` under a name made of the encoder and its parameters, so that
only they are ever read back.
"""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils
from tqdm import tqdm

from docjax.encoders.document import DocumentEncoder
from docjax.inference import Inference, windows
from docjax.prepare import Prepared, initial_params


def with_vectors(prepared: Prepared) -> Prepared:
    """A run whose corpus holds the segments' vectors, if its encoder is frozen.

    Every process computes its part of the documents, on its own devices.
    """
    if not prepared.encoder.frozen:
        return prepared
    params, corpus = initial_params(prepared), prepared.corpus
    path = corpus.folder / f"vectors-{_name(prepared.encoder, params)}.npy"
    if not path.exists():
        _write(path, prepared, params)
    corpus = corpus.with_vectors(np.load(path, mmap_mode="r", allow_pickle=False))
    return dataclasses.replace(prepared, corpus=corpus)


def _name(encoder: DocumentEncoder, params: Any) -> str:
    """A hash of the segment encoder, its parameters and their type."""
    found = hashlib.sha256(repr(encoder.segment).encode())
    for path, leaf in jax.tree.leaves_with_path(params["segment"]):
        found.update(jax.tree_util.keystr(path).encode())
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]


def _write(path: Path, prepared: Prepared, params: Any) -> None:
    corpus, partial = prepared.corpus, path.with_suffix(".partial")
    mesh = jax.sharding.Mesh(jax.local_devices(), ("data",))
    limit = prepared.config["limits"]["segment_tokens"]
    inference = Inference(prepared.encoder, prepared.graph, mesh, limit)
    params = inference.place(params)
    if jax.process_index() == 0:
        width = inference.segments(params, [corpus[0]]).shape[1]
        shape = len(corpus.lengths), width
        np.lib.format.open_memmap(partial, "w+", np.float32, shape).flush()
    _wait()
    rows = np.lib.format.open_memmap(partial, "r+")
    parts = np.array_split(np.arange(len(corpus)), jax.process_count())
    mine = parts[jax.process_index()]
    row = int(corpus.counts[: mine[0]].sum()) if len(mine) else 0
    total = int(corpus.counts[mine].sum())
    logging.info("the frozen segment encoder reads %d segments once", total)
    with tqdm(total=total, desc="segment vectors", unit="segment", disable=None) as bar:
        for window in windows(corpus[int(number)] for number in mine):
            vectors = inference.segments(params, window)
            rows[row : row + len(vectors)] = vectors
            row += len(vectors)
            bar.update(len(vectors))
    rows.flush()
    _wait()
    if jax.process_index() == 0:
        partial.rename(path)
    _wait()


def _wait() -> None:
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("segment vectors")
