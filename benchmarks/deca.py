"""The tables of DECA, published and ours: error, NMI, kinds of paraphrases, lambda.

    python -m benchmarks.deca --data DATA --lexicons nltk_data --pairs ppdb.xz \
        --workdir runs/deca --datasets r8 --systems doc2vecc deca
    python -m benchmarks.deca ... --study lambda          # Figure 3
    python -m benchmarks.deca ... --study paraphrases     # Table 5
    python -m benchmarks.deca ... --study batch           # Table 7

DATA holds r8.jsonl.xz, r52.jsonl.xz, mr.jsonl.xz, 20news.jsonl.xz, imdb.jsonl.xz and
imdb_unsup.jsonl.xz. The benchmark keeps every figure under --workdir and does not
measure it again. The same command continues, and prints the tables of all figures.

    --only-measured        measures nothing; a missing figure is a dash
    --validate             a fifth of the training documents in place of the test part
    --set FIELD=JSON ...   other values of the config, for trials

deca_runs.py measures a figure, and deca_tables.py puts it beside the published figure.
"""

import argparse
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import deca_runs, deca_tables, runs, tiny
from benchmarks.deca_tables import DATASETS, PARAPHRASES, SYSTEMS, Found, Runs, Table

WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def main(given: Sequence[str] | None = None) -> None:
    flags = arguments(given)
    for table in tables(flags):
        print(f"\n{table.markdown()}")


def tables(flags: argparse.Namespace) -> list[Table]:
    """The tables of a study; without a study, Tables 3 and 4."""
    if flags.study == "lambda":
        return [deca_tables.of_weights(weights(flags))]
    if flags.study == "paraphrases":
        return [deca_tables.of_paraphrases(paraphrases(flags))]
    if flags.study == "batch":
        return [deca_tables.of_batches(batches(flags))]
    found = systems(flags)
    return deca_tables.of_errors(found) + deca_tables.of_nmi(found)


def systems(flags: argparse.Namespace) -> Found:
    """The runs of each system on each dataset."""
    found = {}
    for dataset in flags.datasets:
        for system in flags.systems:
            seeds = (0,) if system in deca_runs.ONCE else flags.seeds
            measure = functools.partial(deca_runs.of_system, system, dataset)
            found[system, dataset] = by_seed(measure, seeds, flags)
    return found


def weights(flags: argparse.Namespace) -> dict[float, Runs]:
    """The runs of each lambda."""
    return {
        weight: by_seed(
            functools.partial(deca_runs.of_weight, weight), flags.seeds, flags
        )
        for weight in WEIGHTS
    }


def paraphrases(flags: argparse.Namespace) -> Found:
    """The runs of each published way and kind."""
    return {
        (way, kind): by_seed(
            functools.partial(deca_runs.of_paraphrases, way, kind), flags.seeds, flags
        )
        for way, kind in PARAPHRASES
    }


def batches(flags: argparse.Namespace) -> Found:
    """The runs of each system on BERT with batches of each size."""
    return {
        (system, size): by_seed(
            functools.partial(deca_runs.of_batch, system, size), flags.seeds, flags
        )
        for system, size in deca_tables.BATCHES
    }


def by_seed(
    measure: Callable[[int, argparse.Namespace], dict[str, float] | None],
    seeds: Iterable[int],
    flags: argparse.Namespace,
) -> Runs:
    """The metrics of the measured seeds, by seed."""
    found = {seed: measure(seed, flags) for seed in seeds}
    return {seed: metrics for seed, metrics in found.items() if metrics is not None}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = parser.add_argument
    add("--data", type=Path, required=True)
    add("--workdir", type=Path, required=True)
    add("--lexicons", help="the folder of NLTK's data")
    add("--pairs", help="the file of PPDB's word pairs")
    add("--bert", help="a transformer's folder or name; default: all-MiniLM-L6-v2")
    add("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    add("--study", choices=("lambda", "paraphrases", "batch"))
    add("--only-measured", action="store_true", help="measure nothing")
    add("--validate", action="store_true", help="without test data")
    runs.add_set(parser)
    sizes = "--data", tiny.data, "--workdir", tiny.workdir, "--seeds", 0
    sizes += "--datasets", "r8", "--systems", "tfidf", "doc2vecc"
    words = "tokenizer.train.stop_words=false", "tokenizer.train.least_count=1"
    return tiny.parse(parser, given, *sizes, "--set", *words, "epochs=1")


if __name__ == "__main__":
    main()
