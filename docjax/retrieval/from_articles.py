"""Writes articles as a retrieval collection, by the rules of WIKIR."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import documents as documents_lib
from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Document, Qrels

OWN, LINKED = 2, 1  # grades


def write(
    documents: Iterable[Document],
    folder: Path,
    *,
    validation: int,
    test: int,
    least_links: int = 5,
    seed: int = 27355,
) -> dict[str, Any]:
    """Writes a collection in BEIR's layout; returns what was written.

    A document answers its own query with grade 2, and the queries of the documents that
    it links to with grade 1; queries with fewer than `least_links` such answers are left
    out. If no document has a link to another, each query has its own document alone.

    Args:
      documents: each with a query, such as those of `docjax.data.sources.wikir`.
      validation, test: the number of queries for each; the others train.
      seed: of the order in which queries are dealt to the parts.

    Raises:
      UserError: if the folder has files of a collection already, or too few queries
        remain; the folder then has no corpus, and the next call may write there.
    """
    _check_free(folder)
    _remove_queries(folder)  # those that a killed call left
    folder.mkdir(parents=True, exist_ok=True)
    with atomic.partial(folder / "corpus.jsonl") as partial:  # appears last
        queries, links = _write_corpus(documents, partial)
        qrels, by_links = _judgements(links, least_links)
        parts = _parts(list(qrels), validation, test, seed)
        _write_queries(folder, queries, parts, qrels)
    return {
        "documents": len(queries),
        "queries": {part: len(chosen) for part, chosen in parts.items()},
        "queries_left_out": len(queries) - len(qrels),
        # To articles that are unknown or were left out.
        "links_left_out": sum(len({*to} - links.keys()) for to in links.values()),
        "relevance": "links and own document" if by_links else "own document alone",
    }


def _check_free(folder: Path) -> None:
    """Raises UserError for a folder with files that no killed call left."""
    patterns = ["corpus.*"]
    if not (folder / "corpus.jsonl.partial").exists():
        patterns += ["queries.jsonl*", "queries.tsv*", "queries.txt*", "qrels"]
    names = [file.name for each in patterns for file in folder.glob(each)]
    if taken := [name for name in names if not name.endswith(".partial")]:
        raise UserError(f"{folder} has {taken[0]} already: name another --output")


def _remove_queries(folder: Path) -> None:
    (folder / "queries.jsonl").unlink(missing_ok=True)
    shutil.rmtree(folder / "qrels", ignore_errors=True)


def _write_corpus(
    documents: Iterable[Document], file: Path
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Writes the documents; returns the query and the links of each."""
    queries, links = {}, {}
    with file.open("w", encoding="utf-8") as lines:
        for document in documents:
            documents_lib.check_fits_in_table(document.id)
            queries[document.id], links[document.id] = document.query, document.links
            lines.write(documents_lib.to_line(document))
    return queries, links


def _parts(
    names: list[str], validation: int, test: int, seed: int
) -> dict[str, list[str]]:
    """The queries of each split that has any, dealt at random."""
    if len(names) <= validation + test:
        raise UserError(
            f"{len(names)} queries: too few for {validation} to validate, {test} to "
            "test and some to train; ask for fewer"
        )
    order = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    parts = {
        "dev": order[:validation],
        "test": order[validation : validation + test],
        "train": order[validation + test :],
    }
    return {part: chosen for part, chosen in parts.items() if chosen}


def _write_queries(
    folder: Path, queries: dict[str, str], parts: dict[str, list[str]], qrels: Qrels
) -> None:
    """Writes the queries and their judgements, or nothing."""
    records = [{"id": name, "text": queries[name]} for name in qrels]
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)
    try:
        atomic.write_text(folder / "queries.jsonl", text)
        (folder / "qrels").mkdir(exist_ok=True)
        for part, chosen in parts.items():
            judged = (
                (q, name, gain) for q in chosen for name, gain in qrels[q].items()
            )
            table = "".join(f"{q}\t{name}\t{gain}\n" for q, name, gain in judged)
            header = "query-id\tcorpus-id\tscore\n"
            atomic.write_text(folder / f"qrels/{part}.tsv", header + table)
    except BaseException:
        _remove_queries(folder)
        raise


def _judgements(links: dict[str, tuple[str, ...]], least: int) -> tuple[Qrels, bool]:
    """The judgements of queries with `least` links, and whether links made them."""
    answers: dict[str, set[str]] = {name: set() for name in links}
    for name, linked in links.items():
        for other in linked:
            if other in answers and other != name:
                answers[other].add(name)
    if not any(answers.values()):
        return {name: {name: OWN} for name in links}, False
    qrels = {
        name: dict.fromkeys(sorted(linked), LINKED) | {name: OWN}
        for name, linked in answers.items()
        if len(linked) >= least
    }
    if not qrels:
        raise UserError(
            f"no article has {least} others that link to it: lower --least-links"
        )
    return qrels, True
