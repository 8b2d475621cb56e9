"""`python -m docjax.main --config=NAME[:VARIANT] [--workdir=DIR]`, and `docjax.train`.

Flags -> config -> train, evaluate, export, or plan a run and print what it takes. NAME is
a shipped config or the path of a config file. The same command on the same workdir
continues a stopped run.

Exit codes: 0 done; 1 failed; 2 a mistake in a flag, a config or the data, a full or
read-only disk, or a workdir in use; 3 the loss or its gradient was not finite; 75
stopped by SIGTERM with everything saved.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from logging import INFO, WARNING, LogRecord, root
from pathlib import Path
from typing import Any

import jax
from absl import flags, logging
from ml_collections import ConfigDict, config_flags

from docjax import config as config_lib
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.inference import local_mesh
from docjax.model.load import load
from docjax.parts import named
from docjax.parts.outside import errors_named
from docjax.recipe import judges, words
from docjax.recipe.components import fit_components
from docjax.recipe.share import with_share, with_this_share
from docjax.recipe.teacher import teacher_of
from docjax.run import command_help, config_flag, corpora, fields, frozen
from docjax.run.fields import RunConfig
from docjax.run.metrics import last_metrics
from docjax.run.parameters import trained_params
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.storage import disk_errors
from docjax.storage.lock import locked
from docjax.storage.processes import join_cluster, wait
from docjax.training import loop, memory, plan, plan_table, sharding, vector_trainer
from docjax.training.callbacks import Callbacks
from docjax.training.word_trainer import WordTrainer
from docjax.types import Trainer

MODES = ["train", "evaluate", "export", "plan"]
FLAGS = flags.FLAGS
CODES = {UserError: 2, loop.NotFinite: 3, loop.Stopped: 75}


def main(argv: list[str]) -> int:
    """Runs one mode and returns the exit code; prints an error in one line."""
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _print_unraisable
    try:
        if command_help.ASKS & set(argv):
            _define_flags()
            print(command_help.text(__doc__, FLAGS, argv))
            return 0
        told = read_flags(argv)
        workdir = Path() if FLAGS.mode == "plan" else _workdir(told)
        if FLAGS.coordinator:
            jax.distributed.initialize(
                FLAGS.coordinator, FLAGS.processes, FLAGS.process
            )
        elif FLAGS.distributed:
            join_cluster()
        elif FLAGS.mode in ("train", "plan"):
            _use_cores(FLAGS.config)
        made_with = shlex.join(["python", "-m", "docjax.main", *_training_flags(argv)])
        metrics = run(FLAGS.config, workdir, FLAGS.mode, made_with, FLAGS.allow)
        if jax.process_index() == 0:
            with disk_errors.in_one_line(Path("standard output")):
                print(json.dumps(metrics), flush=True)
    except tuple(CODES) as error:
        with contextlib.suppress(OSError):  # standard error may lie on the full disk
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        code = next(code for kind, code in CODES.items() if isinstance(error, kind))
        if code != 75:
            # Exit hard: in sys.exit JAX would wait for peers that wait for this
            # process, and Orbax for threads that a full disk has stopped.
            os._exit(code)
        return code
    return 0


def _stop(*_: Any) -> None:
    raise loop.Stopped("stopped: the same command continues with the saved files")


def _print_unraisable(unraisable: Any) -> None:
    """Prints an error that Python cannot raise, unless TensorStore reports each array
    of a save that failed on a full disk: `run` reports the disk."""
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def train(
    config: ConfigDict | str | Path,
    workdir: str | Path,
    *,
    allow: str | Sequence[str] = (),
    callbacks: Sequence[Any] = (),
) -> DocumentModel:
    """Trains a config and returns the model; `workdir` gets all files of the run.

    `python -m docjax.main` with this config and workdir gives the same parameters (bit
    for bit), metrics and report. A stopped run continues. Standard error has the
    metrics of the steps, and what the run chose and kept. In the main thread SIGTERM
    saves and stops the run.

    Args:
      config: a config, such as `docjax.config.load("graph_roberta", variant="small")`
        with your changes; or a shipped name or a config file's path.
      workdir: the run directory, which is made if needed.
      allow: the packages outside of docjax whose parts the config may name, such as
        ("mylab.",).
      callbacks: objects with one or more of the methods `begin`, `step`, `evaluation`
        and `end` (`docjax.types.OnBegin` and its neighbours). One that raises ends the
        run, which is saved.

    Raises:
      UserError: for a mistake in the config or the data, and for a part or callback of
        yours that fails, explained in one line.
      docjax.training.loop.Stopped: after SIGTERM, when everything is saved.
      docjax.training.loop.NotFinite: if the loss or the gradient is not finite.
    """
    if isinstance(config, str | Path):
        config = config_lib.load(config)
    run_directory = Path(workdir)
    _use_cores(config)
    with _choices_logged():
        made_with = "docjax.train(config, workdir)"
        run(config, run_directory, "train", made_with, allow, callbacks)
        return load(run_directory, allow=allow)


@contextlib.contextmanager
def _choices_logged() -> Iterator[None]:
    """Logs what docjax chose and how long it takes, unless the caller has set the level
    of absl's logger; leaves logging and SIGTERM's handler as they were."""
    stop, handlers = signal.getsignal(signal.SIGTERM), list(root.handlers)
    logger = logging.get_absl_logger()
    before = logger.level
    logger.setLevel(before or INFO)
    logger.addFilter(_ours)
    try:
        yield
    finally:
        logger.removeFilter(_ours)
        logger.setLevel(before)
        root.handlers[:] = handlers  # absl adds a handler when it first logs
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, stop)


def _use_cores(config: ConfigDict) -> None:
    """Makes one device of each core that the objective's replicas can use."""
    node = named.plain(config)
    objective = node.get("objective") if isinstance(node, dict) else None
    replicas = objective.get("replicas", 1) if isinstance(objective, dict) else 1
    with contextlib.suppress(RuntimeError):  # JAX already runs and keeps its devices
        sharding.use_cores(replicas)


