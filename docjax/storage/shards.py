"""Vectors of a large input on disk: shards that survive a kill, joined at the end.

    OUT              .npy, float32 [documents, width], in the order of the input
    OUT.ids.jsonl    {"id": ...}, one line per row
    OUT.json         the fingerprints of model and input, and the counts
    OUT.shards/      until the shards are joined: plan.json, and for each shard
                     NUMBER.npy and then its seal NUMBER.json

Processes may share the folder; a lock lets one process at a time plan or join.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from absl import logging

from docjax.errors import UserError
from docjax.storage import atomic, manifest
from docjax.storage.arrays import growing_array

FORMAT = 1
MADE_FROM = ("format", "model", "fingerprint", "contents")


class Shards:
    """The files of one output.

    `model` is the fingerprint of the model, `fingerprint` that of the input's names,
    sizes and times, and `contents` that of the input's contents, which decides if
    `fingerprint` differs.
    """

    def __init__(
        self,
        output: Path,
        model: str,
        fingerprint: Callable[[], str],
        contents: Callable[[], str],
    ):
        self.output = output
        self.facts, self.folder = beside(output, "json"), beside(output, "shards")
        self._model, self._fingerprint, self._contents = model, fingerprint, contents

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Waits until no other process plans or joins."""
        with self._lock():
            try:
                yield
            finally:
                if not (self.folder / "plan.json").exists():  # nothing was planned
                    shutil.rmtree(self.folder, ignore_errors=True)

    def _lock(self) -> IO[str]:
        """Takes the lock; tries again if its last holder has removed the file."""
        path = self.folder / "lock"
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (
                contextlib.suppress(FileNotFoundError),
                contextlib.ExitStack() as stack,
            ):
                lock = stack.enter_context(open(path, "w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                    stack.pop_all()
                    return lock

    def complete(self) -> dict[str, Any] | None:
        """The counts of a complete output; None if the output is missing or damaged.

        Raises:
          UserError: if the output was made from another input or model.
        """
        if not self.output.exists():
            return None
        facts = _read(self.facts)
        if facts is None:
            raise UserError(
                f"{self.output} is there already without {self.facts.name}, the record "
                "of its input; name another --output, or delete it"
            )
        self._check(facts, self.output)
        if not self._whole(facts["counts"]):
            logging.warning("%s is not as written and is made again", self.output)
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        return facts["counts"]

    def plan(self, survey: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The plan from `survey` at the first start: `documents` per shard, and more.

        Raises:
          UserError: if the first start had another input or model.
        """
        plan = _read(self.folder / "plan.json")
        if plan is not None:
            self._check(plan, self.folder)
            return plan
        for stale in self.folder.glob("[0-9]*"):
            stale.unlink()
        sources = (FORMAT, self._model, self._fingerprint(), self._contents())
        plan = dict(zip(MADE_FROM, sources, strict=True)) | survey()
        _write(self.folder / "plan.json", json.dumps(plan).encode())
        return plan

    def write(
        self, number: int, vectors: np.ndarray, ids: list[str], counts: dict[str, int]
    ) -> None:
        """Writes one shard, and then its seal."""
        raw = io.BytesIO()
        np.save(raw, vectors)
        seal = {"ids": ids, "counts": counts}
        seal = {"sha256": _sha256(raw.getvalue(), seal), **seal}
        _write(self._path(number, "npy"), raw.getvalue())
        _write(self._path(number, "json"), json.dumps(seal).encode())

    def read(self, number: int) -> tuple[np.ndarray, dict[str, Any]] | None:
        """A shard's vectors and its seal; None if the shard is missing or damaged."""
        seal = _read(self._path(number, "json"))
        try:
            raw = self._path(number, "npy").read_bytes()
        except FileNotFoundError:
            return None
        if seal is None:  # its writer was killed before the seal
            return None
        if seal.pop("sha256", None) != _sha256(raw, seal):
            logging.warning("%s is damaged and is not used", self._path(number, "npy"))
            return None
        return np.load(io.BytesIO(raw), allow_pickle=False), seal

    def join(self, plan: dict[str, Any]) -> dict[str, Any] | None:
        """Joins all shards and returns the counts; None if shards are missing.

        Raises:
          UserError: for a damaged shard, or if the input has changed meanwhile.
        """
        self._check(plan, self.folder)
        numbers = range(len(plan["documents"]))
        missing = [n for n in numbers if not self._path(n, "json").exists()]
        if missing:
            logging.warning(
                "this part is done; %d of %d shards are still missing, and the process "
                "that writes the last shard joins all shards",
                len(missing),
                len(numbers),
            )
            return None
        counts: Counter = Counter()
        width = self._good(0)[0].shape[1]
        with rows_and_ids(self.output, width) as append:
            for number in numbers:
                vectors, seal = self._good(number)
                append(vectors, seal["ids"])
                counts.update(seal["counts"])
            counted = {"width": width, **counts, "left_out": plan["left_out"]}
            facts = {name: plan[name] for name in MADE_FROM} | {"counts": counted}
            _write(self.facts, json.dumps(facts).encode())
        shutil.rmtree(self.folder, ignore_errors=True)  # others may await the lock
        return counted

    def _whole(self, counts: dict[str, Any]) -> bool:
        """Whether the output has all its rows and ids."""
        try:
            # Raises for a file that is shorter than its header says.
            rows = np.load(self.output, mmap_mode="r", allow_pickle=False)
            with open(beside(self.output, "ids.jsonl"), "rb") as lines:
                ids = sum(1 for _ in lines)
        except (OSError, EOFError, ValueError):
            return False
        documents = counts["documents"]
        return rows.shape == (documents, counts["width"]) and ids == documents

    def _good(self, number: int) -> tuple[np.ndarray, dict[str, Any]]:
        shard = self.read(number)
        if shard is None:
            self._path(number, "json").unlink(missing_ok=True)
            raise UserError(
                f"{self._path(number, 'npy')} is not as it was written; run the same "
                "command again to encode this shard again"
            )
        return shard

    def _check(self, facts: dict[str, Any], where: Path) -> None:
        """Raises UserError if `facts` name another input, model or format."""
        wrong = None
        if facts.get("format") != FORMAT:
            wrong = "by another version of docjax"
        elif facts.get("model") != self._model:
            wrong = "with another model"
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
def rows_and_ids(
    output: Path, width: int
) -> Iterator[Callable[[np.ndarray, Iterable[str]], None]]:
    """Yields the function that appends rows to OUT, and their ids to OUT.ids.jsonl.

    Both files appear at the end, or neither does.
    """
    ids = beside(output, "ids.jsonl")
    with (
        atomic.partial(output) as partial,
        atomic.partial(ids) as partial_ids,
        growing_array(partial, np.float32, (width,)) as append,
        open(partial_ids, "w", encoding="utf-8") as lines,
    ):

        def append_with_ids(vectors: np.ndarray, names: Iterable[str]) -> None:
            append(vectors)
            records = ({"id": name} for name in names)
            lines.writelines(json.dumps(record) + "\n" for record in records)

        yield append_with_ids


def beside(output: Path, end: str) -> Path:
    """The path OUTPUT.END, beside the output."""
    return output.with_name(f"{output.name}.{end}")


def _read(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _write(path: Path, raw: bytes) -> None:
    """Writes a file that another process may write at the same time."""
    writer = f"{socket.gethostname()}-{os.getpid()}"
    with atomic.partial(path, writer) as partial:
        partial.write_bytes(raw)


def _sha256(raw: bytes, seal: dict[str, Any]) -> str:
    sha256 = hashlib.sha256(raw)
    sha256.update(json.dumps([seal.get("ids"), seal.get("counts")]).encode())
    return sha256.hexdigest()
