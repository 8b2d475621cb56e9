"""CoLDE and its ablations against siamese encoders, on pairs of ACL papers.

    python -m benchmarks.colde --data FOLDER --workdir runs/colde --seeds 0 1 2

DATA/acl holds papers.jsonl.xz, pairs.tsv and pairs_uniform.tsv. Each tenth training pair
leaves training and chooses the thresholds, by F1; the validation pairs of both tables are
scored, and choose nothing. Training pairs that are also among the others leave it. Two
kinds of encoder (--encoder):

  minilm: MiniLM reads the passages of all papers once and stays as it is; systems train
    what comes after (`configs/colde.py:acl,frozen`, with word vectors of the papers).
    S-BERT reads the first 512 tokens, as two segments of MiniLM's length, without word
    vectors and with them; one layer over the vectors is trained.
  small: 1 layer of 128 from random weights, all trained, on four chunks of 128 tokens of
    a section. S-BERT reads 512 tokens, S-LONG (a Longformer) 4,096. CoLDE has no places
    and no attention between sections here (`configs/colde.py:small` says why). A step
    reads 32,768 tokens, of S-LONG twice as many.

With MiniLM, CoLDE is scored, too, on papers with their sections and with their segments in
random order. All systems of an encoder take about as many steps; small ones read 32 papers or
pairs in a step, and S-LONG 8 pairs. Prints one Markdown table:
precision, recall, F1 and accuracy as means over seeds, F1 and accuracy with negatives that
are random papers, and CoLDE's gain of F1 over each row, paired over seeds, with the 95 %
interval of a t-test. Runs lie under --workdir; the same command resumes them.
"""

import argparse
import dataclasses
import functools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import runs, tiny
from benchmarks.matching import LEFT_OUT, MEASURES, acl_papers, of_words, rows, rules
from docjax import config as configs
from docjax.data.pairs import Pair, read_pairs, write_pairs
from docjax.data.shuffled import PIECES
from docjax.progress import log

logger = logging.getLogger("docjax.benchmarks")

BEST, START = "CoLDE", "MiniLM, mean of all passages, untrained"
SHUFFLED = ",shuffled"
COLDE = {  # what comes after `acl` in the variant
    BEST: SHUFFLED,
    "CoLDE w/o Aug": ",no_sections",
    "CoLDE w/o LSTM": ",no_lstm",
    "CoLDE w/o CL": ",no_contrast",
}
# Pairs are eight times as many as papers: as many steps as CoLDE has in 25 epochs.
PAIRS = {"epochs": 3}
SMALL = {
    "encoder.segment.layers": 1,
    "epochs": None,
    "steps": 300,
    "evaluate_every": 0,  # before training and at the end
    "batch": 32,
    "limits.training_tokens": 512,
}
UNIFORM = ("f1", "accuracy")  # of the pairs with random papers
Values = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class System:
    """A config with its variant, and the fields that differ from it."""

    config: str
    variant: str
    fields: Mapping[str, Any]


def systems(encoder: str) -> dict[str, System]:
    """The trained systems by the name of their row."""
    if encoder == "small":
        chunks = SMALL | {"limits.segment_tokens": 128}
        rows = {
            name: System("colde", f"acl,small{variant.removesuffix(SHUFFLED)}", chunks)
            for name, variant in COLDE.items()
        }
        # A document is one view here, where others have two of 512 tokens.
        whole = chunks | {"limits.training_tokens": 1024}
        beside = "CoLDE beside the mean of the chunks"
        rows[beside] = System("colde", "acl,small,beside_mean", chunks)
        rows["CoLDE w/o Aug"] = System("colde", "acl,small,no_sections", whole)
        longformer = {
            "limits.training_tokens": 4096,
            "batch": 8,  # pairs
        }
        return rows | {
            "S-BERT": System("siamese", "small", SMALL),
            "S-LONG": System("siamese", "slong,small", SMALL | longformer),
        }
    rows = {
        name: System(
            "colde", f"acl{variant},frozen", PAIRS if "contrast" in variant else {}
        )
        for name, variant in COLDE.items()
    }
    # The layer that S-BERT can train turns the mean of the first two segments.
    first = {"limits.training_units": 2, "limits.inference_segments": 2}
    alone = first | {"encoder.document.branch": None, "objective.margin": None}
    plain = alone | {"encoder.segment.words": 0, "encoder.document.words": 0}
    siamese = functools.partial(System, "colde", "acl,no_contrast,frozen")
    return rows | {
        "S-BERT": siamese(plain | PAIRS),
        "S-BERT with word vectors": siamese(alone | PAIRS),
    }


