"""Questions of `docjax search`, typed in a shell: what is found, for a reader."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docjax
from docjax.errors import UserError

WIDTH = 80  # columns of a terminal
INDENT = "       "  # as wide as a score
PROMPT = "question (an empty line ends): "


def run(flags: argparse.Namespace) -> None:
    """Prints the hits of each question."""
    model, index = _opened(flags)
    bold = sys.stdout.isatty()
    for question in flags.question:
        show(model.search(question, index, top=flags.top), bold)
    if flags.interactive:
        for question in _typed():
            try:
                show(model.search(question, index, top=flags.top), bold)
            except UserError as error:  # the next question may be better
                print(f"docjax: {error}", file=sys.stderr)


def _opened(flags: argparse.Namespace) -> tuple[Any, Any]:
    """The model, and the index that the corpus is or becomes."""
    from docjax.commands import options
    from docjax.data.sources.lines import exists, files
    from docjax.model import asking
    from docjax.retrieval import index_files, index_folder
    from docjax.retrieval.beir import read_documents

    if exists(flags.corpus, index_files.is_index):
        if flags.truncate_dim:
            raise UserError("--truncate-dim: docjax index has fixed it; leave it out")
        reading = options.reading(flags)
        options.check_not_given(reading, "docjax index has read the documents")
        facts = index_files.read_facts(Path(flags.corpus))
        width = facts["truncate_dim"]
        model = docjax.load(flags.model, truncate_dim=width, allow=flags.allow)
        return model, index_folder.load(Path(flags.corpus), model.fingerprint())
    if flags.corpus != "-" and not Path(flags.corpus).is_dir():
        files(flags.corpus)  # raises before the model is loaded
    report: Counter = Counter()
    documents = list(
        read_documents(flags.corpus, report=report, **options.reading(flags))
    )
    model = docjax.load(flags.model, truncate_dim=flags.truncate_dim, allow=flags.allow)
    if (bad := report.total() - report["documents"]) > 0:
        print(f"docjax: {bad} bad documents are left out", file=sys.stderr)
    return model, asking.index(model, documents, words=None)


def _typed() -> Iterator[str]:
    """The questions that a user types, until an empty line or the end of the input."""
    import readline  # noqa: F401  arrow keys, and the questions before

    while True:
        try:
            question = input(PROMPT if sys.stdin.isatty() else "")
        except EOFError:
            return
        if not question.strip():
            return
        yield question


def show(hits: Any, bold: bool) -> None:
    """Prints the question, and a title, an id and a passage for each hit."""
    from docjax.model.hits import one_line, shortened

    print(one_line(hits.query))
    for hit in hits:
        name = one_line(hit.id)  # whole, since a user looks the document up by it
        room = max(20, WIDTH - len(INDENT) - len(name) - 4)
        title = shortened(one_line(hit.title), room)
        title = f"\033[1m{title}\033[0m" if bold and title else title
        print(f"{hit.score:5.3f}  {title}{'  ' if title else ''}({name})")
        for line in hit.lines(hits.query, WIDTH - len(INDENT)):
            print(f"{INDENT}{line}")
    print(flush=True)