def run(
    config: ConfigDict,
    workdir: Path,
    mode: str,
    made_with: str = "",
    allow: str | Sequence[str] = (),
    callbacks: Sequence[Any] = (),
) -> dict[str, Any]:
    """Trains and evaluates, or evaluates or exports a trained run, or plans a run.

    Returns the final metrics, or the plan. An export goes to `workdir/export`. The
    report shows the command `made_with`. `allow` and `callbacks` are as in `train`.

    Raises:
      UserError: for a mistake in the config or the data, for a full or read-only disk,
        and if another process works in `workdir`.
    """
    # A wrong field raises before a workdir is made.
    resolved, called = fields.resolve(config, allow), Callbacks(callbacks)
    if mode in ("train", "plan"):
        fields.warn_of_epochs(resolved)
    foreign = errors_named(resolved.allow, f"--mode={mode}")
    if mode == "plan":
        with foreign:
            return _planned(resolved)
    if mode != "train" and not fields.is_run(str(workdir)):
        raise UserError(
            f"--workdir {workdir} has no trained run: train it first, with --mode=train"
        )
    with disk_errors.in_one_line(workdir), locked(workdir), foreign:
        metrics = _run(resolved, workdir, mode, made_with, called)
        called.end(metrics)
        return metrics


def _run(
    config: RunConfig, workdir: Path, mode: str, made_with: str, callbacks: Callbacks
) -> dict[str, Any]:
    memory.keep_freed()
    prepared = _prepared(config, workdir, mode)
    # scikit-learn loads slowly: a mistake in a flag is reported before.
    from docjax.run.scoring import Scoring, plain_data

    ready = Scoring(prepared, local_mesh()).check(mode)
    prepared, scored = frozen.with_vectors(prepared), {}
    if mode == "train":
        mesh = sharding.mesh()
        prepared = with_share(prepared, mesh)
        fit_components(prepared, mesh)
        scoring = Scoring(prepared, mesh, ready, scored=scored)
        loop.train(prepared, _trainer(prepared, mesh), mesh, scoring, callbacks)
    after = trained_params(workdir, prepared.encoder)
    local = Scoring(prepared, local_mesh(), ready, scored=scored)
    metrics = local(after) if mode == "evaluate" else last_metrics(workdir)
    if mode == "evaluate" and not metrics:
        raise UserError(
            "there is nothing to evaluate (no task, or no labelled document): set "
            "tasks in the config, or label documents"
        )
    if jax.process_index() == 0:
        # Imported here because plots and scikit-learn load slowly.
        from docjax.export import write as export
        from docjax.run import report as run_report
        from docjax.run import retrieval_report

        if mode == "export":
            export.export_run(workdir, config.allow)
        plain = plain_data(prepared, local.mesh)
        read = local.scored_data
        found = retrieval_report.gathered(prepared, read(after), metrics)
        page = run_report.write(prepared, read, plain, after, made_with, found)
        logging.info("report: %s", page)
    wait("report")
    return metrics


def _prepared(config: RunConfig, workdir: Path, mode: str) -> Prepared:
    """The parts of the run, without halves if it does not train. Raises UserError for
    mistakes that would otherwise show after hours of reading."""
    prepared = prepare(config, workdir)
    if mode != "train":
        return prepared.changed(halved=None)
    words.fit(prepared, judges.of_run(prepared))
    corpora.check_inputs(prepared.config, prepared.run, prepared.begun)
    _check_sizes(prepared)
    return prepared


