"""Words a second and test error of Doc2vecC against gensim's Word2Vec (CBOW).

    python -m benchmarks.words --path r8.jsonl.xz --lexicons nltk_data
    python -m benchmarks.words      # the docstrings of installed packages

Both train on the same words with the same width, window, negatives and passes, in
turns, on 1 and on 2 cores. The time runs from the words on disk or in memory to the
trained vectors and includes batches and updates, but neither compiling nor gensim's
scan of the vocabulary (both happen once). Both read every word, also frequent words.
For each core docjax has a replica and 2,048 documents of a step, and gensim has a
thread. The benchmark then measures the test error of logistic regression on means of
the vectors, standardised and raw. gensim shrinks its window at random, as does
`context="shrunk"`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from benchmarks import baselines, tiny
from docjax import config as config_lib
from docjax.data.vocabulary import vocabulary
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.tasks.classification import Linear
from docjax.training import loop, sharding
from docjax.training.word_trainer import WordTrainer
from docjax.types import Embeddings

WIDTH, WINDOW, NEGATIVES = 100, 6, 5


def prepared(flags: argparse.Namespace, run: Path) -> Prepared:
    config = config_lib.load("deca", variant="r8" if flags.path else "demo")
    if flags.path:
        config.source.path = str(flags.path)
    config.tokenizer.train.lexicons = flags.lexicons
    if flags.tiny:
        config.tokenizer.train.stop_words = False  # they need a lexicon
    config.objective.update(weight=0.0, window=WINDOW, negatives=NEGATIVES)
    config.objective.update(context=flags.context, subsample=0.0)
    config.views = dict(fn="docjax.views.replaced.Dropped")
    config.objective.replicas = flags.cores
    config.batch = 2048 * flags.cores
    config.epochs = flags.passes
    return prepare(config, run)


def of_docjax(found: Prepared, flags: argparse.Namespace) -> tuple[float, np.ndarray]:
    """Words a second, and the table of vectors."""
    mesh = sharding.mesh()
    trainer = WordTrainer(found, found.config.objective.built, mesh)
    key = jax.random.key(0)
    for measured in (False, True):  # the first time compiles
        state = sharding.replicate(
            trainer.begin(initial_params(found.config, found.encoder)), mesh
        )
        data = iter(trainer.dataset.to_iter_dataset(loop.READ))
        words, started = 0, time.perf_counter()
        for _ in range(trainer.steps if measured else trainer.epoch_steps):
            batch = next(data)[0]
            words += trainer.measure(batch)["tokens"]
            state, metrics = trainer.step(state, trainer.put(batch), key)
            jax.block_until_ready(metrics)  # as in training, which looks at them
        jax.block_until_ready(state)
        passed = time.perf_counter() - started
    return words / passed, np.asarray(state.params["segment"]["words"])


def of_gensim(found: Prepared, flags: argparse.Namespace) -> tuple[float, np.ndarray]:
    from gensim.models import Word2Vec

    names = vocabulary(found.tokenizer, found.corpus).words
    documents = baselines.words_of(found)
    model = Word2Vec(
        sg=0,
        vector_size=WIDTH,
        window=WINDOW,
        negative=NEGATIVES,
        alpha=0.05,
        sample=0,
        min_count=1,
        workers=flags.cores,
        seed=0,
    )
    model.build_vocab(documents)
    started = time.perf_counter()
    words, _ = model.train(
        documents, total_examples=len(documents), epochs=flags.passes
    )
    passed = time.perf_counter() - started
    table = np.zeros((len(names), WIDTH), np.float32)
    for i, name in enumerate(names):
        if name in model.wv:
            table[i] = model.wv[name]
    return words / passed, table


def error(found: Prepared, table: np.ndarray, standardize: bool) -> float:
    """The test error in %."""
    labels, lengths = found.corpus.labels, np.diff(found.corpus.starts())
    means = baselines.counts(found) @ table / np.maximum(lengths, 1)[:, None]
    parts = {
        part: Embeddings(means[rows], [labels[i] for i in rows])
        for part in ("train", "test")
        for rows in [[i for i in found.rows(part) if labels[i] is not None]]
    }
    return 100 * (1 - Linear(standardize=standardize).score(**parts)["accuracy"])


def measured(flags: argparse.Namespace) -> list[float]:
    """Words a second, and the test errors."""
    found = prepared(flags, flags.run)
    measure = of_docjax if flags.system == "docjax" else of_gensim
    rate, table = measure(found, flags)
    return [rate, *(error(found, table, wide) for wide in (True, False))]


def child(flags: argparse.Namespace) -> None:
    """Prints one measurement, on cores of its own, as JSON."""
    os.sched_setaffinity(0, range(flags.cores))
    sharding.use_cores(flags.cores)
    print(json.dumps(measured(flags)))


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--path", type=Path, help="default: docstrings, as :demo")
    parser.add_argument("--lexicons")
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--context", default="shrunk")
    parser.add_argument("--cores", type=int, help="of one measurement")
    parser.add_argument("--system", choices=("docjax", "gensim"))
    parser.add_argument("--run", type=Path)
    sizes = "--path", tiny.documents, "--passes", 1, "--run", tiny.workdir
    return tiny.parse(parser, given, *sizes, "--system", "docjax", "--cores", 1)


def table(flags: argparse.Namespace) -> None:
    print("| cores | docjax, words/s | gensim, words/s | ratio | error, % | raw, % |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for cores in (1, 2):
            found: dict[str, list] = {"docjax": [], "gensim": []}
            for _ in range(flags.repeats):
                for system, values in found.items():
                    values.append(_call(cores, system, Path(folder) / str(cores)))
            rates, wide, raw = (
                {s: [v[k] for v in values] for s, values in found.items()}
                for k in range(3)
            )
            pairs = zip(rates["docjax"], rates["gensim"], strict=True)
            middle = {s: statistics.median(v) for s, v in rates.items()}
            cells = [
                str(cores),
                *(f"{value:,.0f}" for value in middle.values()),
                f"{statistics.median(a / b for a, b in pairs):.2f}",
                *(
                    f"{np.mean(one['docjax']):.2f} / {np.mean(one['gensim']):.2f}"
                    for one in (wide, raw)
                ),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)


def _call(cores: int, system: str, run: Path) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.words", *sys.argv[1:]]
    command += ["--cores", str(cores), "--system", system, "--run", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(given: Sequence[str] | None = None) -> None:
    flags = parse(given)
    if flags.tiny:  # without gensim, on the cores of this process
        print(measured(flags))
    elif flags.system:
        child(flags)
    else:
        table(flags)


if __name__ == "__main__":
    main()
