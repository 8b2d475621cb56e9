"""DocSplit against other ways to train on one corpus: the claim of SimLTE and DocSplit.

    python -m benchmarks.docsplit --data FOLDER --workdir runs/docsplit \
        --corpora 20news openstax --methods simcse docsplit --seeds 0 1 2 3 4

An encoder of 4 layers of 256 learns masked words on the training documents first
(`masked_lm:scratch`); every method goes on from there for the same number of epochs. The
papers' probe reads the frozen vectors, with 5, 10, 20 and 50 documents of each class,
and with all; a seed also draws these documents, for all rows alike. Runs lie under
--workdir; the same command resumes them, and other flags than --corpora, --methods,
--seeds and --epochs need another --workdir. `--pretraining 3 --tokens 128 --epochs 1`
takes hours where the defaults take days on two cores. Prints accuracies, those of TF-IDF
among them, and DocSplit's gain over the other rows, paired over seeds, with intervals.

The corpus "choose" is the training part of 20 Newsgroups, with each tenth document as
its test: settings are chosen there. The rates in RATES are a first guess.
"""

import argparse
import functools
import json
import lzma
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging

import docjax
from benchmarks.training_pays import files
from docjax import config as configs
from docjax import main as trainer
from docjax.data import splits
from docjax.data.documents import full_text
from docjax.data.sources import jsonl
from docjax.model.task_data import FileData
from docjax.retrieval import paired
from docjax.run.baselines import reduced
from docjax.storage import atomic
from docjax.tasks.few_shot import ShotsCurve
from docjax.types import Embeddings

START, BEST, CHOOSE, WORDS = "masked_lm", "docsplit", "choose", "tfidf"
METHODS = ("simcse", "contriever", "contrastive_tension", "docsplit")
RATES = dict.fromkeys(METHODS, 3e-4)
CHAPTERS = dict(fn="docjax.data.splits.holdout", test=0.2, by="chapter")
SHOTS = {"openstax": (5, 10, 20)}  # a small class
ALL = (5, 10, 20, 50)


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
    config = configs.load(START, variant="scratch")
    config.epochs = flags.pretraining
    config.limits.inference_segments = 1  # read as the methods read
    return _run(config, corpus, flags.workdir / corpus / START, flags)


def method(corpus: str, name: str, seed: int, flags: argparse.Namespace) -> Path:
    """The run of a method with a seed."""
    config = configs.load(name, variant="small")
    config.init = str(start(corpus, flags))
    config.seed, config.epochs = seed, flags.epochs
    if name == "contrastive_tension":
        config.optimizer.learning_rates = (RATES[name],)
    else:
        config.optimizer.learning_rate = RATES[name]
    run = flags.workdir / corpus / f"{name}-{flags.epochs}-{seed}"
    return _run(config, corpus, run, flags)


def _run(config: Any, corpus: str, run: Path, flags: argparse.Namespace) -> Path:
    """The trained run. It has no task: `of_run` encodes each document once."""
    if (run / "report/index.html").exists():
        return run
    config.source.path = str(source(corpus, flags))
    config.transductive = False
    config.limits.training_tokens = flags.tokens
    if corpus == "openstax":
        config.holdout = CHAPTERS
    config.tasks = {}
    config.update_from_flattened_dict(dict(flags.set))
    trainer.run(config, run, "train")
    return run


def accuracies(
    folder: Path, read: Callable[[], Any], corpus: str, seeds: Sequence[int]
) -> list[dict[str, float]]:
    """Number of examples of each class -> accuracy of the test documents, as each of
    `seeds` draws the examples. `folder` keeps them; `read` gives the vectors."""
    data = None
    for seed in seeds:
        path = folder / f"curve-{seed}.json"
        if not path.exists():
            data = data or read()
            task = ShotsCurve(shots=SHOTS.get(corpus, ALL), seed=seed)
            atomic.write_text(path, json.dumps(task(data, "test")))
    paths = (folder / f"curve-{seed}.json" for seed in seeds)
    return [_accuracies(json.loads(path.read_text("utf-8"))) for path in paths]


