"""`docjax search`: the documents nearest to each question, in a corpus or in an index.

Prints for each QUESTION the titles of the ten nearest documents, each with its score, its
id and the passage nearest to the question. --interactive asks for questions. A corpus is
encoded first; an index of `docjax index` is not encoded again.

--queries FILE and --run OUT.trec in place of questions write a TREC run, and print the
counts as one line of JSON. A corpus is then read once, so memory does not grow with the
corpus. An index gives all systems: bm25, dense, maxp (best passage), maxsim (sentences of
the query, each with its best passage), and bm25 fused with each of these: fused,
fused_maxp, fused_maxsim, rrf (by ranks). The search is exact, except by vectors in an
index that was made with --codes (nearly exact) or --graph. --hits shows the passage of a
document that is nearest to the query: maxp has ranked the document by it, the other
systems have not; with maxsim and fused_maxsim also the passage nearest to each sentence,
whose scores maxsim adds up. "-" is standard input or output.
"""

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options, search_questions
from docjax.errors import UserError

logger = logging.getLogger(__name__)

HELP = "the documents nearest to each query"
WEIGHT, SCALE = 0.5, "min-max"
TOP, SHOWN = 1000, 10  # documents of a query in a run, and of a question
EXAMPLE = "docjax search runs/demo corpus.jsonl 'football injuries'"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, or a Hugging Face folder or name")
    parser.add_argument(
        "corpus",
        help=f"{options.FILES}, or -; or an index",
    )
    parser.add_argument("question", nargs="*", help="what to look for, in quotes")
    parser.add_argument(
        "--interactive", action="store_true", help="ask for questions, again and again"
    )
    parser.add_argument(
        "--queries", help="JSON lines, CSV or another table, or TREC topics (.txt)"
    )
    parser.add_argument("--run", metavar="OUT.trec", help="or -")
    parser.add_argument(
        "--top", type=int, help=f"documents per query ({TOP}; of a question {SHOWN})"
    )
    parser.add_argument("--system", default="dense", help="index, --run: see above")
    parser.add_argument(
        "--weight",
        type=float,
        help="index: share of the vectors in a fused system (what MODEL chose, if it is "
        f"a run with a retrieval task of the same --scale, else {WEIGHT})",
    )
    parser.add_argument(
        "--scale",
        help="index: of the fused scores: min-max or raw (BM25 without the factor "
        f"k1 + 1) ({SCALE})",
    )
    parser.add_argument(
        "--hits",
        metavar="OUT.jsonl",
        help="index: the first 10 documents of each query, each with the passage that is "
        "nearest to the query",
    )
    options.add(parser, "allow", "truncate-dim", *options.READING)


def refuse(flags: argparse.Namespace, unknown: list[str]) -> None:
    """Takes the questions after an option, such as `--top 5 QUESTION`, off `unknown`."""
    if not any(word.startswith("-") for word in unknown):
        flags.question += unknown
        unknown.clear()


def run(flags: argparse.Namespace) -> None:
    options.check_least(flags, top=1)
    if flags.question or flags.interactive:
        _check_questions(flags)
        flags.top = flags.top or SHOWN
        search_questions.run(flags)
        return
    if flags.queries is None and flags.run is None:
        raise UserError(
            "no question: give one in quotes, such as docjax search MODEL CORPUS "
            "'football injuries', or --interactive, or --queries FILE and --run OUT.trec"
        )
    if flags.run is None:
        raise UserError("--queries needs --run OUT.trec too (or --run -)")
    if flags.queries is None:
        raise UserError("--run needs --queries FILE too; without --run give questions")
    flags.top = flags.top or TOP
    _run(flags)


def _check_questions(flags: argparse.Namespace) -> None:
    """Raises UserError for a flag that does nothing to questions."""
    of_runs = "queries", "run", "hits", "weight", "scale"
    given = [name for name in of_runs if vars(flags)[name] is not None]
    given += ["system"] * (flags.system != "dense")
    if given:
        what = repr(flags.question[0]) if flags.question else "--interactive"
        raise UserError(
            f"{what} and --{given[0]} exclude each other: give questions, or --queries "
            "FILE and --run OUT.trec"
        )
    if any(not question.strip() for question in flags.question):
        raise UserError("a question is empty: give words in quotes, or --interactive")
    if flags.interactive and flags.corpus == "-":
        raise UserError("--interactive reads standard input: name a file as the corpus")


def _run(flags: argparse.Namespace) -> None:
    """Writes the run of a file of queries."""
    from docjax.data.sources.lines import exists, files
    from docjax.model.search import search
    from docjax.retrieval import index_files, trec
    from docjax.retrieval.beir import read_documents

    if flags.queries == flags.corpus == "-":
        raise UserError("queries and corpus are both standard input; name a file")
    _check_outputs(flags)
    if exists(flags.corpus, index_files.is_index):
        _of_index(flags)
        return
    of_index = "hits", "weight", "scale"
    given = [name for name in of_index if vars(flags)[name] is not None]
    if flags.system != "dense":
        given.append(f"system {flags.system}")
    if given:
        raise UserError(f"--{given[0]} needs an index: make one with docjax index")
    queries = _queries(flags)
    reading = _of_documents(flags)
    if flags.corpus != "-" and not Path(flags.corpus).is_dir():
        files(flags.corpus)  # raises before the model is loaded
    model = docjax.load(flags.model, truncate_dim=flags.truncate_dim, allow=flags.allow)
    counts: dict[str, Any] = {"queries": len(queries)}
    report: Counter = Counter()
    documents = read_documents(flags.corpus, report=report, **reading)
    documents = trec.checked(documents, flags.corpus)
    ranking = search(model, documents, queries, counts, flags.top)
    del report["documents"]
    _write(flags, ranking, counts | {"left_out": report})