def tables(data: Path, workdir: Path) -> dict[str, list[Pair]]:
    """The pairs, written to WORKDIR/pairs.tsv for the runs.

    In WORKDIR/uniform.tsv the scored pairs are those of pairs_uniform.tsv.
    """
    given = read_pairs(data / "acl/pairs.tsv")
    scored, train = given["dev"], given["train"]
    uniform = read_pairs(data / "acl/pairs_uniform.tsv")["dev"]
    dev = without(train[9::10], scored)
    kept = [pair for number, pair in enumerate(train) if number % 10 != 9]
    pairs = {"train": without(kept, scored + uniform + dev), "dev": dev, "test": scored}
    lost = len(train) - len(pairs["train"]) - len(dev)
    logger.info("%d training pairs are also among the others: left out", lost)
    workdir.mkdir(parents=True, exist_ok=True)
    write_pairs(workdir / "pairs.tsv", pairs)
    write_pairs(workdir / "uniform.tsv", {"dev": dev, "test": uniform})
    return pairs


def without(pairs: Sequence[Pair], others: Sequence[Pair]) -> list[Pair]:
    """The pairs of documents that are no pair of the others, in either order."""
    known = {frozenset(pair[:2]) for pair in others}
    return [pair for pair in pairs if frozenset(pair[:2]) not in known]


def run(system: System, name: str, seed: int, flags: argparse.Namespace) -> Path:
    """The run of a system with a seed; trained if it has not ended yet."""
    folder = name.replace("/", "").replace(" ", "_")
    folder = flags.workdir / flags.encoder / f"{folder}-{seed}"
    if runs.is_done(folder):
        return folder
    config = configs.load(system.config, variant=system.variant)
    config.seed = seed
    config.source.path = str(flags.data / "acl/papers.jsonl.xz")
    config.source = config.source.to_dict() | {"without": LEFT_OUT}
    config.examples.path = config.tasks.matching.path = str(flags.workdir / "pairs.tsv")
    config.tasks.uniform = config.tasks.matching.copy_and_resolve_references()
    config.tasks.uniform.path = str(flags.workdir / "uniform.tsv")
    config.init = flags.init if flags.encoder == "minilm" else None
    config.update_from_flattened_dict(dict(system.fields) | dict(flags.set))
    if flags.encoder == "minilm":
        runs.begin(folder, folder.parent.glob("*"), baselines=True)
    runs.trained(config, folder)
    return folder


def scores(run: Path, line: int, task: str = "matching") -> Values:
    """The measures of the validation pairs in a line of the run's metrics."""
    lines = runs.metrics(run)
    metrics = [each for each in lines if "eval/matching/f1" in each][line]
    found = {name: metrics[f"eval/{task}/{name}"] for name in MEASURES}
    if task == "matching":
        found |= {
            f"uniform {name}": metrics[f"eval/uniform/{name}"] for name in UNIFORM
        }
    return found


def table(of_systems: Mapping[str, Sequence[Values]]) -> str:
    """Means and deviations over seeds, and CoLDE's gain of F1."""
    head = "| system | P | R | F1 | Acc | uniform: F1 | Acc | CoLDE's gain of F1 |"
    lines = [head, "|---" * 8 + "|"]
    names = [*MEASURES, *(f"uniform {name}" for name in UNIFORM)]
    for name, of_seeds in of_systems.items():
        cells = [_mean([each[m] for each in of_seeds if m in each]) for m in names]
        lines.append(f"| {name} | {' | '.join(cells)} | {_gain(of_systems, name)} |")
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> str:
    if not values:
        return ""
    spread = f" +- {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{spread}"


def _gain(of_systems: Mapping[str, Sequence[Values]], name: str) -> str:
    """Paired over seeds; a row without seeds has the same value for each."""
    ours, theirs = of_systems.get(BEST, ()), of_systems[name]
    if name == BEST or len(ours) < 2:
        return ""
    theirs = list(theirs) * (len(ours) if len(theirs) == 1 else 1)
    gains = [a["f1"] - b["f1"] for a, b in zip(ours, theirs, strict=True)]
    mean, count = np.mean(gains), len(gains)
    far = stats.t.ppf(0.975, count - 1) * np.std(gains, ddof=1) / count**0.5
    return f"{mean:+.3f} ({mean - far:+.3f} to {mean + far:+.3f})"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--encoder", default="minilm", choices=("minilm", "small"))
    parser.add_argument("--systems", nargs="+", metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--systems", BEST, "--set", "epochs=null", "steps=2"
    flags = tiny.parse(parser, given, *tiny.TRAINING, *sizes)
    log.install()
    pairs = tables(flags.data, flags.workdir)
    papers = list(acl_papers(flags.data))
    counted = rules(pairs["train"] + pairs["dev"])
    untrained = rows(pairs["dev"], pairs["test"], counted, of_words(papers))
    of_systems = {name: [values] for name, values in untrained}
    for name, system in systems(flags.encoder).items():
        if flags.systems and name not in flags.systems:
            continue
        done = [run(system, name, seed, flags) for seed in flags.seeds]
        if name == BEST and flags.encoder == "minilm":
            of_systems[START] = [scores(done[0], 0)]
        of_systems[name] = [scores(each, -1) for each in done]
        for pieces in PIECES if name == BEST and flags.encoder == "minilm" else ():
            each_seed = [scores(each, -1, f"shuffled_{pieces}") for each in done]
            of_systems[f"{BEST}, {pieces} in random order"] = each_seed
        print(table(of_systems), flush=True)


if __name__ == "__main__":
    main()
