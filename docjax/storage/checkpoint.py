"""A run directory's state: save, verify, restore.

Orbax writes a checkpoint (atomic: a killed save leaves nothing), and a manifest with
the sha256 of each of its files seals the checkpoint. A restore verifies the manifest,
because Orbax restores a flipped bit silently, and walks back to the newest good
checkpoint. Damaged or unsealed checkpoints move to `damaged/`.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from logging import root
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from docjax.errors import UserError
from docjax.storage import disk_errors, manifest
from docjax.storage.manifest import MANIFEST
from docjax.storage.processes import wait

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def _handlers_unchanged() -> Iterator[None]:
    """Removes the handler that Orbax's first message adds to Python's logging."""
    handlers = list(root.handlers)
    try:
        yield
    finally:
        root.handlers[:] = handlers


with _handlers_unchanged():
    import orbax.checkpoint as ocp  # logs during its import


class Checkpointer:
    """The checkpoints in a folder, the newest `keep` of them."""

    def __init__(self, folder: Path, keep: int = 2):
        self.folder = folder.absolute()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            cleanup_tmp_directories=True,
            # Otherwise a save whose folder cannot be made waits minutes for the folder.
            async_options=ocp.AsyncOptions(create_directories_asynchronously=False),
        )
        self._manager = ocp.CheckpointManager(self.folder, options=options)
        self._sealer = ThreadPoolExecutor(1)
        self._sealing: Future | None = None

    def save(self, step: int, params: Any, rest: Any, progress: dict) -> None:
        """Saves parameters, the rest of the state, and JSON in the background.

        A good checkpoint of the same step stays as it is.
        """
        self.wait()
        if (self.folder / str(step)).exists():
            if check(self.folder / str(step)) is None:
                return
            self._set_aside(step - 1)
        args = ocp.args.Composite(
            params=ocp.args.StandardSave(params),
            rest=ocp.args.StandardSave(rest),
            progress=ocp.args.JsonSave(progress),
        )
        self._manager.save(step, args=args, force=True)
        self._sealing = self._sealer.submit(self._seal, step)

    def wait(self) -> None:
        """Returns when the last save is complete and sealed. Raises UserError if the
        save failed."""
        if self._sealing is not None:
            sealing, self._sealing = self._sealing, None
            with disk_errors.in_one_line(self.folder):
                sealing.result()
            wait("checkpoint sealed")

    def raise_if_failed(self) -> None:
        """Raises UserError if the save in the background has already failed."""
        if self._sealing and self._sealing.done() and self._sealing.exception():
            self.wait()

    def restore(self, params: Any, rest: Any) -> tuple[Any, Any, dict] | None:
        """The newest good checkpoint as (params, rest, progress), or None.

        params, rest: trees of arrays or shapes, as expected in the checkpoint.

        Raises UserError if there are checkpoints but none is good.
        """
        step = newest_good(self.folder)
        wait("checkpoints verified")  # no process moves what another still reads
        self._set_aside(-1 if step is None else step)
        if step is None:
            return None
        args = ocp.args.Composite(
            params=ocp.args.StandardRestore(params),
            rest=ocp.args.StandardRestore(rest),
            progress=ocp.args.JsonRestore(),
        )
        restored = self._manager.restore(step, args=args)
        return restored["params"], restored["rest"], restored["progress"]

    def close(self) -> None:
        self.wait()
        self._sealer.shutdown()
        self._manager.close()

    def _set_aside(self, good: int) -> None:
        """Moves checkpoints newer than the good one to `damaged/`."""
        if jax.process_index() == 0:
            for path in list(self.folder.glob("*")):
                if path.name.isdigit() and int(path.name) > good:
                    aside = self.folder.parent / "damaged"
                    aside.mkdir(exist_ok=True)
                    path.rename(aside / f"{path.name}-{os.getpid()}")
        wait("checkpoints set aside")
        self._manager.reload()

    def _seal(self, step: int) -> None:
        self._manager.wait_until_finished()
        if jax.process_index() == 0:
            manifest.seal(self.folder / str(step))


@_handlers_unchanged()
def restore_params(run: Path, params: Any) -> Any:
    """The parameters that a run ended with, as a tree like `params`.

    They come from the best step if the run selected one, else from the newest good
    step. Each process gets all of them, whatever devices the run was trained on. Raises
    UserError if the run has no checkpoint, or one with other shapes.
    """
    for folder in (run / "best", run / "checkpoints"):
        step = newest_good(folder)
        if step is not None:
            return _restored(folder.absolute() / str(step) / "params", params)
    raise UserError(f"{run}: has no checkpoint yet; train it first")


def _restored(folder: Path, params: Any) -> Any:
    saved = ocp.StandardCheckpointHandler().metadata(folder).tree
    if _shapes(saved) != _shapes(params):
        raise UserError(
            f"{folder}: the parameters do not fit the encoder in config.json; restore "
            "the run's own config.json, or train the run again"
        )
    # As NumPy arrays: otherwise Orbax restores to the devices of the training.
    host = jax.tree.map(lambda array: np.empty(array.shape, array.dtype), params)
    with ocp.StandardCheckpointer() as reader:
        return jax.tree.map(jnp.asarray, reader.restore(folder, host))


def _shapes(tree: Any) -> Any:
    return jax.tree.map(lambda array: tuple(array.shape), tree)


def newest_good(folder: Path) -> int | None:
    """The newest step whose files are as they were written; None if there is none.

    A single checkpoint without a manifest does not count: the run was killed during its
    first save. Raises UserError if there are checkpoints but none is good.
    """
    faults = []
    names = [p.name for p in folder.glob("*") if p.name.isdigit()]
    for step in sorted(map(int, names), reverse=True):
        fault = check(folder / str(step))
        if fault is None:
            return step
        faults.append(fault)
        logger.warning("checkpoint %d is skipped: %s", step, fault)
    if len(faults) > 1 or (faults and (folder / names[0] / MANIFEST).exists()):
        raise UserError(
            f"{folder}: none of the {len(faults)} checkpoints is good ({faults[0]}); "
            "restore them from a copy, or train again in another folder"
        )
    return None


def check(folder: Path) -> str | None:
    """The first fault of a checkpoint's files; None if there is none."""
    try:
        compared = manifest.compare(folder)
    except FileNotFoundError:
        return f"{folder} is not sealed (the run was killed while saving)"
    except ValueError:
        return f"{folder / MANIFEST} is not JSON"
    for name in compared.differing:
        return f"{folder / name} differs from what was saved"
    for name in compared.missing:
        return f"{folder / name} is missing from what was saved"
    return None
