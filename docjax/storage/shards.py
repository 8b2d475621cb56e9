"""Vectors of a large input on disk: shards that survive a kill, joined at the end.

    OUT              .npy, float32 [documents, width], in the order of the input
    OUT.ids.jsonl    {"id": ...}, a line a row
    OUT.json         what they were made of, and the counts
    OUT.shards/      until all is done: plan.json, and of each shard NUMBER.npy and its
                     seal NUMBER.json, which is written last

Processes may share the folder; a lock lets one at a time plan or join.
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

    model, fingerprint, contents: fingerprints of what the output is made from: of the
    model, of the input's names, sizes and times, and of the input's contents, which are
    compared where the times differ.
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
                if not (self.folder / "plan.json").exists():  # nothing was begun
                    shutil.rmtree(self.folder, ignore_errors=True)

    def _lock(self) -> IO[str]:
        """The lock, held; whoever had it may have removed it, and another made it."""
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
        """The counts of a complete output; None if it is not there, or not whole.

        Raises:
          UserError: if there is one of another input or model.
        """
        if not self.output.exists():
            return None
        facts = _read(self.facts)
        if facts is None:
            raise UserError(
                f"{self.output} is there already, and no {self.facts.name} says of "
                "what: name another --output, or delete it"
            )
        self._check(facts, self.output)
        if not self._whole(facts["counts"]):
            logging.warning("%s: not as it was written, made anew", self.output)
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        return facts["counts"]

    def plan(self, survey: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `survey` found when this was begun: `documents` of each shard, and more.

        Raises:
          UserError: if it was begun with another input or model.
        """
        plan = _read(self.folder / "plan.json")
        if plan is not None:
            self._check(plan, self.folder)
            return plan
        for rest in self.folder.glob("[0-9]*"):
            rest.unlink()
        made = (FORMAT, self._model, self._fingerprint(), self._contents())
        plan = dict(zip(MADE_FROM, made, strict=True)) | survey()
        _write(self.folder / "plan.json", json.dumps(plan).encode())
        return plan

    def write(
        self, number: int, vectors: np.ndarray, ids: list[str], counts: dict[str, int]
    ) -> None:
        """One shard, and then its seal."""
        raw = io.BytesIO()
        np.save(raw, vectors)
        seal = {"ids": ids, "counts": counts}
        seal = {"sha256": _sha256(raw.getvalue(), seal), **seal}
        _write(self._path(number, "npy"), raw.getvalue())
        _write(self._path(number, "json"), json.dumps(seal).encode())

    def read(self, number: int) -> tuple[np.ndarray, dict[str, Any]] | None:
        """A shard's vectors and its seal; None if it is not there as it was written."""
        seal = _read(self._path(number, "json"))
        try:
            raw = self._path(number, "npy").read_bytes()
        except FileNotFoundError:
            return None
        if seal is None:  # killed before it was sealed
            return None
        if seal.pop("sha256", None) != _sha256(raw, seal):
            logging.warning("%s: damaged, not used", self._path(number, "npy"))
            return None
        return np.load(io.BytesIO(raw), allow_pickle=False), seal

    def join(self, plan: dict[str, Any]) -> dict[str, Any] | None:
        """Makes the output of all shards; gives its counts. None if some are missing.

        Raises:
          UserError: for a damaged shard, and if the input has changed on the way.
        """
        self._check(plan, self.folder)
        numbers = range(len(plan["documents"]))
        missing = [n for n in numbers if not self._path(n, "json").exists()]
        if missing:
            logging.warning(
                "this part is done; %d of %d shards are still missing, and the process "
                "that writes the last one joins all",
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
            found = {"width": width, **counts, "left_out": plan["left_out"]}
            facts = {name: plan[name] for name in MADE_FROM} | {"counts": found}
            _write(self.facts, json.dumps(facts).encode())
        shutil.rmtree(self.folder, ignore_errors=True)  # another may wait for the lock
        return found

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
        found = self.read(number)
        if found is None:
            self._path(number, "json").unlink(missing_ok=True)
            raise UserError(
                f"{self._path(number, 'npy')} is not as it was written: run the same "
                "command again, and it is encoded anew"
            )
        return found

    def _check(self, facts: dict[str, Any], where: Path) -> None:
        """Raises UserError if `facts` say another input or model than ours."""
        wrong = None
        if facts.get("format") != FORMAT:
            wrong = "by another version of docjax"
        elif facts.get("model") != self._model:
            wrong = "with another model"
        elif not manifest.agrees(facts, self._fingerprint(), self._contents):
            wrong = "of other documents"
        if wrong:
            raise UserError(
                f"{where} was made {wrong}: bring that back, name another --output, or "
                f"delete {where} to begin anew"
            )

    def _path(self, number: int, end: str) -> Path:
        return self.folder / f"{number:08}.{end}"


@contextlib.contextmanager
def rows_and_ids(
    output: Path, width: int
) -> Iterator[Callable[[np.ndarray, Iterable[str]], None]]:
    """Gives the function that appends rows of OUT, and their ids.

    Both files appear at the end, or nothing is left of them.
    """
    ids = beside(output, "ids.jsonl")
    with (
        atomic.partial(output) as partial,
        atomic.partial(ids) as partial_ids,
        growing_array(partial, np.float32, (width,)) as append,
        open(partial_ids, "w", encoding="utf-8") as lines,
    ):

        def both(vectors: np.ndarray, names: Iterable[str]) -> None:
            append(vectors)
            records = ({"id": name} for name in names)
            lines.writelines(json.dumps(record) + "\n" for record in records)

        yield both


def beside(output: Path, end: str) -> Path:
    """The file that lies beside an output under its name and another end."""
    return output.with_name(f"{output.name}.{end}")


def _read(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None without one."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(path: Path, raw: bytes) -> None:
    """Writes a file that another process may write at the same time."""
    writer = f"{socket.gethostname()}-{os.getpid()}"
    with atomic.partial(path, writer) as partial:
        partial.write_bytes(raw)


def _sha256(raw: bytes, seal: dict[str, Any]) -> str:
    found = hashlib.sha256(raw)
    found.update(json.dumps([seal.get("ids"), seal.get("counts")]).encode())
    return found.hexdigest()
