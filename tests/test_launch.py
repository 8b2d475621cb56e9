"""The launchers, with a stub in place of the training program: seconds, no cluster."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
LAUNCH = ROOT / "launch"
SHELL = ["local.sh", "slurm.sbatch", "tpu_vm.sh"]
HARD = ["--config=configs/x.py:smoke", "--a=two words", '--b=it\'s "$HOME"', "--c="]

# Stands where Python would: shows its arguments, then does what --do says.
STUB = """#!/usr/bin/env bash
for argument in "$@"; do
  case $argument in
    --process=*) process=${argument#*=} ;;
    --do=*) action=${argument#*=} ;;
  esac
done
show() { printf '%s\\n' "$@"; }
case ${action-}-${process-} in
  show-*) show "$@" "devices=$JAX_NUM_CPU_DEVICES" "platform=$JAX_PLATFORMS" ;;
  codes-*) exit "$((process + 2))" ;;
  one_dies-1) exit 3 ;;
  one_dies-*) sleep 60 ;;
  one_dies_one_is_deaf-1) until [ -e "$0.deaf" ]; do sleep 0.1; done; exit 3 ;;
  one_dies_one_is_deaf-*) trap '' TERM; touch "$0.deaf"; for i in {1..600}; do sleep 0.1; done ;;
  signal-*)
    trap 'show "got TERM"; exit 75' TERM
    trap 'show "got INT"; exit 130' INT
    show ready
    for i in {1..600}; do sleep 0.1; done ;;
  leave-*) sleep 60 & show "left=$!" ;;
  part-*) printf 'no line end' ;;
