"""`docjax evaluate`: any model on your own data, one task at a time.

clustering, classification, probe, k_nearest, few_shot and shots read JSON lines with
"label" and "split" (train, test). redundancy, sentence_similarity and word_attention
read the texts of JSON lines; redundancy is a property of the texts alone, so any MODEL
gives the same numbers. retrieval reads a folder with the files of BEIR, MS MARCO or
TREC (`docjax.retrieval.beir` names them) or "ir-datasets:NAME", and ranks by words,
vectors and both, with --passages also by the best passages. For retrieval MODEL may
also be a TREC run (FILE.trec), for which only the judgements of --data are read, and
--compare adds how much better or worse each system is than one of them or than a TREC
run, with a 95 % interval over the queries. matching and links read a table of split,
source, target and label, and the documents as JSON lines. --prompt and --prompt-name
change the words before documents; queries keep the model's prompt "query". The command
prints the metrics as one line of JSON.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options
from docjax.errors import UserError

HELP = "the score of a model on your own data"
TASKS = (
    *("clustering", "classification", "probe", "k_nearest", "few_shot", "shots"),
    *("retrieval", "matching", "links"),
    *("redundancy", "sentence_similarity", "word_attention"),
)
EXAMPLE = "docjax evaluate runs/demo --task classification --data labelled.jsonl"
PAIRS, TEXTS = ("matching", "links"), TASKS[-3:]
RETRIEVAL = ("retrieval",)
UNPROMPTED = ("redundancy", "word_attention")
OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # of some tasks
    "shots": (
        ("few_shot", "shots"),
        dict(type=int, nargs="+", help="documents per class; shots: several numbers"),
    ),
    "repeats": (("few_shot", "shots"), dict(type=int, help="draws of documents (10)")),
    "neighbours": (("k_nearest",), dict(type=int, help="documents that vote (10)")),
    "classifier": (
        ("few_shot",),
        dict(choices=("linear", "probe"), help="what reads the labels (linear)"),
    ),
    "hidden-layers": (("probe", "links"), dict(type=int, help="0, 1 or 2 (1)")),
    "features": (("links",), dict(help="concat or concat_prod_diff (concat)")),
    "compare": (RETRIEVAL, dict(metavar="SYSTEM", help="bm25, dense, ... or RUN.trec")),
    "passages": (
        RETRIEVAL,
        dict(action="store_true", default=None, help="also rank by the best passages"),
    ),
    "words": (
        RETRIEVAL,
        dict(help=options.WORDS),
    ),
    "scale": (
        RETRIEVAL,
        dict(
            help="of the fused scores: min-max or raw (BM25 without the factor k1 + 1)"
        ),
    ),
    "fold": (
        RETRIEVAL,
        dict(
            type=int,
            help="test on this fold of the test queries alone; the next fold chooses "
            "the weight of the fusion",
        ),
    ),
    "documents": (PAIRS, dict(help="the file of the documents")),
    "shuffled": (
        ("matching",),
        dict(
            choices=("sections", "segments"),
            help="score documents with their sections or segments in random order",
        ),
    ),
    "sample": (TEXTS, dict(type=int, help="documents to read (1000)")),
    "lexicons": (
        ("redundancy", "word_attention"),
        dict(metavar="DIR", help="the folder of NLTK's data"),
    ),
    "output": (
        RETRIEVAL,
        dict(
            metavar="DIR",
            help="a folder for the TREC runs of all systems and the metrics of each query",
        ),
    ),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", help="a run, a Hugging Face folder or name, or FILE.trec"
    )
    parser.add_argument("--task", required=True, choices=TASKS)
    parser.add_argument("--data", required=True, metavar="PATH")
    options.prompt(parser)
    options.truncate_dim(parser)
    options.segments(parser)
    options.max_bad_fraction(parser)
    for name, (tasks, keywords) in OPTIONS.items():
        text = f"{' and '.join(tasks)}: {keywords['help']}"
        parser.add_argument(f"--{name}", **keywords | {"help": text})


def run(flags: argparse.Namespace) -> None:
    from docjax.model.evaluate import evaluate_model
    from docjax.model.task_data import write
    from docjax.tasks.run_file import of_file

    for name, (tasks, _) in OPTIONS.items():
        given = getattr(flags, name.replace("-", "_")) is not None
        if given and flags.task not in tasks:
            raise UserError(
                f"--{name} is an option of {' and '.join(tasks)}; leave it out for "
                f"{flags.task}"
            )
    if flags.task in UNPROMPTED and (flags.prompt, flags.prompt_name) != (None, None):
        raise UserError(f"{flags.task} reads texts without a prompt: leave it out")
    if flags.output:
        options.check_folder(flags.output)
    if flags.task == "retrieval" and Path(flags.model).is_file():
        _check_run(flags)
        run = Path(flags.model)
        keep = partial(write, Path(flags.output)) if flags.output else None
        found = of_file(Path(flags.data), run, flags.compare, flags.fold, keep)
        print(json.dumps({f"eval/retrieval/{k}": v for k, v in found.items()}))
        return
    if flags.task == "retrieval" and flags.model.endswith(".trec"):
        raise UserError(f"{flags.model}: no such file; give a TREC run or a model")
    keywords = dict(truncate_dim=flags.truncate_dim, segments=flags.segments)
    model = docjax.load(flags.model, **keywords)
    metrics = evaluate_model(
        model.with_prompt(flags.prompt, flags.prompt_name),
        flags.task,
        flags.data,
        max_bad_fraction=flags.max_bad_fraction,
        documents=flags.documents,
        output=flags.output and Path(flags.output),
        **_keywords(flags),
    )
    print(json.dumps(metrics))


def _keywords(flags: argparse.Namespace) -> dict[str, Any]:
    """The keywords of the task, from the options that were given."""
    from docjax.tasks.classification import LINEAR
    from docjax.tasks.probe import FEW, Probe

    names = "compare passages words scale fold features shuffled lexicons"
    names += " hidden_layers shots repeats neighbours"
    given = {name: getattr(flags, name) for name in names.split()}
    given["most"] = flags.sample
    if flags.shots and flags.task == "few_shot":
        if len(flags.shots) > 1:
            raise UserError("--shots: few_shot has one number; the task shots several")
        [given["shots"]] = flags.shots
    if flags.classifier:
        given["classifier"] = {"linear": LINEAR, "probe": FEW}[flags.classifier]
    given = {name: value for name, value in given.items() if value is not None}
    if flags.task == "links" and "hidden_layers" in given:
        given["classifier"] = Probe(hidden_layers=given.pop("hidden_layers"))
    return given


def _check_run(flags: argparse.Namespace) -> None:
    """Raises UserError for a flag that does nothing to a TREC run."""
    names = ("passages", "words", "scale", "truncate_dim", "segments")
    names += ("prompt", "prompt_name")
    given = [name for name in names if getattr(flags, name) is not None]
    if flags.max_bad_fraction:
        given.append("max_bad_fraction")
    if given:
        raise UserError(
            f"--{given[0].replace('_', '-')} does nothing to {flags.model}, which is a "
            "run: leave it out"
        )
