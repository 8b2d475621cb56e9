"""`docjax mine`: hard negatives for training, ranked by a model or by BM25.

--data is a collection or a run. Of a collection, which is a folder with the files of
BEIR, MS MARCO or TREC (`docjax.retrieval.beir` names them) or "ir-datasets:NAME", the
command reads the judged queries of all splits. From a run it reads the training
documents: their "query" fields are the queries, and a document answers its own query
and the queries of documents that link to it. Documents that answer a query are never
its negatives. The output is JSON lines, {"query": ID, "text": TEXT, "negatives":
[document ids, best first]}, sealed by the last line. The command prints the counts as
one line of JSON.
"""

import argparse
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options
from docjax.errors import UserError

logger = logging.getLogger(__name__)

HELP = "hard negatives for training, in a sealed file"
EXAMPLE = "docjax mine bm25 --data scifact --output negatives.jsonl"
BM25 = "bm25"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help=f"a run, a Hugging Face folder or name, or the word {BM25}"
    )
    parser.add_argument(
        "--data",
        help="a folder of a collection, ir-datasets:NAME, or a run; without --data, "
        "MODEL is the run",
    )
    parser.add_argument("--output", required=True, metavar="NEGATIVES.jsonl")
    parser.add_argument("--top", type=int, default=100, help="negatives per query")
    parser.add_argument(
        "--margin",
        type=float,
        help="leave out documents that score above 1 - MARGIN of the best answer: they "
        "may be answers that nobody judged",
    )
    options.add(parser, "words", "allow", "max-bad-fraction")


def run(flags: argparse.Namespace) -> None:
    from docjax.model.search import search
    from docjax.retrieval import bm25, bm25_files, collection, negatives
    from docjax.run.fields import is_run

    _check(flags)
    settings = bm25.preset(flags.words)
    data = flags.data or flags.model
    if is_run(data):
        judged = _judged_of_run(Path(data), flags.allow)
    else:
        judged = collection.read_judged(data, flags.max_bad_fraction)
    ranked = negatives.Digest()
    missing = set().union(*judged.qrels.values())
    of_judgements = len(missing)
    documents = partial(_added, judged.documents, ranked, missing)
    judged = judged._replace(documents=documents)
    counts: dict[str, Any] = {"queries": len(judged.qrels), "documents": 0}
    if flags.model == BM25:
        made_by = f"{BM25} {flags.words}"
        find = partial(bm25_files.search, settings=settings)
    else:
        model = docjax.load(flags.model, allow=flags.allow)
        made_by, encode = f"{flags.model} {model.fingerprint()}", None
        if is_run(flags.model):
            encode = _encode_of_run(Path(flags.model), flags.allow)
        find = partial(search, model, counts=counts, encode=encode)
    rank = lambda top: find(judged.documents(), judged.queries, top=top)
    mined = negatives.mine(rank, judged.qrels, flags.top, flags.margin)
    if missing:
        _check_missing(missing, of_judgements)
    negatives.write(
        *(mined, Path(flags.output)),
        queries=judged.queries,
        documents=ranked,
        made_by=made_by,
    )
    counts["documents"] = ranked.count
    counts["negatives"] = sum(map(len, mined.values()))
    counts["queries_without_negatives"] = sum(not names for names in mined.values())
    print(json.dumps(counts))


def _judged_of_run(run: Path, allow: list[str]) -> Any:
    """The documents that a run trains on, with their own queries, as `Judged`.

    Raises:
      UserError: if there is no run, or no training document has a query.
    """
    from docjax.retrieval import collection
    from docjax.run.corpora import trained_on
    from docjax.run.fields import read

    documents = partial(trained_on, read(run, allow))
    _, queries, qrels = collection.of_documents(documents())
    if not queries:
        raise UserError(
            f'{run}: no training document has a "query"; give --data a collection, '
            "or a run whose documents have queries"
        )
    return collection.Judged(documents, queries, qrels)


def _check_missing(missing: set[str], of_judgements: int) -> None:
    """Warns of judged documents that were not read. Raises UserError if none was."""
    text = f"{len(missing)} of {of_judgements} judged documents are not in the corpus"
    text += f", {min(missing)!r} is one"
    if len(missing) == of_judgements:
        raise UserError(f"{text}; add them")
    logger.warning(text)


def _added(read: Callable[[], Iterable], ranked: Any, missing: set[str]) -> Iterator:
    """The documents, whose ids are added to `ranked` and taken out of `missing`."""
    for document in read():
        ranked.add(document.id)
        missing.discard(document.id)
        yield document


def _encode_of_run(run: Path, allow: list[str]) -> Callable[..., Iterator] | None:
    """The run's `encode_once`, which reuses the vectors of its corpus.

    None if the run has none, and with a warning if its documents cannot be read now.
    """
    from docjax.model.inference import local_mesh
    from docjax.recipe.share import with_share
    from docjax.run import fields, frozen, parameters, scoring
    from docjax.run.prepare import prepare
    from docjax.storage.lock import locked

    try:
        with locked(run):
            prepared = prepare(fields.read(run, allow), run).changed(halved=None)
            if not frozen.reads_once(prepared):
                return None
            prepared = frozen.with_vectors(prepared)
            prepared = with_share(prepared, local_mesh())
    except (UserError, OSError) as error:
        logger.warning("the model reads every document again: %s", error)
        return None
    params = parameters.trained_params(run, prepared.encoder)
    return scoring.Scoring(prepared, local_mesh()).data(params).encode_once


def _check(flags: argparse.Namespace) -> None:
    """Raises UserError for impossible flags, before anything is read."""
    from docjax.run.fields import is_run

    options.check_least(flags, top=1)
    if flags.margin is not None and not 0 <= flags.margin <= 1:
        raise UserError(f"--margin {flags.margin} is not between 0 and 1")
    if flags.model != BM25 and flags.words != "docjax":
        raise UserError(
            f"--words {flags.words} does nothing to {flags.model}: leave it out, or give "
            f"{BM25} in place of the model"
        )
    options.check_file_in_folder("--output", flags.output)
    if not flags.data and not is_run(flags.model):
        raise UserError(
            f"--data is missing: {flags.model} is not a run, so it has no documents; "
            "give a collection or a run"
        )