def _check_sizes(prepared: Prepared) -> None:
    """Raises UserError for a batch that cannot be filled or a document that is too large,
    before any document is encoded."""
    mesh = sharding.mesh()
    if not prepared.config.reads_words:
        vector_trainer.check_batch(prepared, mesh)
    if frozen.reads_once(prepared):
        width = frozen.vector_width(prepared.encoder)
        vector_trainer.check_vectors(prepared, mesh, width)


def _planned(config: RunConfig) -> dict[str, Any]:
    """The plan of a run, made in a temporary folder and printed as a table."""
    if jax.process_count() > 1:
        raise UserError(
            "--mode=plan plans one process: leave out --distributed and --coordinator"
        )
    from docjax.run.scoring import Scoring  # scikit-learn loads slowly

    memory.keep_freed()
    with tempfile.TemporaryDirectory(prefix="docjax-plan-") as name:
        prepared, mesh = prepare(config, Path(name)), sharding.mesh()
        words.fit(prepared, judges.of_run(prepared))
        _check_sizes(prepared)
        prepared = frozen.with_stand_ins(with_this_share(prepared))
        Scoring(prepared, mesh).check("train")
        found = plan.plan(prepared, mesh, lambda run: _trainer(run, mesh))
    print(plan_table.table(found), file=sys.stderr, flush=True)
    return found


def _trainer(prepared: Prepared, mesh: jax.sharding.Mesh) -> Trainer:
    """The trainer of words or of vectors, as the objective needs."""
    objective = prepared.config.objective.built
    if prepared.config.reads_words:
        return WordTrainer(prepared, objective, mesh)
    teacher = teacher_of(prepared, mesh)
    return vector_trainer.VectorTrainer(prepared, objective, mesh, teacher)


def read_flags(argv: list[str]) -> str:
    """Parses the flags and the config; without documents it is the config's demo.

    Returns what to tell the user of that, or "". Raises UserError for a mistake in them.
    """
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    logging.get_absl_handler().addFilter(_ours)
    _define_flags()
    FLAGS.mark_as_parsed()  # a config logs while the flags are parsed
    argv, told = config_flag.demo_without_source(argv)
    try:
        rest = FLAGS(argv)[1:]
    except config_flag.ERRORS as error:
        raise config_flag.as_user_error(error) from None
    if rest:
        raise UserError(f"{rest[0]!r} belongs to no flag: write --config.NAME=VALUE")
    if FLAGS["config"].value is None:
        names = ", ".join(config_lib.shipped())
        raise UserError(
            f"--config is missing: give {names}, or the path of a config file"
        )
    return told


def _define_flags() -> None:
    """Defines the flags; called by the command only, so an import defines no flags."""
    config_flag.define(FLAGS)
    flags.DEFINE_string(
        "workdir", None, "The run directory; runs/NAME[_VARIANT] by default."
    )
    flags.DEFINE_enum("mode", "train", MODES, "What to do.")
    flags.DEFINE_multi_string(
        "allow",
        [],
        "A package outside of docjax whose parts the config may name, such as mylab.; "
        "may be repeated.",
    )
    flags.DEFINE_bool("distributed", False, "Find the cluster and join it.")
    flags.DEFINE_string("coordinator", None, "HOST:PORT of process 0, to join by hand.")
    flags.DEFINE_integer("processes", 1, "Number of processes, with --coordinator.")
    flags.DEFINE_integer("process", 0, "Number of this process, with --coordinator.")


def _training_flags(argv: list[str]) -> list[str]:
    """The flags of the command that trains: the present flags without --mode."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-mode", "--mode")
    return parser.parse_known_args(argv[1:])[1]


def _workdir(told: str) -> Path:
    """`--workdir`, or runs/NAME[_VARIANT] by default, printed with what there is to tell.

    The demo of graph-roberta, docjax's first system, lies in runs/demo.
    """
    path, variant = config_lib.find(config_flags.get_config_filename(FLAGS["config"]))
    name = "_".join([path.stem, *filter(None, variant.split(","))])
    name = "demo" if told and path.stem == "graph_roberta" else name
    workdir = Path("runs", name) if FLAGS.workdir is None else Path(FLAGS.workdir)
    if FLAGS.process == 0 and (told or FLAGS.workdir is None):
        line = f"--workdir={workdir}" + (f" ({told})" if told else "")
        print(line, file=sys.stderr, flush=True)
    return workdir


def _ours(record: LogRecord) -> bool:
    """Whether to log a record: not the details of other libraries, and not their
    errors of a full disk, which `run` reports."""
    if record.exc_info and disk_errors.cause(record.exc_info[1]):
        return False
    return record.levelno >= WARNING or "docjax" in Path(record.pathname).parts


if __name__ == "__main__":
    sys.exit(main(sys.argv))
