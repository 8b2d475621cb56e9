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
from tqdm import tqdm

from docjax.checkpoint import newest_good
from docjax.data import storage
from docjax.encoders.document import DocumentEncoder
from docjax.inference import Inference, windows
from docjax.prepare import Prepared, initial_params, trained_params
from docjax.processes import wait

ROWS = 65536  # copied at once


def with_vectors(prepared: Prepared) -> Prepared:
    """A run whose corpus holds the segments' vectors, if its encoder is frozen.

    Every process computes its part of the documents, on its own devices.
    """
    if not prepared.encoder.frozen:
        return prepared
    begun = newest_good(prepared.run / "checkpoints") is not None
    params = trained_params(prepared) if begun else initial_params(prepared)
    corpus = prepared.corpus
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
    corpus = prepared.corpus
    mesh = jax.sharding.Mesh(jax.local_devices(), ("data",))
    limit = prepared.config["limits"]["segment_tokens"]
    inference = Inference(prepared.encoder, prepared.graph, mesh, limit)
    width = inference.segments(params, [corpus[0]]).shape[1]
    documents = np.array_split(np.arange(len(corpus)), jax.process_count())
    mine = documents[jax.process_index()]
    total = int(corpus.counts[mine].sum())
    logging.info("the frozen segment encoder reads %d segments once", total)
    # A file for each process: a shared folder may not take writes of several to one.
    parts = [path.with_suffix(f".part{i}") for i in range(jax.process_count())]
    with (
        tqdm(total=total, desc="segment vectors", unit="segment", disable=None) as bar,
        storage.growing_array(
            parts[jax.process_index()], np.float32, (width,)
        ) as write,
    ):
        for window in windows(corpus[int(number)] for number in mine):
            write(inference.segments(params, window))
            bar.update(sum(map(len, window)))
    wait("segment vectors")
    if jax.process_index() == 0:
        _join(parts, path, width)
    wait("segment vectors joined")


def _join(parts: list[Path], path: Path, width: int) -> None:
    partial = path.with_suffix(".partial")
    with storage.growing_array(partial, np.float32, (width,)) as write:
        for part in parts:
            rows = np.load(part, mmap_mode="r", allow_pickle=False)
            for start in range(0, len(rows), ROWS):
                write(rows[start : start + ROWS])
            part.unlink()
    partial.rename(path)
