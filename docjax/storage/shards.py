"""Vectors of a large input on disk: shards that survive a kill, joined at the end.

    OUT                the vectors of the documents in the order of the input, and their
                       ids; the suffix says the format (`vector_files.py`)
    OUT.passages.npy   if asked for: the vectors of all segments, float32 [_, width]
    OUT.sizes.npy      and the number of segments of each document, int32
    OUT.json           the fingerprints of model and input, and the counts
    OUT.shards/        until the shards are joined: plan.json, and for each shard
                       NUMBER.npz and then its seal NUMBER.json

Processes may share the folder; a lock lets one process at a time plan or join.
"""

import contextlib
import functools
import hashlib
import io
import json
import logging
import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from docjax.errors import UserError
from docjax.storage import atomic, json_file, lock, manifest, vector_files
from docjax.storage.arrays import growing_array, mapped
from docjax.storage.vector_files import appending, beside

logger = logging.getLogger(__name__)

FORMAT = 2
VECTORS, PASSAGES, SIZES = "vectors", "passages", "sizes"  # the arrays of a shard
MADE_FROM = ("format", "model", "fingerprint", "contents", PASSAGES)


class Shards:
    """The files of one output.

    `model` is the fingerprint of the model. `fingerprint` gives that of the input's
    names, sizes and times, or if it is given True, that of the input's contents, which
    decides if the first one differs. `passages`: whether the segments are kept.
    """

    def __init__(
        self,
        output: Path,
        model: str,
        fingerprint: Callable[[bool], str],
        passages: bool = False,
    ):
        self.output, self._passages = output, passages
        self.facts, self.folder = beside(output, "json"), beside(output, "shards")
        self._model = model
        self._fingerprint = functools.partial(fingerprint, False)
        self._contents = functools.partial(fingerprint, True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Waits until no other process plans or joins."""
        with lock.awaited(self.folder / lock.NAME):
            try:
                yield
            finally:
                if not (self.folder / "plan.json").exists():  # nothing was planned
                    shutil.rmtree(self.folder, ignore_errors=True)

    def complete(self) -> dict[str, Any] | None:
        """The counts of a complete output; None if the output is missing or damaged.
        Raises UserError if the output was made from another input or model."""
        if not self.output.exists():
            return None
        facts = json_file.read_if_there(self.facts)
        if facts is None:
            raise UserError(
                f"{self.output} is there already without {self.facts.name}, the record "
                "of its input; name another --output, or delete it"
            )
        self._check(facts, self.output)
        if not self._whole(facts["counts"], facts.get("size")):
            logger.warning("%s is not as written and is made again", self.output)
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        return facts["counts"]

    def plan(self, survey: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The plan from `survey` at the first start: `documents` per shard, and more.
        Raises UserError if the first start had another input or model."""
        plan = json_file.read_if_there(self.folder / "plan.json")
        if plan is not None:
            self._check(plan, self.folder)
            return plan
        for stale in self.folder.glob("[0-9]*"):
            stale.unlink()
        prints = self._fingerprint(), self._contents()
        sources = FORMAT, self._model, *prints, self._passages
        plan = dict(zip(MADE_FROM, sources, strict=True)) | survey()
        _write(self.folder / "plan.json", json.dumps(plan).encode())
        return plan

    def write(
        self,
        number: int,
        arrays: Mapping[str, np.ndarray],
        ids: list[str],
        counts: dict[str, int],
    ) -> None:
        """Writes the VECTORS of one shard, or all of its arrays, and then its seal."""
        raw = io.BytesIO()
        np.savez(raw, **arrays)
        seal = {"ids": ids, "counts": counts}
        seal = {"sha256": _sha256(raw.getvalue(), seal), **seal}
        _write(self._path(number, "npz"), raw.getvalue())
        _write(self._path(number, "json"), json.dumps(seal).encode())

    def read(self, number: int) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """A shard's arrays and its seal; None if the shard is missing or damaged."""
        seal = json_file.read_if_there(self._path(number, "json"))
        try:
            raw = self._path(number, "npz").read_bytes()
        except FileNotFoundError:
            return None
        if seal is None:  # its writer was killed before the seal
            return None
        if seal.pop("sha256", None) != _sha256(raw, seal):
            logger.warning("%s is damaged and is not used", self._path(number, "npz"))
            return None
        return dict(np.load(io.BytesIO(raw), allow_pickle=False)), seal

    def join(self, plan: dict[str, Any]) -> dict[str, Any] | None:
        """Joins all shards and returns the counts; None if shards are missing. Raises
        UserError for a damaged shard, or if the input has changed meanwhile."""
        self._check(plan, self.folder)
        numbers = range(len(plan["documents"]))
        missing = [n for n in numbers if not self._path(n, "json").exists()]
        if missing:
            logger.warning(
                "this part is done; %d of %d shards are still missing, and the process "
                "that writes the last shard joins all shards",
                len(missing),
                len(numbers),
            )
            return None
        counts: Counter = Counter()
        first, _ = self._good(0)
        width = first[VECTORS].shape[1]
        with (
            _passages(self.output, width, PASSAGES in first) as append_passages,
            appending(self.output, width) as append,
        ):
            for number in numbers:
                arrays, seal = self._good(number)
                append(arrays[VECTORS], seal["ids"])
                append_passages(arrays)
                counts.update(seal["counts"])
            counted = {"width": width, **counts, "left_out": plan["left_out"]}
            facts = {name: plan[name] for name in MADE_FROM} | {"counts": counted}
            _write(self.facts, json.dumps(facts).encode())
        if self.output.suffix != ".npy":  # whose rows are counted
            facts |= {"size": self.output.stat().st_size}
            _write(self.facts, json.dumps(facts).encode())
        shutil.rmtree(self.folder, ignore_errors=True)  # others may await the lock
        return counted

    def _whole(self, counts: dict[str, Any], size: int | None) -> bool:
        """Whether the output has all its rows, ids and passages; `size` is that of the
        output as it was written; None if its writer was killed just then."""
        documents, width = counts["documents"], counts["width"]
        if not vector_files.is_whole(self.output, documents, width, size):
            return False
        if not self._passages:
            return True
        try:
            sizes = mapped(beside(self.output, f"{SIZES}.npy"))
            passages = mapped(beside(self.output, f"{PASSAGES}.npy"))
            total = int(sizes.sum(dtype=np.int64))
        except (OSError, EOFError, ValueError):
            return False
        return sizes.shape == (documents,) and passages.shape == (total, width)

    def _good(self, number: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        shard = self.read(number)
        if shard is None:
            self._path(number, "json").unlink(missing_ok=True)
            raise UserError(
                f"{self._path(number, 'npz')} is not as it was written; run the same "
                "command again to encode this shard again"
            )
        return shard

    def _check(self, facts: dict[str, Any], where: Path) -> None:
        """Raises UserError if `facts` name another input, model or format."""
        wrong = None
        if facts.get("format") != FORMAT:
            wrong = "by another version of docjax"
        elif facts.get("model") != self._model:
            wrong = "with another model, prompt or --truncate-dim"
        elif facts.get(PASSAGES, self._passages) != self._passages:
            wrong = "without passages" if self._passages else "with passages"
        elif not manifest.agrees(facts, self._fingerprint(), self._contents):
            wrong = "of other documents"
        if wrong:
            raise UserError(
                f"{where} was made {wrong}; use the original again, name another "
                f"--output, or delete {where} to start again"
            )

    def _path(self, number: int, end: str) -> Path:
        return self.folder / f"{number:08}.{end}"


@contextlib.contextmanager
def _passages(
    output: Path, width: int, wanted: bool
) -> Iterator[Callable[[Mapping[str, np.ndarray]], None]]:
    """Yields the function that appends a shard's PASSAGES and SIZES to their files."""
    if not wanted:
        yield lambda arrays: None
        return
    with (
        atomic.partial(beside(output, f"{PASSAGES}.npy")) as passages,
        atomic.partial(beside(output, f"{SIZES}.npy")) as sizes,
        growing_array(passages, np.float32, (width,)) as add_passages,
        growing_array(sizes, np.int32) as add_sizes,
    ):

        def append(arrays: Mapping[str, np.ndarray]) -> None:
            add_passages(arrays[PASSAGES])
            add_sizes(arrays[SIZES])

        yield append


def _write(path: Path, raw: bytes) -> None:
    """Writes a file that another process may write at the same time."""
    writer = f"{socket.gethostname()}-{os.getpid()}"
    with atomic.partial(path, writer) as partial:
        partial.write_bytes(raw)


def _sha256(raw: bytes, seal: dict[str, Any]) -> str:
    sha256 = hashlib.sha256(raw)
    sha256.update(json.dumps([seal.get("ids"), seal.get("counts")]).encode())
    return sha256.hexdigest()
