"""Questions of `docjax search`: what a reader sees."""

import io
import json
import os
import subprocess
import sys

import pytest

from docjax import cli

ARTICLES = [
    {
        "id": "a1",
        "title": "Knees on grass",
        "text": "Players tear a knee on wet grass.",
    },
    {"id": "a 2", "title": "Rivers", "text": "Rivers carry sand to the sea. " * 30},
    {"id": "a3", "text": "The doctor writes a letter about silver in winter."},
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("articles") / "articles.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in ARTICLES))
    return path


def search(capsys, *arguments):
    code = cli.main(["search", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_titles_scores_ids_and_passages_are_printed(capsys, minilm, corpus):
    code, out, _ = search(capsys, minilm, corpus, "knee injuries", "--top", 2, "sand")
    assert code == 0
    first, second, rest = out.split("\n\n")
    assert rest == "" and "\033" not in out
    lines = first.splitlines()
    assert lines[0] == "knee injuries"
    assert lines[1].endswith("  Knees on grass  (a1)") and lines[1][0] == "0"
    assert lines[2] == "       Players tear a knee on wet grass."
    assert second.splitlines()[0] == "sand" and "  Rivers  (a 2)" in second
    assert len(second.splitlines()) <= 1 + 2 * 4 and "…" in second
    assert max(map(len, out.splitlines())) <= 80


def test_an_index_is_searched_with_and_without_passages(capsys, tiny, corpus, tmp_path):
    rows = [json.dumps(one | {"id": one["id"].replace(" ", "")}) for one in ARTICLES]
    plain = tmp_path / "plain.jsonl"
    plain.write_text("\n".join(rows))
    shown = [search(capsys, tiny, plain, "sand")[1]]
    for flags in ([], ["--passages"]):
        output = tmp_path / f"index{len(flags)}"
        assert (
            cli.main(["index", str(tiny), str(plain), "--output", str(output), *flags])
            == 0
        )
        capsys.readouterr()
        shown.append(search(capsys, tiny, output, "sand")[1])
    assert shown[0] == shown[1] == shown[2] and "(a3)" in shown[0]
    code, _, err = search(capsys, tiny, output, "sand", "--truncate-dim", 4)
    assert code == 2 and "--truncate-dim: docjax index has fixed it" in err


def test_questions_are_asked_until_an_empty_line(capsys, tiny, corpus, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("sand\nknee\n\nletter\n"))
    code, out, err = search(capsys, tiny, corpus, "--interactive", "--top", 1)
    assert code == 0 and "docjax:" not in err
    assert [block.splitlines()[0] for block in out.strip().split("\n\n")] == [
        "sand",
        "knee",
    ]
    monkeypatch.setattr(sys, "stdin", io.StringIO("sand"))  # the end, as by Ctrl-D
    assert search(capsys, tiny, corpus, "--interactive", "--top", 1)[1].startswith(
        "sand\n"
    )


def test_a_corpus_comes_from_standard_input(capsys, tiny, corpus, monkeypatch):
    given = io.TextIOWrapper(io.BytesIO(corpus.read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    _, out, _ = search(capsys, tiny, "-", "sand")
    assert out == search(capsys, tiny, corpus, "sand")[1]


def test_a_terminal_gets_bold_titles_and_a_bar(tiny, corpus):
    """A real process at a real terminal."""
    import pty
    import termios

    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))
    command = [sys.executable, "-m", "docjax.cli", "search", tiny, corpus, "sand"]
    done = subprocess.run(
        list(map(str, command)), stdout=slave, stderr=slave, stdin=slave, check=False
    )
    os.close(slave)
    raw = b""
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        raw += piece
    os.close(master)
    text = raw.decode()
    assert done.returncode == 0 and "\033[1mKnees on grass\033[0m" in text
    assert "\rsearch: " in text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "no question: give one in quotes, such as docjax search MODEL CORPUS"),
        (
            ["a", "--queries", "q"],
            "'a' and --queries exclude each other: give questions",
        ),
        (["a", "--run", "r"], "'a' and --run exclude each other"),
        (["--interactive", "--run", "r"], "--interactive and --run exclude each other"),
        (["a", "--system", "bm25"], "'a' and --system exclude each other"),
        (["--queries", "q"], "--queries needs --run OUT.trec too"),
        (["--run", "r"], "--run needs --queries FILE too"),
        ([" "], "a question is empty: give words in quotes"),
        (["a", "--top", "0"], "--top 0 is too small"),
        (["a", "--max-bad-fraction", "2"], "--max-bad-fraction 2.0 is not a share"),
        (["a", "--truncate-dim", "0"], "--truncate-dim 0: give at least 1"),
    ],
)
def test_flags_that_do_not_go_together_are_one_line(
    capsys, tiny, corpus, arguments, line
):
    code, out, err = search(capsys, tiny, corpus, *arguments)
    assert (code, out) == (2, "") and f"docjax: {line}" in err and err.count("\n") == 1


def test_interactive_needs_standard_input(capsys, tiny):
    code, _, err = search(capsys, tiny, "-", "--interactive")
    assert code == 2 and "--interactive reads standard input: name a file" in err
