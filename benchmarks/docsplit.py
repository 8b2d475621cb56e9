"""DocSplit against other ways to train on one corpus: the claim of SimLTE and DocSplit.

    python -m benchmarks.docsplit --data FOLDER --workdir runs/docsplit \
        --corpora 20news openstax --methods masked_words simcse_long docsplit \
        --seeds 0 1 2 3 4

An encoder of 4 layers of 256 learns masked words on the training documents first
(`masked_lm:scratch`), or with `--checkpoint FOLDER --rate 5e-5` a pretrained encoder does
(`masked_lm`); every method goes on from there for the same number of epochs:
`masked_words` learns masked words alone, `simcse` reads whole documents twice, and
`simcse_long` with masked words too, as DocSplit does (SimLTE is the same method). The
papers' probe reads the frozen vectors, with 5, 10, 20 and 50 documents of each class, as
far as every class has them, and with all; a seed also draws these documents, for all rows
alike. Runs lie under --workdir; the same command resumes them, and other flags than
--corpora, --methods, --seeds and --epochs need another --workdir. `--pretraining 3
--tokens 128 --epochs 1` takes hours where the defaults take days on two cores. Prints
accuracy and macro-F1, those of TF-IDF among them, and DocSplit's gain over the other
rows, paired over seeds, with intervals; at the end the averages over the corpora,
DocSplit's average improvement, and whether the rows come in the order of the papers'
averages.

The corpus "choose" is the training part of 20 Newsgroups, with each tenth document as
its test: settings are chosen there. The rate of 3e-4 is a first guess, 5e-5 is
DocSplit's. With --checkpoint Contrastive Tension has its authors' rates, which fall from
1e-5.
"""

import argparse
import collections
import dataclasses
import functools
import json
import lzma
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import docjax
from benchmarks import docsplit_published as published
from benchmarks import runs, tiny
from benchmarks.training_pays import files
from docjax import config as configs
from docjax.data import splits
from docjax.data.records import full_text
from docjax.data.sources import jsonl
from docjax.model.task_data import FileData
from docjax.retrieval import paired
from docjax.run import baselines
from docjax.storage import atomic
from docjax.tasks.classification import Linear
from docjax.tasks.few_shot import ShotsCurve
from docjax.types import Embeddings

START, BEST, CHOOSE, WORDS = "masked_lm", "docsplit", "choose", "tfidf"
METHODS = {  # row -> config
    "masked_words": "masked_lm:small",
    "simcse": "simcse:small",
    "simcse_long": "simcse:long,small",
    "contriever": "contriever:small",
    "contrastive_tension": "contrastive_tension:small",
    BEST: "docsplit:small",
}
CHAPTERS = dict(fn="docjax.data.splits.holdout", test=0.2, by="chapter")
# A class of openstax has 55 documents: draws of 50 would hardly differ.
SHOTS = {"openstax": (5, 10, 20)}
ALL = (5, 10, 20, 50)
MEASURES = {"accuracy": "accuracy", "macro_f1": "macro-F1"}
PAPERS = {  # rows that the papers have too
    START: "BERT",
    "contrastive_tension": "CT-BERT",
    "simcse": "SimCSE",
    "simcse_long": "SimCSE_long",
    BEST: "DocSplit",
}
Scores = dict[str, float]  # "5/accuracy" -> a fraction of 1
Rows = dict[str, list[Scores]]  # row -> the scores of each seed


def source(corpus: str, flags: argparse.Namespace) -> Path:
    """The JSON lines of a corpus."""
    folder = flags.workdir / "corpora"
    if corpus != CHOOSE:
        return files(flags.data, corpus, folder)
    path = folder / f"{CHOOSE}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(_tenth_as_test(flags.data)), encoding="utf-8")
    return path


def _tenth_as_test(data: Path) -> Iterator[str]:
    """The training documents of 20 Newsgroups; each tenth one becomes a test."""
    with lzma.open(data / "20news.jsonl.xz", "rt", encoding="utf-8") as stream:
        train = [line for line in map(json.loads, stream) if line["split"] == "train"]
    for number, line in enumerate(train):
        split = "test" if number % 10 == 9 else "train"
        yield json.dumps(line | {"split": split}) + "\n"


def start(corpus: str, flags: argparse.Namespace) -> Path:
    """The run of masked language modelling that all methods of a corpus begin with."""
    config = configs.load(START, variant="" if flags.checkpoint else "scratch")
    config.init = flags.checkpoint
    config.encoder.segment.pooling = "mean"  # as all methods
    config.epochs = flags.pretraining
    return _run(config, corpus, flags.workdir / corpus / START, flags)


