"""The examples of the README, as a reader runs them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from docjax import cli
from docjax.serve import run as server

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
TEXTS = {"even": "The gradient flows back.", "odd": "A graph has nodes and edges."}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_examples_run(run):
    first, second = blocks("python")
    found: dict = {}
    exec(first.replace("runs/demo", str(run)), found)  # noqa: S102
    assert found["vectors"].shape == (2, 32)
    assert found["queries"].shape == (1, 32)
    assert found["stats"]["documents"] == 2
    comparison = found["comparison"]
    assert comparison.segments.shape == (1, 1) and comparison.similarity != 0
    assert [side.segments[0].text for side in (comparison.a, comparison.b)] == [
        "A long text ...",
        "Another long text ...",
    ]
    exec(second.replace("runs/demo", str(run)), found)  # noqa: S102
    assert isinstance(found["classifier"], Pipeline)
    texts = list(TEXTS.values())
    fitted = found["classifier"].fit(texts * 5, list(TEXTS) * 5)
    assert fitted.predict(texts).tolist() == list(TEXTS)


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """The files that the commands name."""
    lines = [
        {"id": f"{label}{i}", "text": f"{text} {i}", "label": label, "split": split}
        for i in range(4)
        for split in ["test" if i == 3 else "train"]
        for label, text in TEXTS.items()
    ]
    written = "".join(json.dumps(line) + "\n" for line in lines)
    for name in ("corpus.jsonl", "labelled.jsonl", "queries.jsonl"):
        (tmp_path / name).write_text(written)
    for name, text in zip(("a.txt", "b.txt"), TEXTS.values(), strict=True):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run(run, files, monkeypatch, capsys):
    monkeypatch.setattr(server, "run", lambda *_, **__: print("served"))
    [commands] = blocks("sh")
    for command in commands.splitlines():
        words = shlex.split(command.replace("runs/demo", str(run)))
        assert words[0] == "docjax"
        assert cli.main(words[1:]) == 0, command
    assert np.load(files / "vectors.npy").shape == (8, 32)
    assert len((files / "found.trec").read_text().splitlines()) == 64
    assert "<html" in (files / "why.html").read_text()
    assert "model.safetensors" in {
        path.name for path in (files / "exported").rglob("*")
    }
    out = capsys.readouterr().out
    assert "eval/classification/accuracy" in out and "served" in out
