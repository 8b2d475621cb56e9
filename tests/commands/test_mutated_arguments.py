"""Commands with a hundred wrong arguments: one line each, no traceback, no lost file."""

import contextlib
import io
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from docjax import cli

pytest.importorskip("uvicorn")
FILES = {
    "c.jsonl": "".join(
        json.dumps({"id": f"d{i}", "text": text}) + "\n"
        for i, text in enumerate(["a river runs", "the sea is wide", "a doctor"])
    ),
    "q.jsonl": '{"id": "q", "text": "sea"}\n',
    "a.txt": "A river runs to the sea.",
    "b.txt": "The sea is wide.",
    "empty": "",
    "binary": "\x00\x01\x02\udcff\udcfe",
    "list.json": '[{"id": "a", "text": "b"}]',
    "half.jsonl": '{"id": "a", "tex',
}
VALUES = [
    *("", " ", "-", "-x", "--x", "-1", "0", "1", "2.5", "nan", "inf", "1e400", "abc"),
    *(
        "a" * 300,
        "a" * 5000,
        "x\ny",
        "x\ty",
        "no/such",
        "no/such/",
        ".",
        "..",
        "folder",
    ),
    *("empty", "binary", "list.json", "half.jsonl", "a.txt/x", "a.txt", "c.jsonl"),
    *("*", "[", "?", "é", "\udcff", "99999999999999999999", "True", "None", "{}", "'"),
    *("~", "file:///x", "http://x", "a@b", "@", "mylab.", "os", "0x10", "1_000", "٣"),
    *("a,b", "a:b", "\x1b[31m", "%s", "{0}", "<b>", "c.jsonl ", "C.JSONL", ".hidden"),
    *("256.256.256.256", "65536", "+1"),
]
TRIED = int(os.environ.get("MUTATIONS", "25"))  # wrong arguments of each command
COMMANDS = {
    "search MODEL c.jsonl sea": "--top --truncate-dim --max-bad-fraction --allow --run",
    "search MODEL c.jsonl --queries q.jsonl --run out/r.trec": "--system --weight --hits",
    "encode MODEL c.jsonl --output out/v.npy": "--prompt --prompt-name --allow "
    "--truncate-dim --segments --max-bad-fraction --processes --process",
    "compare MODEL a.txt b.txt": "--html --allow",
    "similarities MODEL c.jsonl --output out/maps": "--max-bad-fraction",
    "serve MODEL --port 0": "--host --port --max-body --max-documents --body-timeout",
}


def mutations(command: str) -> list:
    """A hundred of all mutations, evenly: each place and option has its share."""
    every = list(_all(command))
    step = len(every) / TRIED
    return [every[int(number * step)] for number in range(TRIED)]


def _all(command: str):
    words = shlex.split(command)
    places = [i for i in range(1, len(words)) if not words[i].startswith("--")]
    for value in VALUES:
        for place in places:
            yield [*words[:place], value, *words[place + 1 :]], value
        for option in COMMANDS[command].split():
            yield [*words, option, value], value


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the files, and a server that stops as soon as it is ready."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    close = lambda _, sockets: [each.close() for each in sockets]
    monkeypatch.setattr("uvicorn.Server.run", close)
    # It would close the handlers of logs, whose streams belong to pytest.
    monkeypatch.setattr("uvicorn.Config.configure_logging", lambda _: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)


def written() -> None:
    os.makedirs("out", exist_ok=True)
    for name, text in FILES.items():
        with open(name, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)


def outcome(arguments):
    """The exit code, and the lines of standard error that are docjax's."""
    out, err = io.TextIOWrapper(io.BytesIO(), errors="backslashreplace"), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b'{"id": "s", "text": "from a pipe"}\n'))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as error:  # argparse
            code = error.code
    return code, [
        line for line in err.getvalue().splitlines() if line.startswith("docjax")
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_argument_is_one_line_that_names_it(command, tiny, here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    for arguments, value in mutations(command):
        written()
        argv = [str(tiny) if word == "MODEL" else word for word in arguments]
        code, lines = outcome(argv)
        assert code in (0, 2), arguments
        assert len(lines) == (code == 2), arguments
        inputs = {name for name in FILES if name in arguments[2:]} - {value}
        for name in inputs - {"out/r.trec"}:
            kept = Path(name).read_text("utf-8", errors="surrogateescape")
            assert kept == FILES[name], arguments  # no output replaces an input
