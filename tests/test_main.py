"""`python -m docjax.main` as a user runs it: real processes, real files."""

import errno
import functools
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import docjax
from configs import graph_roberta, graph_roberta_classify, retriever_pretraining
from docjax import main
from docjax.config import shipped
from docjax.errors import UserError
from docjax.storage import lock
from docjax.storage.manifest import MANIFEST

ROOT = Path(__file__).resolve().parents[1]
WORDS = "graph node passage vector batch token the of and loss seed view".split()
TINY = {
    "tokenizer.train.vocabulary": 270,
    "encoder.segment.layers": 1,
    "encoder.segment.width": 16,
    "encoder.segment.heads": 2,
    "encoder.segment.hidden": 32,
    "encoder.document.width": 16,
    "limits.segment_tokens": 48,
    "units.words": 10,
    "batch": 8,
    "microbatch": 16,
    "epochs": 2,
    "log_every": 1,
    "checkpoint_every": 1,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """40 documents of two labels and about 4 passages each."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in documents(40)))
    return path


def documents(count: int) -> list[dict]:
    chance = random.Random(0)
    return [
        {
            "id": f"d{i}",
            "text": ". ".join(
                " ".join(chance.choices(WORDS[i % 2 :: 2], k=8)) for _ in range(4)
            ),
            "label": "even" if i % 2 == 0 else "odd",
            "split": "test" if i % 5 == 4 else "train",
        }
        for i in range(count)
    ]


def command(
    corpus: Path, run: Path, config: str = "graph_roberta.py:small", **changes
) -> list[str]:
    fields = TINY | {"source.path": corpus} | changes
    flags = [f"--config.{name}={value}" for name, value in fields.items()]
    return [
        *(sys.executable, "-m", "docjax.main", f"--config=configs/{config}"),
        *(f"--workdir={run}", *flags),
    ]


def fields(recipe, corpus: Path, **changes):
    """The config of `command`, for this process, as a new one takes long to start."""
    config = recipe.get_config("small")
    config.update_from_flattened_dict(TINY | {"source.path": str(corpus)} | changes)
    return config


def call(arguments: list[str], **environment) -> subprocess.CompletedProcess:
    return subprocess.run(
        arguments,
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def fails(arguments: list[str], code: int = 2) -> str:
    """The one line that a failing command prints, without progress and traceback."""
    done = call(arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


def told(corpus: Path, run: Path, planned: bool = False, **changes) -> str:
    """The one line of a mistake; with `planned` the plan has the same line."""
    config = fields(graph_roberta, corpus, **changes)
    with pytest.raises(UserError) as caught:
        main.run(config, run, "train")
    assert "\n" not in str(caught.value)
    if planned:
        with pytest.raises(UserError) as of_plan:
            main.run(config, run, "plan")
        assert str(of_plan.value) == str(caught.value)
    return str(caught.value)


def parameters(run: Path) -> dict[str, str]:
    """sha256 of each parameter of the newest checkpoint."""
    import jax

    import docjax

    flat = jax.tree.flatten_with_path(docjax.load(run).params)[0]
    return {
        jax.tree_util.keystr(path): hashlib.sha256(np.asarray(leaf)).hexdigest()
        for path, leaf in flat
    }


def losses(run: Path) -> list[dict]:
    """metrics.jsonl without what time decides."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in x.items() if not k.startswith("time/")} for x in lines]


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "trained"
    done = call(command(corpus, run))
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["step"] == 8 and "eval/clustering/nmi" in last
    return run


def test_a_run_leaves_what_the_design_says(trained):
    assert {"config.json", "metrics.jsonl", "checkpoints", "tokenizer.json"} <= set(
        os.listdir(trained)
    )
    page = (trained / "report" / "index.html").read_text()
    assert "before training" in page and "data:image/png" in page
    assert list(trained.glob("figures/*.png"))
    names = {name for line in losses(trained) for name in line}
    wanted = "train/loss train/in_batch_accuracy train/negatives train/grad_norm"
    assert set(wanted.split()) | {"data/padding"} <= names


def test_two_processes_train_as_one(corpus, trained, tmp_path):
    run = tmp_path / "two"
    arguments = ["launch/local.sh", "2", *command(corpus, run)[3:]]
    done = call(arguments, PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    found, expected = (
        [line["train/loss"] for line in losses(one) if "train/loss" in line]
        for one in (run, trained)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert (run / "report" / "index.html").exists()


def test_training_lowers_the_loss(trained):
    found = [x["train/loss"] for x in losses(trained) if "train/loss" in x]
    assert len(found) == 8
    assert np.median(found[4:]) < np.median(found[:4])


def test_kill_9_at_random_moments_changes_nothing(
    corpus, trained, tmp_path, one_device, no_report, caplog
):
    run = tmp_path / "killed"
    seconds = random.Random(1)
    for _ in range(2):
        process = subprocess.Popen(
            command(corpus, run),
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait_for_checkpoint(run, process)
        time.sleep(seconds.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with caplog.at_level("INFO", "docjax"):
        main.run(fields(graph_roberta, corpus), run, "train")
    assert re.search(r"resumed at step [1-8]\n", caplog.text), caplog.text
    assert parameters(run) == parameters(trained)
    assert losses(run) == losses(trained)


def test_kill_9_changes_nothing_of_trained_words(
    tmp_path, one_device, no_report, caplog
):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    changes = dict(steps=12, checkpoint_every=1)
    flags = [f"--config.{name}={value}" for name, value in changes.items()]
    name = "--config=configs/deca.py:smoke"
    with subprocess.Popen(
        [sys.executable, "-m", "docjax.main", name, f"--workdir={killed}", *flags],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _wait_for_checkpoint(killed, process)
        process.send_signal(signal.SIGKILL)
    config = docjax.config.load("deca", variant="smoke")
    config.update(changes)
    main.run(config, whole, "train")
    with caplog.at_level("INFO", "docjax"):
        main.run(config, killed, "train")
    assert re.search(r"resumed at step \d+\n", caplog.text), caplog.text
    assert parameters(killed) == parameters(whole)
    assert losses(killed) == losses(whole)


def _wait_for_checkpoint(run: Path, process: subprocess.Popen) -> None:
    """Returns when there is a newer checkpoint than at the call, or at the end."""
    before = steps(run)[-1:]
    while steps(run)[-1:] == before and process.poll() is None:
        time.sleep(0.02)


def steps(run: Path) -> list[int]:
    """The steps of a run's checkpoints that are complete."""
    names = [path.parent.name for path in run.glob(f"checkpoints/*/{MANIFEST}")]
    return sorted(int(name) for name in names if name.isdigit())


def _wait_for_step(run: Path, process: subprocess.Popen) -> None:
    """Returns when two steps are logged, or at the end."""
    path = run / "metrics.jsonl"
    while process.poll() is None:
        if path.exists() and path.read_text().count("train/loss") > 1:
            return
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)]
)
def test_a_signal_saves_and_the_same_command_goes_on(
    number, code, corpus, trained, tmp_path, one_device, no_report, caplog
):
    run = tmp_path / "stopped"
    arguments = command(corpus, run, checkpoint_every=100)
    with subprocess.Popen(
        ["env", "--default-signal=SIGINT", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        _wait_for_step(run, process)
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == code, rest
    assert "Traceback" not in rest
    assert "stopping after this step; Ctrl-C once more ends at once\n" in rest
    assert re.match(r"stopped at step \d of 8, saved in ", rest.splitlines()[-1])
    (step,) = steps(run)
    with caplog.at_level("INFO", "docjax"):
        main.run(fields(graph_roberta, corpus, checkpoint_every=100), run, "train")
    assert f"resumed at step {step}\n" in caplog.text
    assert parameters(run) == parameters(trained)


def test_a_flipped_bit_is_found_and_the_checkpoint_before_is_taken(
    corpus, trained, tmp_path, one_device, no_report, caplog
):
    run = tmp_path / "flipped"
    shutil.copytree(trained, run)
    step = run / "checkpoints" / str(steps(run)[-1])
    largest = max(step.rglob("*"), key=lambda p: p.stat().st_size if p.is_file() else 0)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 1
    largest.write_bytes(data)
    with caplog.at_level("INFO", "docjax"):
        main.run(fields(graph_roberta, corpus), run, "train")
    assert "differs from what was saved" in caplog.text
    assert f"resumed at step {steps(trained)[-2]}\n" in caplog.text
    assert parameters(run) == parameters(trained)


def test_evaluate_gives_the_metrics_of_the_trained_run(corpus, trained, one_device):
    found = main.run(fields(graph_roberta, corpus), trained, "evaluate")
    assert found == {k: v for k, v in losses(trained)[-1].items() if k != "step"}


def test_fine_tuning_starts_from_a_run_and_keeps_the_best_epoch(
    corpus, trained, tmp_path, one_device, no_report
):
    run = tmp_path / "classify"
    changes = dict(init=str(trained), evaluate_every=2)
    metrics = main.run(fields(graph_roberta_classify, corpus, **changes), run, "train")
    assert "eval/classification/accuracy" in metrics
    assert any("validation/classification/accuracy" in x for x in losses(run))
    texts = [json.loads(line) for line in corpus.read_text().splitlines()][:8]
    labels = docjax.load(run, truncate_dim=3).classify([t["text"] for t in texts])
    assert set(labels) <= {one["label"] for one in texts}
    assert len(list((run / "best").glob("[0-9]*"))) == 1
    # Another tokenizer would give the trained rows to other words.
    assert (run / "tokenizer.json").read_bytes() == (
        trained / "tokenizer.json"
    ).read_bytes()


def test_retrieval_pretraining_runs(corpus, tmp_path, one_device, no_report):
    config = fields(retriever_pretraining, corpus, epochs=1)
    main.run(config, tmp_path / "run", "train")
    assert any("train/negatives" in line for line in losses(tmp_path / "run"))


BAD = {
    "the same text twice without dropout": (
        {
            "views": {"fn": "docjax.views.twice.Twice"},
            "encoder.segment.dropout": 0.0,
        },
        "differ by dropout alone, but encoder.segment.dropout is 0: give 0.1",
    ),
    "fewer documents in a batch than pairs of each": (
        {
            "objective": {
                "fn": "docjax.objectives.contrastive_tension.contrastive_tension",
                "negatives": 8,
            },
            "batch": 8,
        },
        "objective.negatives is 8 in batches of 8: give at least 1, and a larger --config",
    ),
    "a missing file": ({"source.path": "none.jsonl"}, "none.jsonl: no such file"),
    "an unknown fn": (
        {"objective.fn": "docjax.objectives.infonce.info"},
        "docjax.objectives.infonce has no 'info'; it has candidates_of, infonce",
    ),
    "a foreign fn": ({"objective.fn": "subprocess.Popen"}, "is not under docjax."),
    "an unknown keyword": ({"objective.temprature": 1}, "temprature"),
    "a batch of more documents than there are": (
        {"batch": 64},
        "batch 64 is larger than the 32 training examples",
    ),
    "documents of one passage": (
        {"units.words": 1000, "limits.segment_tokens": 500},
        "no training example has documents of 2 units or more",
    ),
    "a tokenizer of other weights": (
        {"tokenizer.path": "TOKENIZER", "encoder.segment.vocabulary": 100},
        "table has 100 rows",
    ),
    "a position table shorter than the limit": (
        {"encoder.segment.positions": 40},
        "segments have 48 tokens, but the encoder has room for 38: lower limits.segment",
    ),
    "a micro-batch larger than memory": (
        {"microbatch": 2**26},
        "does not fit in memory",
    ),
    "an init that is not there": ({"init": "no/such/folder"}, "no/such/folder"),
    "an interval of nothing": (
        {"log_every": 0},
        "log_every 0 is not a whole number from 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_with_the_mend(case, corpus, trained, tmp_path):
    changes, message = BAD[case]
    tokenizer = str(trained / "tokenizer.json")
    changes = {k: tokenizer if v == "TOKENIZER" else v for k, v in changes.items()}
    planned = case in ("an unknown keyword", "a missing file") or "batch" in case
    assert message in told(corpus, tmp_path / "run", planned, **changes)


def test_bad_lines_name_file_line_and_reason(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "1", "text": "fine"}\n{"id": "2", "text": \n')
    assert f"{bad}, line 2: bad JSON" in told(bad, tmp_path / "run")


def test_an_empty_corpus_is_a_mistake(tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert "empty corpus" in told(empty, tmp_path / "run")


def test_a_run_does_not_continue_with_another_config(corpus, trained):
    line = told(corpus, trained, seed=1)
    assert "is a run of another config: seed" in line and "--workdir" in line


def test_damaged_checkpoints_are_an_error(corpus, trained, tmp_path):
    run = tmp_path / "damaged"
    shutil.copytree(trained, run)
    manifests = list(run.glob("checkpoints/*/manifest.json"))
    for manifest in manifests:
        (manifest.parent / "params" / "_METADATA").write_bytes(b"")
    line = told(corpus, run)
    assert f"none of the {len(manifests)} checkpoints is good" in line


def test_a_loss_that_is_not_finite_stops_with_step_and_documents(corpus, tmp_path):
    line = fails(
        command(corpus, tmp_path / "run", **{"objective.temperature": 1e-45}), code=3
    )
    assert "step 1" in line and "documents: d" in line


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    corpus, trained, tmp_path, one_device, no_report
):
    """A limit of file sizes stands for the disk: the first checkpoint is too large."""
    run = tmp_path / "full"
    limited = ["bash", "-c", 'ulimit -f 24 && exec "$@"', "bash"]
    done = call([*limited, *command(corpus, run)])
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    (line,) = [x for x in lines if x.startswith(("UserError", "error"))]
    assert "File too large" in line and "ulimit -f" in line and lines[-1] == line
    assert steps(run) == []
    main.run(fields(graph_roberta, corpus), run, "train")
    assert parameters(run) == parameters(trained)
    assert losses(run) == losses(trained)


def test_a_read_only_workdir_is_one_line(tmp_path, monkeypatch):
    def read_only(path, *_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(lock, "open", read_only, raising=False)
    with pytest.raises(UserError, match="Read-only file system.*make it writable"):
        main.run(graph_roberta.get_config("smoke"), tmp_path, "train")


def test_a_full_standard_output_is_one_line(corpus, trained):
    arguments = [*command(corpus, trained), "--mode=evaluate"]
    done = call(["bash", "-c", '"$@" > /dev/full', "bash", *arguments])
    assert done.returncode == 2 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("UserError: standard output: cannot be written (No space")


def test_a_second_command_on_a_workdir_is_told_who_is_at_work_there(corpus, tmp_path):
    with lock.locked(tmp_path / "run"):
        line = fails(command(corpus, tmp_path / "run"))
    assert f"process {os.getpid()}, since" in line and "another --workdir" in line


def test_help_shows_flags_and_configs_or_the_text_of_one_config():
    command = [sys.executable, "-m", "docjax.main", "--help"]
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    shown = run(command).stdout
    assert "--coordinator: HOST:PORT" in shown and "--mode: <train|evaluate" in shown
    assert all(f"  {name}: " in shown for name in shipped())
    shown = run([*command, "--config=siamese:pairs"]).stdout
    assert shown.startswith("Siamese encoders: ")


def test_missing_flags_are_named():
    assert "--config is missing" in fails([sys.executable, "-m", "docjax.main"])


def test_an_unknown_config_lists_the_shipped_ones():
    line = fails([sys.executable, "-m", "docjax.main", "--config=graph_robert:small"])
    assert "config 'graph_robert' is neither a Python file" in line
    assert "colde, contrastive_tension, contriever, deca, deca_bert, docsplit" in line


def test_a_shipped_config_trains_from_any_folder_in_a_workdir_of_its_name(tmp_path):
    command = ["-m", "docjax.main", "--config=deca:smoke,simsiam", "--config.steps=1"]
    command.append("--config.objective.replicas=2")
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "--workdir=runs/deca_smoke_simsiam"
    assert re.search(r"replicas 2: the CPU is [12] devices", done.stderr)
    assert (tmp_path / "runs/deca_smoke_simsiam/report/index.html").exists()


TRAIN = """
import json, logging, signal, sys
import absl.flags
import docjax

def state():
    root = logging.getLogger()
    return (
        signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT),
        root.level, list(root.handlers), logging.getLogger("docjax").level, sys.stderr,
        sys.unraisablehook, absl.flags.FLAGS.is_parsed(), "config" in absl.flags.FLAGS, "workdir" in absl.flags.FLAGS,
    )

config = docjax.config.load("graph_roberta", variant="small")
config.update_from_flattened_dict(json.loads(sys.argv[1]))
before = state()
model = docjax.train(config, sys.argv[2])
assert state() == before, (before, state())
assert isinstance(model, docjax.DocumentModel)
assert model.fingerprint() == docjax.load(sys.argv[2]).fingerprint()
config.batch = 10**6
try:
    docjax.train(config, sys.argv[2] + "-other")
except docjax.UserError as error:
    assert "is larger than the" in str(error)
else:
    raise AssertionError("a batch larger than the corpus was trained on")
assert state() == before, (before, state())
"""


def test_training_from_python_is_training_by_command(corpus, trained, tmp_path):
    given = json.dumps(TINY | {"source.path": str(corpus)})
    done = call([sys.executable, "-c", TRAIN, given, str(tmp_path / "run")])
    assert done.returncode == 0, done.stderr
    assert parameters(tmp_path / "run") == parameters(trained)
    assert losses(tmp_path / "run") == losses(trained)
    config = (tmp_path / "run/config.json").read_text()
    assert config == (trained / "config.json").read_text()
    page = (tmp_path / "run/report/index.html").read_text()
    assert "docjax.train(config, workdir)" in page


def test_training_from_another_thread_leaves_signals_alone(
    corpus, tmp_path, one_device
):
    config = fields(graph_roberta, corpus, steps=1, epochs=None)
    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as pool:
        model = pool.submit(docjax.train, config, tmp_path / "run").result()
    assert model.encode("a graph").shape == (16,)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_field_that_is_unknown_is_one_line_from_python_too(tmp_path):
    config = graph_roberta.get_config("smoke")
    config.bath = 3
    with pytest.raises(
        UserError, match="unknown fields bath; the fields of a"
    ) as error:
        docjax.train(config, tmp_path / "run")
    assert "\n" not in str(error.value) and not (tmp_path / "run").exists()


def test_a_number_of_replicas_that_is_none_is_one_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from docjax.config import load\n"
        "def get_config():\n"
        "    config = load('deca', 'smoke')\n"
        "    with config.ignore_type():\n"
        "        config.objective.replicas = '2'\n"
        "    return config\n"
    )
    name, run = f"--config={path}", f"--workdir={tmp_path / 'run'}"
    done = call([sys.executable, "-m", "docjax.main", name, run])
    assert done.returncode == 2 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert re.match(r"UserError: objective\.replicas '2' is not a whole number", last)
