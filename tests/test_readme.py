"""The README and docs/commands.md: their examples, as a reader runs them."""

import csv
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from docjax import cli
from docjax.serve import run as server

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
NAME = "sentence-transformers/all-MiniLM-L6-v2"
TEXTS = {"even": "The gradient flows back.", "odd": "A graph has nodes and edges."}
COMMANDS = (ROOT / "docs/commands.md").read_text("utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_ten_lines_print_what_the_readme_shows(minilm, capsys):
    [code], [shown] = blocks("python"), blocks("text")
    assert len(code.splitlines()) <= 10
    exec(code.replace(NAME, str(minilm)), {})  # noqa: S102
    assert capsys.readouterr().out == shown


def test_the_two_commands_run(tmp_path):
    """In processes of their own, with a few steps in place of the recipe's."""
    with open(tmp_path / "articles.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["title", "text", "label"])
        for number in range(12):
            for label, text in TEXTS.items():
                rows.writerow([f"{label} {number}", f"{text} Number {number}.", label])
    train, search = blocks("sh")[0].splitlines()
    quick = f"{train} --config.steps=2 --config.checkpoint_every=2"
    assert b'"eval/' in typed(quick, tmp_path)
    assert (tmp_path / "runs/mine/report/index.html").exists()
    assert typed(search, tmp_path).startswith(b"football injuries\n")


def typed(command: str, folder: Path) -> bytes:
    """What a command prints."""
    words = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.check_output(words, cwd=folder, stderr=subprocess.DEVNULL)


def test_the_readme_is_short_and_names_few_flags():
    assert len(README.splitlines()) <= 90
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    parts = [
        part for part in prose.split("\n\n") if not part.startswith(("#", "|", "!"))
    ]
    sentences = [each for part in parts for each in re.split(r"(?<=[.:?])\s", part)]
    long = [each for each in sentences if len(each.split()) > 30]
    assert long == []
    assert len(set(re.findall(r"--[a-z][\w.-]*", README))) <= 12


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
    [commands] = blocks("sh", COMMANDS)
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
