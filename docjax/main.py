"""`python -m docjax.main --config=configs/NAME.py[:VARIANT] --workdir=DIR`.

Flags -> config -> train, evaluate or export. The same command on the same workdir
goes on where it was stopped. Exit codes: 0 done; 1 failed; 2 a mistake in a flag, a
config or the data, a full or read-only disk, or a workdir in use; 3 the loss was not
finite; 75 stopped by SIGTERM with everything saved.
"""

import contextlib
import json
import os
import signal
import sys
from logging import WARNING, LogRecord
from pathlib import Path
from typing import Any

import jax
from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from docjax.errors import UserError
from docjax.run import frozen
from docjax.run.metrics import last_metrics
from docjax.run.prepare import prepare, trained_params
from docjax.storage import disk_errors
from docjax.storage.lock import locked
from docjax.storage.processes import join_cluster, wait
from docjax.training import loop, memory, sharding

MODES = ["train", "evaluate", "export"]
FLAGS = flags.FLAGS
config_flags.DEFINE_config_file("config", None, "A file of configs/, with :VARIANT.")
flags.DEFINE_string("workdir", None, "The run directory.")
flags.DEFINE_enum("mode", "train", MODES, "What to do.")
flags.DEFINE_bool("distributed", False, "Find the cluster and join it.")
flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, to join by hand.")
flags.DEFINE_integer("processes", 1, "How many processes, with --coordinator.")
flags.DEFINE_integer("process", 0, "The number of this one, with --coordinator.")

CODES = {UserError: 2, loop.NotFinite: 3, loop.Stopped: 75}


def main(argv: list[str]) -> int:
    """Runs one mode; returns the exit code. Errors are one line each."""
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _print_unraisable
    try:
        read_flags(argv)
        if FLAGS.coordinator:
            jax.distributed.initialize(
                FLAGS.coordinator, FLAGS.processes, FLAGS.process
            )
        elif FLAGS.distributed:
            join_cluster()
        elif FLAGS.mode == "train":
            sharding.use_cores((FLAGS.config.get("objective") or {}).get("replicas", 1))
        metrics = run(FLAGS.config, Path(FLAGS.workdir), FLAGS.mode)
        if jax.process_index() == 0:
            with disk_errors.in_one_line(Path("standard output")):
                print(json.dumps(metrics), flush=True)
    except tuple(CODES) as error:
        with contextlib.suppress(OSError):  # standard error may lie on the full disk
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        code = next(code for kind, code in CODES.items() if isinstance(error, kind))
        if code != 75:
            # Not sys.exit: JAX would wait for peers that wait for this process, and
            # Orbax for threads that a full disk has stopped.
            os._exit(code)
        return code
    return 0


def _stop(*_: Any) -> None:
    raise loop.Stopped("stopped; the same command goes on from what is saved")


def _print_unraisable(unraisable: Any) -> None:
    """Prints what Python cannot raise, but not the traceback that TensorStore leaves of
    each array when a full disk has failed a save: `run` reports the disk."""
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def run(config: ConfigDict, workdir: Path, mode: str) -> dict[str, Any]:
    """Trains and evaluates, or evaluates or exports a trained run; gives the final
    metrics. An export goes to `workdir/export`.

    Raises:
      UserError: for a mistake in the config or the data, for a full or read-only disk,
        and if another process is at work in `workdir`.
    """
    with disk_errors.in_one_line(workdir), locked(workdir):
        return _run(config, workdir, mode)


def _run(config: ConfigDict, workdir: Path, mode: str) -> dict[str, Any]:
    memory.keep_freed()
    prepared = frozen.with_vectors(prepare(config, workdir))
    # Imported here: scikit-learn takes longer than all the rest, and a mistake in a
    # flag is told without it.
    from docjax.run.scoring import Scoring

    if mode == "train":
        mesh = sharding.mesh()
        loop.train(prepared, mesh, Scoring(prepared, mesh))
    after = trained_params(prepared)
    local = Scoring(prepared, jax.sharding.Mesh(jax.local_devices(), ("data",)))
    metrics = local(after) if mode == "evaluate" else last_metrics(workdir)
    if not metrics:
        raise UserError(
            "there is nothing to evaluate: no task, or no labelled document"
        )
    if jax.process_index() == 0:
        # Imported here: plots and scikit-learn take longer than all the rest, and a
        # mistake in a flag is told without them.
        from docjax.export import write as export
        from docjax.run import report as run_report

        if mode == "export":
            export.export_run(workdir)
        logging.info("report: %s", run_report.write(local, after))
    wait("report")
    return metrics


def read_flags(argv: list[str]) -> None:
    """Parses the flags and the config. Raises UserError for a mistake in them."""
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    logging.get_absl_handler().addFilter(_ours)
    try:
        FLAGS(argv)
    except (KeyError, AttributeError) as error:
        what = " ".join(str(error.args[0]).split())
        raise UserError(f"the config has no field {what}") from None
    except (flags.Error, TypeError, ValueError) as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise UserError(" ".join(dict.fromkeys([lines[0], lines[-1]]))) from None
    except ImportError as error:
        raise UserError(
            f"the config cannot be read: {error}; run docjax in the folder that holds "
            "configs/"
        ) from None
    for name in ("config", "workdir"):
        if FLAGS[name].value is None:
            raise UserError(f"--{name} is missing; see python -m docjax.main --help")
    path = config_flags.get_config_filename(FLAGS["config"]).split(":")[0]
    if not Path(path).is_file():
        raise UserError(f"{path}: no such config file")


def _ours(record: LogRecord) -> bool:
    """Leaves out what other libraries log of every step they take, and of a full disk,
    which `run` reports."""
    if record.exc_info and disk_errors.cause(record.exc_info[1]):
        return False
    return record.levelno >= WARNING or "docjax" in Path(record.pathname).parts


if __name__ == "__main__":
    sys.exit(main(sys.argv))
