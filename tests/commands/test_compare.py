"""`docjax compare` as a user calls it."""

import io
import json
import sys

import numpy as np
import pytest

import docjax
from docjax import cli

RIVER = "The river floods each spring. A pianist played Chopin."
MARCH = {
    "title": "News",
    "text": "Rates rose again. In March the valley is under water.",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(RIVER)
    (tmp_path / "b.json").write_text(json.dumps(MARCH))
    monkeypatch.chdir(tmp_path)


def run(*arguments) -> int:
    return cli.main(["compare", *map(str, arguments)])


def test_numbers_are_printed_as_json(files, minilm, capsys):
    assert run(minilm, "a.txt", "b.json") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    expected = docjax.load(minilm).compare(RIVER, MARCH | {"id": "b"})
    assert abs(found["similarity"] - expected.similarity) < 1e-5
    highest = np.unravel_index(expected.segments.argmax(), (2, 2))
    assert found["links"]["segments"][0][:2] == list(highest)
    assert len(found["links"]["segments"]) == 4
    assert found["percentile"] is None  # a checkpoint has no corpus
    assert [one["title"] for one in found["documents"]] == ["a.txt", "News"]


def test_a_page_of_html_is_compared_with_markdown(files, tmp_path, minilm, capsys):
    (tmp_path / "a.html").write_text(f"<h1>News</h1><script>x</script><p>{RIVER}</p>")
    (tmp_path / "b.md").write_text(f"# News\n\n{RIVER}\n")
    assert run(minilm, "a.html", "b.md") == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["similarity"] == pytest.approx(1, abs=1e-5)
    assert [one["title"] for one in found["documents"]] == ["News", "News"]


def test_a_page_is_written_and_standard_input_is_read(
    files, minilm, capsys, monkeypatch
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RIVER.encode())))
    assert run(minilm, "-", "b.json", "--html", "pages/why.html") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["html"] == "pages/why.html" and 0 < found["similarity"] < 1
    with open("pages/why.html", encoding="utf-8") as file:
        html = file.read()
    assert "A pianist played Chopin." in html and "standard input · News" in html


@pytest.mark.parametrize(
    "a, b, message",
    [
        ("-", "-", "both standard input"),
        ("none.txt", "b.json", "none.txt: no such file"),
        ("a.txt", "bad.json", "bad.json: bad JSON"),
        ("a.txt", "empty.txt", "empty text"),
        ("a.txt", "latin.txt", "can be read as cp1252"),
        ("a.txt", "two.csv", "two.csv holds several documents: give a file with one"),
        ("a.txt", "none.csv", "none.csv holds no document"),
    ],
)
def test_mistakes_are_one_line(files, tmp_path, capsys, a, b, message):
    (tmp_path / "bad.json").write_text('{"text": ')
    (tmp_path / "empty.txt").write_text(" ")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "two.csv").write_text("text\na\nb\n")
    (tmp_path / "none.csv").write_text("text\n")
    assert run("no-model", a, b) == 2
    out, err = capsys.readouterr()
    assert not out and message in err and err.count("\n") == 1
