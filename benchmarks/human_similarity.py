"""Do trained vectors agree better with people on which news items are similar?

    python -m benchmarks.human_similarity --workdir runs/people --seeds 0 1 2

`configs/graph_roberta.py:frozen` with MiniLM learns on 350 news items
(`benchmarks/news_texts.py`). Prints the correlation of the cosines of 50 of them, 1,225
pairs, with the similarities that people gave: Pearson's, and Spearman's rank
correlation. Other rows: MiniLM as it comes, and TF-IDF.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy import stats
from sklearn.feature_extraction.text import TfidfVectorizer

import docjax
from benchmarks import news_texts
from benchmarks.training_pays import MINILM
from docjax import config as configs
from docjax.run.baselines import reduced


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    flags = parser.parse_args()
    compared, others, similarities = news_texts.people()
    texts = [*compared, *others]
    vectors = {
        "TF-IDF": TfidfVectorizer(sublinear_tf=True)
        .fit(texts)
        .transform(compared)
        .toarray(),
        "TF-IDF, 256 dimensions": reduced(texts, compared),
        "MiniLM": docjax.load(MINILM).encode(compared),
    }
    for seed in flags.seeds:
        vectors[f"docjax, seed {seed}"] = trained(flags.workdir, texts, seed)[:50]
    print("| vectors | Pearson | Spearman |\n|---|---|---|")
    for name, each in vectors.items():
        print(f"| {name} | {' | '.join(agreement(each, similarities))} |")


def trained(workdir: Path, texts: Sequence[str], seed: int) -> Float[np.ndarray, "n d"]:
    """The vectors of the texts after training on them."""
    source = workdir / "people.jsonl"
    workdir.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"id": str(n), "text": t}) + "\n" for n, t in enumerate(texts))
    source.write_text("".join(lines), encoding="utf-8")
    config = configs.load("graph_roberta", variant="frozen")
    config.init, config.source.path, config.seed = MINILM, str(source), seed
    return docjax.train(config, str(workdir / str(seed))).encode(texts)


def agreement(
    vectors: Float[np.ndarray, "n d"], similarities: Float[np.ndarray, "n n"]
) -> tuple[str, str]:
    """The correlations of all pairs' cosines with their similarities."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = np.triu_indices(len(unit), 1)
    both = (unit @ unit.T)[pairs], similarities[pairs]
    found = stats.pearsonr(*both), stats.spearmanr(*both)
    return tuple(f"{each.statistic:.3f}" for each in found)


if __name__ == "__main__":
    main()