def method(corpus: str, name: str, seed: int, flags: argparse.Namespace) -> Path:
    """The run of a method with a seed."""
    config = configs.load(METHODS[name])
    config.init = str(start(corpus, flags))
    config.seed, config.epochs = seed, flags.epochs
    if name == "contrastive_tension":  # RMSprop: its authors' rates for a checkpoint
        authors = configs.load(name).optimizer.learning_rates
        config.optimizer.learning_rates = authors if flags.checkpoint else (flags.rate,)
    else:
        config.optimizer.learning_rate = flags.rate
    run = flags.workdir / corpus / f"{name}-{flags.epochs}-{seed}"
    return _run(config, corpus, run, flags)


def _run(config: Any, corpus: str, run: Path, flags: argparse.Namespace) -> Path:
    """The trained run. It has no task: `of_run` encodes each document once."""
    if runs.is_done(run):
        return run
    config.source.path = str(source(corpus, flags))
    config.transductive = False
    config.limits.inference_segments = 1  # all read alike
    config.limits.training_tokens = flags.tokens
    if corpus == "openstax":
        config.holdout = CHAPTERS
    config.tasks = {}
    config.update_from_flattened_dict(_fields(config, flags))
    runs.trained(config, run)
    return run


def _fields(config: Any, flags: argparse.Namespace) -> dict[str, Any]:
    """The fields of --set, also those of the encoder that Contrastive Tension copies."""
    fields, outer = dict(flags.set), "encoder.segment."
    if "encoder" not in config.encoder.segment:
        return fields
    return {name.replace(outer, f"{outer}encoder."): fields[name] for name in fields}


def scores(
    folder: Path,
    read: Callable[[], Any],
    corpus: str,
    seeds: Sequence[int],
    is_tiny: bool = False,
) -> list[Scores]:
    """The probe's scores of the test documents, as each of `seeds` draws the examples.

    `folder` keeps them; `read` gives the vectors. With --tiny the probe is quick.
    """
    quick = dict(shots=(5,), repeats=1, few=Linear(), full=Linear())
    data = None
    for seed in seeds:
        path = folder / f"curve-{seed}.json"
        if not path.exists():
            data = data or read()
            task = ShotsCurve(shots=SHOTS.get(corpus, ALL), seed=seed)
            if is_tiny:
                task = dataclasses.replace(task, **quick)
            atomic.write_text(path, json.dumps(task(data, "test")))
    paths = (folder / f"curve-{seed}.json" for seed in seeds)
    return [json.loads(path.read_text("utf-8")) for path in paths]


def of_run(run: Path, corpus: str, flags: argparse.Namespace) -> Any:
    """The vectors of a trained run."""
    return FileData(docjax.load(run), _documents(corpus, flags))


def of_words(corpus: str, flags: argparse.Namespace) -> Any:
    """TF-IDF of whole documents, reduced to 256 numbers."""
    texts, labels = (collections.defaultdict(list) for _ in range(2))
    for document in _documents(corpus, flags)():
        texts[document.split].append(full_text(document))
        labels[document.split].append(document.label)
    tfidf = baselines.TfIdf(texts["train"])
    vectors = {part: tfidf.reduced(found) for part, found in texts.items()}
    labelled = lambda part: Embeddings(vectors[part], labels[part])
    return types.SimpleNamespace(labelled=labelled)


def _documents(corpus: str, flags: argparse.Namespace) -> Callable[[], Any]:
    """The documents with the splits that training had."""
    read = functools.partial(jsonl.jsonl, str(source(corpus, flags)))
    if corpus != "openstax":
        return read
    options = {name: value for name, value in CHAPTERS.items() if name != "fn"}
    return functools.partial(splits.holdout, read, **options)