def of_run(run: Path, corpus: str, flags: argparse.Namespace) -> Any:
    """The vectors of a trained run."""
    return FileData(docjax.load(run), _documents(corpus, flags))


def of_words(corpus: str, flags: argparse.Namespace) -> Any:
    """TF-IDF of whole documents, reduced to 256 numbers."""
    texts, labels = ({"train": [], "test": []} for _ in range(2))
    for document in _documents(corpus, flags)():
        texts[document.split].append(full_text(document))
        labels[document.split].append(document.label)
    vectors = {part: reduced(texts["train"], texts[part]) for part in texts}
    labelled = lambda part: Embeddings(vectors[part], labels[part])
    return types.SimpleNamespace(labelled=labelled)


def _documents(corpus: str, flags: argparse.Namespace) -> Callable[[], Any]:
    """The documents with the splits that training had."""
    read = functools.partial(jsonl.jsonl, str(source(corpus, flags)))
    if corpus != "openstax":
        return read
    options = {name: value for name, value in CHAPTERS.items() if name != "fn"}
    return functools.partial(splits.holdout, read, **options)


def _accuracies(scores: dict[str, float]) -> dict[str, float]:
    tail = "/accuracy"
    return {
        metric.removesuffix(tail): value
        for metric, value in scores.items()
        if metric.endswith(tail)
    }


def table(corpus: str, rows: dict[str, list[dict[str, float]]]) -> str:
    """Mean accuracies in percent, and the gains of DocSplit."""
    shots = list(rows[BEST][0] if BEST in rows else next(iter(rows.values()))[0])
    lines = [f"| {corpus} | {' | '.join(shots)} |", "|---" * (len(shots) + 1) + "|"]
    for name, of_seeds in rows.items():
        cells = [_cell(name, rows, number) for number in shots]
        lines.append(f"| {name}, {len(of_seeds)} seeds | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(name: str, rows: dict[str, list[dict[str, float]]], shots: str) -> str:
    """Mean and deviation over seeds; DocSplit's gain over this row with its interval."""
    values = [100 * seed[shots] for seed in rows[name]]
    text = f"{np.mean(values):.1f} +- {np.std(values):.1f}"
    if name == BEST or BEST not in rows or len(values) < 2:
        return text
    numbered = lambda of: {str(i): 100 * seed[shots] for i, seed in enumerate(of)}
    gain = paired.gain(numbered(rows[BEST]), numbered(rows[name]))
    low, high = gain["gain_low"], gain["gain_high"]
    return f"{text} ({gain['gain']:+.1f}, {low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", default=["20news", "openstax"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--pretraining", type=int, default=10, help="epochs")
    parser.add_argument("--epochs", type=int, default=2, help="of a method")
    parser.add_argument(
        "--tokens", type=int, help="that training reads of a view (all)"
    )
    parser.add_argument(
        "--set", nargs="*", type=_field, default=[], metavar="FIELD=VALUE"
    )
    flags = parser.parse_args()
    logging.set_verbosity(logging.WARNING)
    for corpus in flags.corpora:
        words = flags.workdir / corpus / WORDS
        words.mkdir(parents=True, exist_ok=True)
        read = functools.partial(of_words, corpus, flags)
        rows = {WORDS: accuracies(words, read, corpus, flags.seeds)}
        print(table(corpus, rows), flush=True)
        begin = start(corpus, flags)
        read = functools.partial(of_run, begin, corpus, flags)
        rows[START] = accuracies(begin, read, corpus, flags.seeds)
        for name in flags.methods:
            rows[name] = []
            for seed in flags.seeds:
                run = method(corpus, name, seed, flags)
                read = functools.partial(of_run, run, corpus, flags)
                rows[name] += accuracies(run, read, corpus, [seed])
            print(table(corpus, rows), flush=True)


def _field(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    return name, json.loads(value)


if __name__ == "__main__":
    main()