esac
"""


@pytest.fixture
def stub(tmp_path):
    path = tmp_path / "stub"
    path.write_text(STUB)
    path.chmod(0o755)
    return path


def run(*command, stub="python", path=None, **environment):
    """What the launcher printed and its exit code; a hang fails after 20 seconds."""
    environment = {
        "PATH": path or os.environ["PATH"],
        "HOME": "/nowhere",
        "PYTHON": str(stub),
    } | environment
    return subprocess.run(
        ["/bin/bash", *map(str, command)],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
    )


def local(count, *arguments, **keywords):
    return run(LAUNCH / "local.sh", count, *arguments, **keywords)


@pytest.mark.parametrize("name", SHELL)
def test_a_launcher_is_bash_and_its_help_says_what_it_runs(name):
    run_check = subprocess.run(["/bin/bash", "-n", LAUNCH / name], check=False)
    assert run_check.returncode == 0
    assert os.access(LAUNCH / name, os.X_OK)
    shown = run(LAUNCH / name, "--help")
    assert shown.returncode == 0
    assert "docjax.main" in shown.stdout
    assert "75" in shown.stdout
    assert "#" not in shown.stdout[:2]
    assert "set -" not in shown.stdout


@pytest.mark.parametrize(
    ("name", "before"), [("local.sh", ["2"]), ("tpu_vm.sh", ["pod", "here-1a"])]
)
def test_missing_arguments_are_one_line_and_code_2(name, before):
    for arguments in ([], before[:-1] + ["--config=x.py"], ["--config=x.py", "y"]):
        shown = run(LAUNCH / name, *arguments)
        assert shown.returncode == 2
        assert len(shown.stderr.splitlines()) == 1
        assert "--help" in shown.stderr


def test_a_dry_run_of_local_processes_is_what_would_run(stub):
    shown = local("--dry-run", 3, "--do=show", *HARD, stub=stub, DEVICES="4")
    lines = shown.stdout.splitlines()
    assert shown.returncode == 0
    assert len(lines) == 3
    for number, line in enumerate(lines):
        assert line.endswith(" &")
        words = split(line.removesuffix("&"))
        assert words[0] == "env"
        assert f"--process={number}" in words
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        shown = done.stdout.splitlines()
        assert shown[:7] == ["-m", "docjax.main", "--do=show", *HARD]
        assert shown[-2:] == ["devices=4", "platform=cpu"]


def test_local_processes_get_every_argument_and_one_coordinator(stub):
    done = local(3, "--do=show", *HARD, stub=stub)
    assert done.returncode == 0
    own = [f"--process={i}" for i in range(3)]
    shown = done.stdout.splitlines()
    assert shown[:7] == ["-m", "docjax.main", "--do=show", *HARD]
    assert re.fullmatch(r"--coordinator=127\.0\.0\.1:2\d{4}|.*:3[01]\d{3}", shown[7])
    assert shown[8:] == ["--processes=3", own[0], "devices=1", "platform=cpu"]
    for number in (1, 2):  # line by line the same, with the number of the process
        lines = [
            line.removeprefix(f"[{number}] ")
            for line in done.stderr.splitlines()
            if line.startswith(f"[{number}] ")
        ]
        assert lines == [own[number] if line == own[0] else line for line in shown]


def test_a_last_line_without_an_end_is_shown(stub):
    done = local(2, "--do=part", stub=stub)
    assert (done.returncode, done.stdout) == (0, "no line end")
    assert done.stderr == "[1] no line end\n"


def test_an_early_death_ends_the_others_and_gives_the_code(stub):
    start = time.monotonic()
    done = local(3, "--do=one_dies", stub=stub)
    assert done.returncode == 3
    assert "process 1 ended with exit code 3" in done.stderr
    assert time.monotonic() - start < 10


def test_a_process_that_ignores_the_end_is_killed(stub):
    start = time.monotonic()
    done = local(2, "--do=one_dies_one_is_deaf", stub=stub, GRACE="2")
    assert done.returncode == 3
    assert 1 < time.monotonic() - start < 10


def test_the_code_is_that_of_the_process_that_ended_first(stub):
    assert local(1, "--do=codes", stub=stub).returncode == 2
    assert local(2, "--do=codes", stub=stub).returncode in (2, 3)


def test_what_a_process_left_running_does_not_outlive_it(stub):
    done = local(2, "--do=leave", stub=stub)
    assert done.returncode == 0
    left = re.findall(r"left=(\d+)", done.stdout + done.stderr)
    assert len(left) == 2
    for pid in left:
        assert not runs(int(pid))


def runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [(signal.SIGTERM, 75, "got TERM"), (signal.SIGINT, 130, "got INT")],
)
def test_a_signal_reaches_every_process_once(stub, number, code, line):
    # Where the tests themselves run in the background, SIGINT is ignored and inherited.
    before = signal.signal(number, signal.default_int_handler)
    launcher = subprocess.Popen(
        [LAUNCH / "local.sh", "3", "--do=signal"],
        env=os.environ | {"PYTHON": str(stub)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    signal.signal(number, before)
    shown = [launcher.stdout.readline() for _ in range(3)]
    assert sorted(shown) == ["[1] ready\n", "[2] ready\n", "ready\n"]
    launcher.send_signal(number)
    rest = launcher.communicate(timeout=20)[0].splitlines()
    assert launcher.returncode == code
    assert sorted(r for r in rest if "got" in r) == [f"[1] {line}", f"[2] {line}", line]


@pytest.fixture
def cluster(tmp_path):
    """A PATH of stubs that write down how they were called; srun ends with SRUN."""
    log = tmp_path / "calls"
    for name in ("srun", "scontrol", "gcloud", "git"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        code = "${SRUN:-0}" if name == "srun" else "0"
        path.write_text(
            f"#!/bin/bash\nprintf '%q ' {name} \"$@\" >> {log}\n"
            f"echo >> {log}\nexit {code}\n"
        )
        path.chmod(0o755)
    log.write_text("")
    return tmp_path / "bin", log


def calls(log):
    return [split(line) for line in log.read_text().splitlines()]


def split(line):
    """The words of a line as bash reads them ($'...' too, which shlex does not)."""
    command = ["/bin/bash", "-c", f"printf '%s\\0' {line}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return shown.stdout.split("\0")[:-1]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 75])
def test_only_code_75_puts_a_slurm_job_back_into_the_queue(cluster, code):
    stubs, log = cluster
    done = run(
        LAUNCH / "slurm.sbatch",
        *HARD,
        path=f"{stubs}:/usr/bin:/bin",
        SLURM_JOB_ID="42",
        SRUN=str(code),
    )
    assert done.returncode == code
    first, *rest = calls(log)
    assert first[0] == "srun"
    assert first[-7:] == ["-m", "docjax.main", "--distributed", *HARD]
    assert rest == ([["scontrol", "requeue", "42"]] if code == 75 else [])


def test_slurm_runs_one_process_a_gpu_and_warns_it_before_the_end():
    directives = dict(
        re.findall(
            r"^#SBATCH --([\w-]+)(?:=(.*))?$", text("slurm.sbatch"), re.MULTILINE
        )
    )
    assert directives["ntasks-per-node"] == directives["gpus-per-node"]
    assert directives["signal"].startswith(
        "TERM@"
    )  # to the processes, not to the shell
    assert "requeue" in directives


@pytest.mark.parametrize(
    ("name", "before"), [("slurm.sbatch", []), ("tpu_vm.sh", ["pod", "here-1a"])]
)
def test_a_dry_run_of_a_cluster_runs_nothing_and_shows_what_would_run(
    cluster, name, before
):
    stubs, log = cluster
    path = f"{stubs}:/usr/bin:/bin"
    command = [LAUNCH / name, *before, *HARD]
    shown = run(command[0], "--dry-run", *command[1:], path=path, SLURM_JOB_ID="42")
    assert shown.returncode == 0
    assert log.read_text() == ""
    run(*command, path=path, SLURM_JOB_ID="42", SRUN="75")
    assert len(calls(log)) > 1
    expected = shown.stdout.replace("# after exit code 75", "")
    assert [split(line) for line in expected.splitlines()] == calls(log)


def test_a_tpu_worker_runs_the_command_with_its_arguments_whole(cluster):
    stubs, log = cluster
    run(LAUNCH / "tpu_vm.sh", "pod", "here-1a", *HARD, path=f"{stubs}:/usr/bin:/bin")
    archive, copy, ssh = calls(log)
    assert archive[:2] == ["git", "archive"]
    assert "scp" in copy
    assert "--worker=all" in copy
    assert "--zone=here-1a" in ssh
    remote = next(w for w in ssh if w.startswith("--command="))
    last = remote.splitlines()[-1].removeprefix("exec .venv/bin/python ")
    assert split(last) == ["-m", "docjax.main", "--distributed", *HARD]


def test_a_tpu_worker_gets_the_settings_of_the_compiler(cluster):
    stubs, log = cluster
    settings = {"XLA_FLAGS": "--a=1 --b='x y'", "JAX_COMPILATION_CACHE_DIR": "/x"}
    path = f"{stubs}:/usr/bin:/bin"
    run(LAUNCH / "tpu_vm.sh", "pod", "here-1a", *HARD, path=path, **settings)
    remote = next(w for w in calls(log)[-1] if w.startswith("--command="))
    last = split(remote.splitlines()[-1])
    words = [f"{name}={value}" for name, value in settings.items()]
    assert last[:5] == ["exec", "env", *words, ".venv/bin/python"]


def test_a_jobset_starts_again_after_code_75_without_limit():
    jobset = yaml.safe_load(text("jobset.yaml"))
    assert jobset["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    [group] = jobset["spec"]["replicatedJobs"]
    job = group["template"]["spec"]
    rules = job["podFailurePolicy"]["rules"]
    assert {"FailJob"} == {rule["action"] for rule in rules}
    assert [r["onExitCodes"]["values"] for r in rules if "onExitCodes" in r] == [[75]]
    assert jobset["spec"]["failurePolicy"]["rules"] == [
        {
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
        }
    ]
    assert job["backoffLimit"] == 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # as the rules require


def test_a_jobset_joins_as_many_processes_as_it_has_pods():
    jobset = yaml.safe_load(text("jobset.yaml"))
    [group] = jobset["spec"]["replicatedJobs"]
    job = group["template"]["spec"]
    [container] = job["template"]["spec"]["containers"]
    name = jobset["metadata"]["name"]
    first = f"{name}-{group['name']}-0-0.{name}"
    assert job["completionMode"] == "Indexed"
    assert f"--processes={job['parallelism']}" in container["command"]
    assert job["parallelism"] == job["completions"]
    assert any(c.startswith(f"--coordinator={first}:") for c in container["command"])
    assert "--process=$(JOB_COMPLETION_INDEX)" in container["command"]
    assert container["command"][:3] == ["python", "-m", "docjax.main"]
    [rule] = [r for r in job["podFailurePolicy"]["rules"] if "onExitCodes" in r]
    assert rule["onExitCodes"]["containerName"] == container["name"]


def text(name):
    return (LAUNCH / name).read_text("utf-8")
