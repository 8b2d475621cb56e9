"""`python -m docjax.main --config=NAME[:VARIANT] [--workdir=DIR]`, and `docjax.train`.

Flags -> config -> train, evaluate, export, or plan a run and print what it takes. NAME is
a shipped config or the path of a config file. The same command on the same workdir
continues a stopped run.

Exit codes: 0 done; 1 failed; 2 a mistake in a flag, a config or the data, a full or
read-only disk, or a workdir in use; 3 the loss or its gradient was not finite; 75
stopped by SIGTERM, and 130 by Ctrl-C, with everything saved.
"""

from docjax.progress import session

if __name__ == "__main__":  # JAX takes seconds to import
    session.begin()

import argparse
import contextlib
import json
import logging
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import jax
from absl import flags
from ml_collections import ConfigDict, config_flags

from docjax import config as config_lib
from docjax.errors import UserError, in_python
from docjax.model.document_model import DocumentModel
from docjax.model.inference import local_mesh
from docjax.model.load import load
from docjax.parts import named
from docjax.parts.outside import errors_named
from docjax.progress.bars import bar
from docjax.progress.signals import Stopped
from docjax.recipe import judges, words
from docjax.recipe.components import fit_components
from docjax.recipe.share import with_share, with_this_share
from docjax.recipe.teacher import teacher_of
from docjax.run import command_help, config_flag, corpora, fields, frozen, in_memory
from docjax.run.fields import RunConfig
from docjax.run.in_memory import Columns
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
CODES = {UserError: 2, loop.NotFinite: 3}


def main(argv: list[str]) -> int:
    """Runs one mode and returns the exit code; prints an error in one line."""
    try:
        with session.under_way():
            _main(argv)
    except Stopped as stopped:
        _print_last(stopped)
        if jax.distributed.is_initialized():  # the others wait for this process
            return stopped.code
        os._exit(stopped.code)  # Python would end while threads compile, and crash
    except tuple(CODES) as error:
        _print_last(f"{type(error).__name__}: {error}")
        # Exit hard: in sys.exit JAX would wait for peers that wait for this process, and
        # Orbax for threads that a full disk has stopped.
        os._exit(next(code for kind, code in CODES.items() if isinstance(error, kind)))
    return 0


def _print_last(line: object) -> None:
    with contextlib.suppress(OSError):  # standard error may lie on the full disk
        print(line, file=sys.stderr, flush=True)


def _main(argv: list[str]) -> None:
    if command_help.ASKS & set(argv):
        _define_flags()
        print(command_help.text(__doc__, FLAGS, argv))
        return
    told = read_flags(argv)
    workdir = Path() if FLAGS.mode == "plan" else _workdir(told)
    if FLAGS.coordinator:
        jax.distributed.initialize(FLAGS.coordinator, FLAGS.processes, FLAGS.process)
    elif FLAGS.distributed:
        join_cluster()
    elif FLAGS.mode in ("train", "plan"):
        _use_cores(FLAGS.config)
    if FLAGS.process or (FLAGS.distributed and jax.process_index()):
        logging.getLogger("docjax").setLevel(logging.WARNING)  # process 0 says the rest
    made_with = shlex.join(["python", "-m", "docjax.main", *_training_flags(argv)])
    metrics = run(FLAGS.config, workdir, FLAGS.mode, made_with, FLAGS.allow)
    if jax.process_index() == 0:
        with disk_errors.in_one_line(Path("standard output")):
            print(json.dumps(metrics), flush=True)


