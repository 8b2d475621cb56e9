"""The examples of docs/python.md and docs/search.md, as a reader runs them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docjax import cli

DOCS = Path(__file__).resolve().parents[1] / "docs"
NAME = "sentence-transformers/all-MiniLM-L6-v2"
ARTICLES = [
    {
        "id": "a1",
        "title": "Knees on grass",
        "text": "Players tear the ligaments of a knee when studs stick in wet grass and "
        "the body turns.",
    },
    {
        "id": "a2",
        "title": "A quiet transfer window",
        "text": "The club sold two strikers and bought none. Its doctor said that the "
        "squad is fit for the season.",
    },
    {"id": "a3", "title": "Sand", "text": "Rivers carry sand to the sea."},
]
TOPICS = {"sea": "river sand sea wave boat", "body": "doctor knee heart bone nurse"}


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(json.dumps(one) + "\n" for one in ARTICLES)
    Path("articles.jsonl").write_text(lines)
    Path("queries.jsonl").write_text('{"id": "q", "text": "football injuries"}\n')
    generator = np.random.default_rng(0)
    rows = [
        {"text": " ".join(generator.choice(words.split(), 30)), "label": label}
        for _ in range(15)
        for label, words in TOPICS.items()
    ]
    pd.DataFrame(rows).to_csv("articles.csv", index=False)


SHORT = """
import docjax

def get_config(variant=""):
    config = docjax.config.load("graph_roberta:words")
    config.steps = config.checkpoint_every = 5
    return config
"""


def test_the_page_on_python_runs(
    here, minilm, one_device, no_report, monkeypatch, capsys
):
    """With fewer steps than a user's training has, and less to compare."""
    Path("short.py").write_text(SHORT)
    monkeypatch.setattr("docjax.run.in_memory.WITHOUT", "short.py")
    for name in ("SAMPLE", "LONG"):  # an export compares the vectors of fewer texts
        monkeypatch.setattr(f"docjax.export.write.{name}", 2)
    found: dict = {}
    text = "\n".join(blocks("python.md", "python")).replace(NAME, str(minilm))
    exec(text, found)  # noqa: S102
    assert found["vectors"].shape == (2, 384) and found["stats"]["documents"] == 1
    assert found["trained"].encode(["river sand"]).shape == (1, found["trained"].width)
    assert found["hits"][0].title == "Sand" and found["comparison"].similarity > 0.3
    assert found["links"][0]["b"] and found["page"].startswith("<!doctype html>")
    same = found["again"].encode(["river"]) - found["model"].encode(["river"])
    assert np.abs(same).max() < 1e-4
    assert "DocumentModel" in capsys.readouterr().out


def test_the_page_on_search_runs(here, minilm, monkeypatch, capsys):
    monkeypatch.setattr("builtins.input", lambda _: "")
    printed = []
    for block in blocks("search.md", "sh"):
        for line in block.splitlines():
            _, *words = shlex.split(line.replace(NAME, str(minilm)))
            assert cli.main(words) == 0, line
            printed.append(capsys.readouterr().out)
    [shown] = blocks("search.md", "text")
    assert printed[0].strip() == shown.strip()
    assert printed[3].startswith("football injuries\n")
    assert Path("found.trec").read_text().startswith("q Q0 a1 1 ")
    found: dict = {}
    [code] = blocks("search.md", "python")
    exec(code.replace(NAME, str(minilm)), found)  # noqa: S102
    assert found["hit"].id == "a1" and found["many"][1][0].id == "a2"
    assert found["hits"][0].title == "Rivers"
