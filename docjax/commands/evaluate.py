"""`docjax evaluate`: any model on your own data, one task at a time.

clustering, classification and few_shot read JSON lines with "label" and "split" (train,
test). retrieval reads a folder in BEIR's layout (corpus.jsonl, queries.jsonl,
qrels/*.tsv) or "ir-datasets:NAME", and ranks by words, vectors and both, with
--passages also by the best passages. For retrieval MODEL may also be a TREC run
(FILE.trec), and --compare adds how much better or worse each system is than one of them
or than a TREC run, with a 95 % interval over the queries. matching
reads a table of split, source, target and label, and the documents as JSON lines. The
command prints the metrics as one line of JSON.
"""

import argparse
import json
from pathlib import Path

import docjax
from docjax.commands import options
from docjax.errors import UserError

HELP = "the score of a model on your own data"
TASKS = ("clustering", "classification", "few_shot", "retrieval", "matching")
EXAMPLE = "docjax evaluate runs/demo --task classification --data labelled.jsonl"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a run, a Hugging Face folder or name, or FILE.trec"
    )
    parser.add_argument("--task", required=True, choices=TASKS)
    parser.add_argument("--data", required=True, metavar="PATH")
    options.truncate_dim(parser)
    options.max_bad_fraction(parser)
    parser.add_argument("--shots", type=int, help="few_shot: documents per class")
    parser.add_argument(
        "--compare", metavar="SYSTEM", help="retrieval: bm25, dense, ... or RUN.trec"
    )
    parser.add_argument(
        "--passages",
        action="store_true",
        default=None,
        help="retrieval: also rank by the best passages",
    )
    parser.add_argument(
        "--words", help="retrieval: settings of BM25: docjax, anserini or rank_bm25"
    )
    parser.add_argument("--documents", help="matching: the file of the documents")
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="retrieval: a folder for the TREC runs of all systems",
    )


def run(flags: argparse.Namespace) -> None:
    from docjax.model.evaluate import evaluate_model
    from docjax.tasks import retrieval

    options = {"shots": "few_shot", "documents": "matching"}
    options |= dict.fromkeys(("compare", "passages", "words", "output"), "retrieval")
    for name, task in options.items():
        if getattr(flags, name) is not None and flags.task != task:
            raise UserError(
                f"--{name} is an option of {task}; leave it out for {flags.task}"
            )
    if flags.task == "retrieval" and Path(flags.model).is_file():
        found = retrieval.of_file(Path(flags.data), Path(flags.model), flags.compare)
        print(json.dumps({f"eval/retrieval/{k}": v for k, v in found.items()}))
        return
    names = ("shots", "compare", "passages", "words")
    given = {name: getattr(flags, name) for name in names}
    metrics = evaluate_model(
        docjax.load(flags.model, truncate_dim=flags.truncate_dim),
        flags.task,
        flags.data,
        max_bad_fraction=flags.max_bad_fraction,
        documents=flags.documents,
        output=flags.output and Path(flags.output),
        **{name: value for name, value in given.items() if value is not None},
    )
    print(json.dumps(metrics))