def train(
    documents: Any = None,
    workdir: str | Path | None = None,
    *,
    config: ConfigDict | str | Path | None = None,
    init: str | Path | None = None,
    allow: str | Sequence[str] = (),
    callbacks: Sequence[Any] = (),
    **columns: Unpack[Columns],
) -> DocumentModel:
    """Trains on documents in memory, or by a config, and returns the model.

        docjax.train(texts=texts, labels=labels, titles=titles)
        docjax.train(table, init="sentence-transformers/all-MiniLM-L6-v2")
        docjax.train("graph_roberta:small", "runs/small")

    `docjax train` with this config and workdir gives the same parameters (bit for bit),
    metrics and report. A stopped run continues; Ctrl-C and SIGTERM save and stop it. What
    the run does and chooses goes to standard error, or to the handlers of a program's
    own logging, from the logger "docjax".

    Args:
      documents: a table of pandas, polars, pyarrow or datasets with a column text (and
        title, label, id, split, query, links if there are any), or a list of texts,
        dicts or Documents. In their place it may be the config.
      workdir: the run directory, which is made if needed. None: a folder in runs/, which
        is printed; its name depends on documents and config, so that the same call
        continues a stopped run.
      config: a config, such as `docjax.config.load("graph_roberta", variant="small")`
        with your changes; or a shipped name or a config file's path. None:
        "graph_roberta:frozen" with `init`, and "graph_roberta:words" without.
      init: a Hugging Face name or folder or another run to start from.
      allow: packages outside of docjax that the config may name, such as ("mylab.",).
      callbacks: objects with methods `begin`, `step`, `evaluation` or `end`
        (`docjax.types.OnBegin` ...). One that raises ends the run, which is saved.
      columns: `texts`, `labels` and `titles` in place of `documents`; None where a
        document has none. The run directory keeps a copy.

    Raises:
      UserError: for a mistake in the arguments, the config, the data or your own part.
      docjax.training.loop.Stopped, NotFinite: after Ctrl-C or SIGTERM (it is a
        KeyboardInterrupt); if the loss or the gradient is not finite.
    """
    with in_python():
        made, folder = in_memory.given(documents, workdir, config, init, columns)
        _use_cores(made)
        with session.under_way():
            made_with = "docjax.train(config, workdir)"
            run(made, folder, "train", made_with, allow, callbacks)
            return load(folder, allow=allow)


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
    with bar("preparation"):
        prepared = _prepared(config, workdir, mode)
        # scikit-learn loads slowly: a mistake in a flag is reported before.
        from docjax.run.scoring import Scoring

        ready = Scoring(prepared, local_mesh()).check(mode)
        scored: dict[str, Any] = {}  # what was scored last, for the report
        prepared = frozen.with_vectors(prepared)
        if mode == "train":
            mesh = sharding.mesh()
            prepared = with_share(prepared, mesh)
            fit_components(prepared, mesh)
            trainer = _trainer(prepared, mesh)
    if mode == "train":
        scoring = Scoring(prepared, mesh, ready, scored=scored)
        loop.train(prepared, trainer, mesh, scoring, callbacks)
    after = trained_params(workdir, prepared.encoder)
    local = Scoring(prepared, local_mesh(), ready, scored=scored)
    metrics = last_metrics(workdir)
    if mode == "evaluate":
        with bar("scores"):
            metrics = local(after)
    if mode == "evaluate" and not metrics:
        raise UserError(
            "there is nothing to evaluate (no task, or no labelled document): set "
            "tasks in the config, or label documents"
        )
    if mode == "export" and jax.process_index() == 0:
        from docjax.export import write as export  # loads slowly

        with bar("export"):
            export.export_run(workdir, config.allow)
    with bar("report") as shown:
        if jax.process_index() == 0:
            shown.note = str(_report(local, after, metrics, made_with))
        wait("report")
    return metrics


def _report(scoring: Any, params: Any, metrics: dict[str, Any], made_with: str) -> Path:
    """Writes the report of a run that ended with `params`; returns its page."""
    # Imported here because plots and scikit-learn load slowly.
    from docjax.run import report, retrieval_report
    from docjax.run.scoring import plain_data

    prepared = scoring.prepared
    plain = plain_data(prepared, scoring.mesh)
    read = scoring.scored_data
    found = retrieval_report.gathered(prepared, read(params), metrics)
    return report.write(prepared, read, plain, params, made_with, found)


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
    with bar("plan"), tempfile.TemporaryDirectory(prefix="docjax-plan-") as name:
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


if __name__ == "__main__":
    sys.exit(main(sys.argv))