def _check_outputs(flags: argparse.Namespace) -> None:
    """Raises UserError for a file that cannot be written, or has another use."""
    taken = {Path(flags.queries).resolve(): "--queries"}
    taken[Path(flags.corpus).resolve()] = "CORPUS"
    for flag, name in (("--run", flags.run), ("--hits", flags.hits)):
        if name is None or (flag, name) == ("--run", "-"):
            continue
        options.check_file_in_folder(flag, name)
        other = taken.setdefault(Path(name).resolve(), flag)
        if other != flag:
            raise UserError(f"{flag} {name} is {other} too: name another file")


def _of_index(flags: argparse.Namespace) -> None:
    """Searches an index: of the documents nothing is encoded."""
    from docjax.model.search import check_system, hits, query_vectors, search_index
    from docjax.retrieval import fusion, index_files, index_folder

    scale = SCALE if flags.scale is None else flags.scale
    check_system(flags.system)
    _check_useful(flags)
    fusion.check_scale(scale)
    weight = _weight(flags, scale)
    if not 0 <= weight <= 1:
        raise UserError(f"--weight {weight} is not between 0 and 1")
    facts = index_files.read_facts(Path(flags.corpus))
    model = docjax.load(
        flags.model, truncate_dim=facts["truncate_dim"], allow=flags.allow
    )
    index = index_folder.load(Path(flags.corpus), model.fingerprint())
    if flags.hits:
        index.passages  # noqa: B018, raises before the search if there are none
    queries = _queries(flags)
    vectors = query_vectors(model, queries, flags.system) if flags.hits else None
    keywords = {"weight": weight, "scale": scale, "vectors": vectors}
    ranking = search_index(model, index, queries, flags.system, flags.top, **keywords)
    counts: dict[str, Any] = {"queries": len(queries), "documents": len(index)}
    fused = {"weight": weight} if flags.system.startswith("fused") else {}
    _write(flags, ranking, counts | fused)
    if flags.hits:
        _write_hits(Path(flags.hits), hits(model, index, queries, vectors, ranking))


def _check_useful(flags: argparse.Namespace) -> None:
    """Raises UserError for a flag that does nothing to the search of an index."""
    for name in ("weight", "scale"):
        if vars(flags)[name] is not None and not flags.system.startswith("fused"):
            raise UserError(
                f"--{name} does nothing to --system {flags.system}: leave it out, or "
                "give --system fused"
            )
    if flags.truncate_dim is not None:
        raise UserError("--truncate-dim: docjax index has fixed it; leave it out")
    reading = _of_documents(flags)
    reading.pop("encoding", None)  # of the queries
    options.check_not_given(reading, "docjax index has read the documents")


def _of_documents(flags: argparse.Namespace) -> dict[str, Any]:
    """How the documents are read: --query-column is a column of the queries."""
    reading = options.reading(flags)
    reading.pop("query", None)
    return reading


def _queries(flags: argparse.Namespace) -> dict[str, str]:
    """The text of each query by its id."""
    from docjax.data.records import full_text
    from docjax.retrieval import trec
    from docjax.retrieval.beir import read_queries

    path = flags.queries
    found = read_queries(path, flags.encoding, flags.query_column)
    queries = trec.checked(found, path)
    return {query.id: full_text(query) for query in queries}


def _weight(flags: argparse.Namespace, scale: str) -> float:
    """The share of the vectors: the given one, or what a run chose with that scale."""
    from docjax.run import fields, metrics
    from docjax.storage import json_file

    if flags.weight is not None:
        return flags.weight
    run = Path(flags.model)
    if not flags.system.startswith("fused") or not fields.is_run(flags.model):
        return WEIGHT
    last = metrics.last_metrics(run)
    for name, task in json_file.read(run / "config.json")["tasks"].items():
        weight = last.get(f"eval/{name}/{flags.system}/weight")
        if weight is not None and task.get("scale", SCALE) == scale:
            return weight
    return WEIGHT


def _write_hits(file: Path, records: Iterable[dict[str, Any]]) -> None:
    from docjax.storage import atomic

    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    try:
        atomic.write_text(file, "".join(lines))
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error})") from None


def _write(
    flags: argparse.Namespace, ranking: dict[str, dict], counts: dict[str, Any]
) -> None:
    from docjax.retrieval import trec

    if flags.run == "-":
        sys.stdout.writelines(trec.lines(ranking, "docjax"))
    else:
        trec.write(ranking, Path(flags.run), "docjax")
    without = sum(not found for found in ranking.values())
    if without:
        text = "%d of %d queries match no document and are not in the run"
        logger.warning(text, without, len(ranking))
    stream = sys.stderr if flags.run == "-" else sys.stdout
    print(json.dumps(counts), file=stream)
