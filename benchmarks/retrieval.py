"""Retrieval by words, vectors, passages and both, on small test collections.

    python -m benchmarks.retrieval --data DATA

Prints a Markdown table of nDCG@10, and the gain of each system over the documents'
vectors with a 95 % interval over queries. Fails unless, on every collection, the best
fused system is above BM25 and above the vectors. Cross-validation chooses the weight of
a fusion where a collection has no other split. Cranfield's two empty documents are left
out.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import docjax
from benchmarks import runs, tiny
from docjax.model.evaluate import evaluate_model
from docjax.retrieval.systems import NAMES

COLLECTIONS = ("cranfield", "cisi", "med", "lisa", "npl", "nfcorpus_proc")
BAD = 0.01  # of the documents may be empty
METRIC = "ndcg@10"
SYSTEMS = (*NAMES, "fused_raw")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--model", default=runs.MINILM)
    parser.add_argument("--words", default="docjax", help="settings of BM25")
    sizes = "--data", tiny.data, "--collections", "cisi", "--model", tiny.checkpoint
    flags = tiny.parse(parser, given, *sizes)
    model = docjax.load(flags.model)
    print(f"| collection | {' | '.join(SYSTEMS)} | best fused above both |")
    print("|---" * (len(SYSTEMS) + 2) + "|")
    rows, above = [], []
    for name in flags.collections:
        path, options = str(flags.data / name), {"words": flags.words}
        options |= {"reading": {"max_bad_fraction": BAD}, "compare": "dense"}
        found = evaluate_model(model, "retrieval", path, passages=True, **options)
        raw = evaluate_model(model, "retrieval", path, scale="raw", **options)
        found |= {
            key.replace("/fused/", "/fused_raw/"): value
            for key, value in raw.items()
            if key.startswith("eval/retrieval/fused/")
        }
        rows.append([found[f"eval/retrieval/{s}/{METRIC}"] for s in SYSTEMS])
        best = max(v for s, v in zip(SYSTEMS, rows[-1]) if s.startswith("fused"))
        above.append(best > max(rows[-1][:2]))
        cells = [cell(found, system) for system in SYSTEMS]
        print(f"| {name} | {' | '.join(cells)} | {above[-1]} |", flush=True)
    means = [f"{mean:.3f}" for mean in np.mean(rows, axis=0)]
    print(f"| mean | {' | '.join(means)} | {sum(above)} of {len(above)} |")
    return 0 if all(above) or flags.tiny else 1


def cell(found: dict[str, float], system: str) -> str:
    """A system's score, and its gain over the vectors with the interval."""
    name = f"eval/retrieval/{system}/{METRIC}"
    if f"{name}_gain" not in found:
        return f"{found[name]:.3f}"
    low, high = found[f"{name}_gain_low"], found[f"{name}_gain_high"]
    return f"{found[name]:.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    sys.exit(main())
