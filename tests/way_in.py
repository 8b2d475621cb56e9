"""The way in, as a person walks it: from a wheel and a CSV to vectors and answers.

    python tests/way_in.py                          # this Python
    python tests/way_in.py --python python3.13      # another one

Builds a wheel, makes an empty environment beside a clone, and types what the docs say:
ten commands. Each output is checked. Takes some minutes, most of them for the
installation; `make test` does not run it. The texts are docstrings of installed
packages, written as a spreadsheet writes them.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = 600
SCRIPT = """
import csv
import docjax
rows = csv.DictReader(open("news.csv", encoding="utf-8-sig"))
documents = [{"title": row["Title"], "text": row["Text"]} for row in rows]
model = docjax.load("runs/news")
vectors = model.encode(["How do I invert a matrix?", "A plot with two axes."])
vectors /= 2
print(vectors.shape, [hit.title for hit in model.search("invert a matrix", documents, top=3)])
"""
OTHER = """
from sentence_transformers import SentenceTransformer
import docjax, numpy as np
texts = ["How do I invert a matrix?", "A plot with two axes. " * 300]
other = SentenceTransformer("exported", trust_remote_code=True).encode(texts)
own = docjax.load("runs/news").encode(texts)
print(float(np.abs(other - own).max()))
"""


class Shell:
    """An empty folder with an environment, beside a clone."""

    def __init__(self, folder: Path, python: str):
        self.folder = folder
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)
        names = {"PATH": f"{folder / 'env/bin'}:{os.environ['PATH']}"}
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self.environment = kept | names
        self.commands = 0

    def type(self, command: str, shown: str = "") -> str:
        """Runs a command, which must succeed and print `shown`; what it printed."""
        self.commands += 1
        began = time.monotonic()
        done = subprocess.run(
            *(command,),
            shell=True,
            check=False,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - began
        print(f"$ {command}\n{done.stdout[-1500:]}({seconds:.0f} s)", flush=True)
        said = done.stdout + done.stderr
        if done.returncode or "Traceback" in said or shown not in said:
            raise SystemExit(f"{command}: exit code {done.returncode}\n{said[-3000:]}")
        return done.stdout

    def served(self, command: str) -> None:
        """Runs a server until it has answered a request for vectors."""
        self.commands += 1
        print(f"$ {command}", flush=True)
        words, options = command.split(), {"cwd": self.folder, "env": self.environment}
        with subprocess.Popen(words, **options, stderr=subprocess.PIPE) as server:
            try:
                print(_answer(), flush=True)
            finally:
                server.terminate()


def _answer() -> str:
    body = json.dumps({"input": ["A text."], "model": "news"}).encode()
    address = "http://127.0.0.1:8123/v1/embeddings"
    headers = {"Content-Type": "application/json"}
    for _ in range(60):
        time.sleep(1)
        try:
            request = urllib.request.Request(address, body, headers)
            with urllib.request.urlopen(request, timeout=30) as reply:
                found = json.load(reply)
        except OSError:  # it is still starting
            continue
        return f"{len(found['data'][0]['embedding'])} numbers"
    raise SystemExit("the server did not answer")


def write_texts(path: Path) -> None:
    """A table of documents with a header, as a spreadsheet saves it."""
    sys.path.insert(0, str(ROOT))
    from docjax.data.records import full_text
    from docjax.data.sources.pydocs import pydocs

    documents = list(pydocs())[::3][:TEXTS]
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file, dialect="excel")
        rows.writerow(["Title", "Text", "Category"])
        for each in documents:
            rows.writerow([each.title, full_text(each), each.label])
    for name, each in zip(("a.txt", "b.txt"), documents, strict=False):
        (path.parent / name).write_text(full_text(each), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=Path, help="a new folder, which stays")
    flags = parser.parse_args()
    folder = flags.keep or Path(tempfile.mkdtemp(prefix="way-in-"))
    folder.mkdir(parents=True, exist_ok=True)
    clone = folder / "docjax"  # a script beside it must find the installed package
    skip = shutil.ignore_patterns(".venv", "runs", "__pycache__", "build", ".git")
    shutil.copytree(ROOT, clone, ignore=skip)
    shell = Shell(folder, flags.python)
    write_texts(folder / "news.csv")
    wheel = "pip wheel --quiet --no-deps --wheel-dir . ./docjax"
    subprocess.run(
        wheel, shell=True, check=True, cwd=folder, env=shell.environment
    )  # what the package index gives
    [file] = folder.glob("*.whl")
    install = f"{file.name}[serve,export,retrieval]"
    shell.type(f"pip install --quiet --constraint docjax/constraints.txt './{install}'")
    shell.type("docjax --version", "docjax ")
    shell.type(
        "docjax train graph_roberta:words --workdir=runs/news "
        "--config.source.path=news.csv"
    )
    assert (folder / "runs/news/report/index.html").stat().st_size > 10_000
    shell.type('docjax search runs/news news.csv "invert a matrix"', "inv")
    shell.type("docjax compare runs/news a.txt b.txt --html why.html", "similarity")
    shell.type("docjax encode runs/news news.csv --output vectors.csv")
    shell.served("docjax serve runs/news --port 8123")
    shell.type("docjax export runs/news exported")
    (folder / "script.py").write_text(SCRIPT)
    shell.type("python script.py", "(2, ")
    (folder / "other.py").write_text(OTHER)
    difference = float(shell.type("python other.py").split()[-1])
    assert difference < 1e-4, difference
    print(f"{shell.commands} commands")
    assert shell.commands <= 10
    if not flags.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