def table(corpus: str, rows: Rows, measure: str) -> str:
    """Means in percent by number of examples of a class, and the gains of DocSplit."""
    tail = f"/{measure}"
    metrics = [name for name in next(iter(rows.values()))[0] if name.endswith(tail)]
    shots = [name.removesuffix(tail) for name in metrics]
    title = f"{corpus}, {MEASURES[measure]}"
    lines = [f"| {title} | {' | '.join(shots)} |", "|---" * (len(shots) + 1) + "|"]
    for name, of_seeds in rows.items():
        cells = [_cell(name, rows, metric) for metric in metrics]
        lines.append(f"| {name}, {len(of_seeds)} seeds | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(name: str, rows: Rows, metric: str) -> str:
    """Mean and deviation over seeds; DocSplit's gain over this row with its interval."""
    values = [100 * seed[metric] for seed in rows[name]]
    text = f"{np.mean(values):.1f} +- {np.std(values):.1f}"
    if name == BEST or BEST not in rows or len(values) < 2:
        return text
    numbered = lambda of: {str(i): 100 * seed[metric] for i, seed in enumerate(of)}
    gain = paired.gain(numbered(rows[BEST]), numbered(rows[name]))
    low, high = gain["gain_low"], gain["gain_high"]
    return f"{text} ({gain['gain']:+.1f}, {low:+.1f} to {high:+.1f})"


def averages(corpora: dict[str, Rows]) -> str:
    """Mean macro-F1 over the corpora with few and with all documents, DocSplit's
    average improvement over each row, and the order of the rows the papers have."""
    lines = ["| average macro-F1 | 5 | all |", "|---|---|---|"]
    f1: dict[str, dict[str, Scores]] = {}  # shots -> row -> corpus -> mean over seeds
    for shots in ("5", "all"):
        f1[shots] = {
            name: {
                corpus: 100
                * np.mean([seed[f"{shots}/macro_f1"] for seed in rows[name]])
                for corpus, rows in corpora.items()
            }
            for name in next(iter(corpora.values()))
        }
    for name in f1["all"]:
        cells = [_average(rows, name) for rows in f1.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    orders = (
        f"{shots}: {_order(f1[shots], printed['F1'])}"
        for shots, printed in (("5", published.FEW), ("all", published.FULL))
    )
    return "\n".join([*lines, "", *orders])


def _average(rows: dict[str, Scores], name: str) -> str:
    mean = f"{np.mean(list(rows[name].values())):.1f}"
    if name == BEST or BEST not in rows:
        return mean
    return f"{mean} ({published.average_improvement(rows[BEST], rows[name]):+.1f} %)"


def _order(rows: dict[str, Scores], printed: dict[str, Scores]) -> str:
    """The rows from the lowest average, and whether the papers' averages order them so."""
    mean = lambda row: np.mean(list(row.values()))
    names = sorted(filter(PAPERS.__contains__, rows), key=lambda name: mean(rows[name]))
    papers = sorted(names, key=lambda name: mean(printed[PAPERS[name]]))
    known = "confirmed" if names == papers else f"the papers have {' < '.join(papers)}"
    return f"{' < '.join(names)}: {known}"


def main(given: Sequence[str] | None = None) -> None:
    flags = arguments(given)
    found = {corpus: _printed(corpus, flags) for corpus in flags.corpora}
    print(averages(found), flush=True)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", default=["20news", "openstax"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--checkpoint", help="folder of a pretrained encoder")
    parser.add_argument(
        "--rate",
        type=float,
        default=3e-4,
        help="of the methods, but Contrastive Tension with --checkpoint",
    )
    parser.add_argument("--pretraining", type=int, default=10, help="epochs")
    parser.add_argument("--epochs", type=int, default=2, help="of a method")
    parser.add_argument(
        "--tokens", type=int, help="that training reads of a view (all)"
    )
    runs.add_set(parser)
    sizes = "--data", tiny.data, "--workdir", tiny.workdir, "--corpora", "20news"
    sizes += "--methods", BEST, "--tokens", 16, "--set", "epochs=null", "steps=1"
    fields = "layers=1", "width=32", "heads=2", "hidden=32"
    sizes += tuple(f"encoder.segment.{field}" for field in fields)
    return tiny.parse(parser, given, *sizes, "batch=16", "microbatch=16")


def _printed(corpus: str, flags: argparse.Namespace) -> Rows:
    """The rows of a corpus, with their tables printed as they grow."""
    words = flags.workdir / corpus / WORDS
    words.mkdir(parents=True, exist_ok=True)
    read = functools.partial(of_words, corpus, flags)
    rows = {WORDS: scores(words, read, corpus, flags.seeds, flags.tiny)}
    begin = start(corpus, flags)
    read = functools.partial(of_run, begin, corpus, flags)
    rows[START] = scores(begin, read, corpus, flags.seeds, flags.tiny)
    for name in flags.methods:
        rows[name] = []
        for seed in flags.seeds:
            run = method(corpus, name, seed, flags)
            read = functools.partial(of_run, run, corpus, flags)
            rows[name] += scores(run, read, corpus, [seed], flags.tiny)
        for measure in MEASURES:
            print(table(corpus, rows, measure), flush=True)
    return rows


if __name__ == "__main__":
    main()
