"""The guide's task from outside of docjax: evaluated, refused, and drawn in a report."""

import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import docjax
from docjax import cli
from docjax.explain import run_page
from docjax.run import task_report

GUIDE = Path(__file__).parents[2] / "docs/add-a-part.md"
NAME = "mylab.hubness.Hubness"


@pytest.fixture
def mylab(tmp_path, monkeypatch) -> None:
    """The package of the guide's section on tasks."""
    section = GUIDE.read_text("utf-8").split("\n## A task\n")[1]
    [code, *_] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (tmp_path / "mylab").mkdir()
    (tmp_path / "mylab/hubness.py").write_text(code, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    for name in ("mylab", "mylab.hubness"):
        sys.modules.pop(name, None)


@pytest.fixture
def texts(tmp_path) -> Path:
    words = "soup bread oven rocket orbit planet goal match player".split()
    records = [{"id": word, "text": f"{word} and {word}"} for word in words]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def evaluated(capsys, *words) -> tuple[int, str, str]:
    code = cli.main(["evaluate", *map(str, words)])
    out, error = capsys.readouterr()
    return code, out, error


def test_the_task_of_the_guide_is_evaluated(mylab, texts, tiny, capsys):
    given = tiny, "--task", NAME, "--allow", "mylab.", "--data", texts
    code, out, _ = evaluated(capsys, *given, "--neighbours", 2)
    found = json.loads(out)
    ids = [json.loads(line)["id"] for line in texts.read_text().splitlines()]
    vectors = docjax.load(tiny).encode([f"{name} and {name}" for name in ids])
    counts = np.zeros(len(ids))
    for row, vector in enumerate(vectors):
        cosines = vectors @ vector / np.linalg.norm(vectors, axis=1)
        cosines[row] = -np.inf
        counts[np.argsort(-cosines)[:2]] += 1
    away = counts - counts.mean()
    skewness = np.mean(away**3) / np.mean(away**2) ** 1.5
    assert code == 0 and set(found) == {"eval/hubness/skewness", "eval/hubness/never"}
    assert found["eval/hubness/skewness"] == pytest.approx(skewness)
    assert found["eval/hubness/never"] == pytest.approx(np.mean(counts == 0))


def test_mistakes_with_it_are_one_line(mylab, texts, tiny, capsys):
    given = tiny, "--task", NAME, "--data", texts
    for words, message in (
        (given, f"--task {NAME}: code outside of docjax is not imported unless"),
        ((*given, "--allow", "mylab."), "9 test documents have no 10 neighbours each"),
        (
            (*given, "--allow", "mylab.", "--shots", 3),
            f"--shots is an option of few_shot and shots; leave it out for {NAME}",
        ),
        (
            (*given, "--allow", "mylab.", "--neighbours", -1),
            "hubness.neighbours -1 is not a whole number from 1",
        ),
    ):
        code, out, error = evaluated(capsys, *words)
        assert code == 2 and not out and message in error
        assert error.count("\n") == 1


def test_its_options_are_in_the_help_of_the_command(mylab, capsys):
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "--task", NAME, "--allow=mylab.", "--help"])
    help = " ".join(capsys.readouterr().out.split())
    assert "How unevenly documents are among the nearest documents of others." in help
    assert "--neighbours NEIGHBOURS nearest documents of each document (10)" in help
    assert "--shots" not in help and "--text-column" in help


def test_an_option_that_the_command_has_too_is_refused(mylab, tmp_path, capsys):
    file = tmp_path / "mylab/hubness.py"
    file.write_text(file.read_text("utf-8").replace("neighbours", "segments"), "utf-8")
    code, out, error = evaluated(capsys, "--task", NAME, "--allow=mylab.", "--help")
    assert code == 2 and not out and error.count("\n") == 1
    assert f"{NAME} has an option --segments, and so has the command" in error


def test_the_report_draws_its_table(mylab, tmp_path):
    tasks = {"hubs": importlib.import_module("mylab.hubness").Hubness()}
    rows = {
        "before training": {"eval/hubs/skewness": 1.25, "eval/hubs/never": 0.5},
        "after training": {"eval/hubs/skewness": 0.75, "eval/hubs/never": 0.25},
    }
    given = task_report.published({"another": {"skewness": 2.5}}, tasks)
    tables = task_report.shown(task_report.tables(tasks, rows, given), tmp_path)
    scores = task_report.scores(tasks, rows)
    report = run_page.Report("run", config={}, scores=scores, tables=tables)
    page = run_page.write(tmp_path, report).read_text("utf-8")
    for words in (
        "<h3>Hubness</h3>",
        "<td>0.750</td>",
        "<td>2.500</td>",
        "another (published)",
        "Lower is better",
    ):
        assert words in page, words
