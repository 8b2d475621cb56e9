"""Do trained vectors agree better with people on which news items are similar?

    python -m benchmarks.human_similarity --workdir runs/rated --seeds 0 1 2

`configs/graph_roberta.py:frozen` with MiniLM learns on 350 news items
(`benchmarks/news_texts.py`). Prints the correlation of the cosines of 50 of them, 1,225
pairs, with the similarities that people gave: Pearson's, and Spearman's rank
correlation; and what the judgement of each run keeps. Other rows: MiniLM as it comes,
and TF-IDF.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy import stats

import docjax
from benchmarks import news_texts, runs, tiny
from docjax import config as configs
from docjax.model.document_model import DocumentModel
from docjax.run import baselines


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    runs.add_init(parser)
    runs.add_set(parser)
    sizes = "--workdir", tiny.workdir, "--init", tiny.checkpoint, "--seeds", 0
    flags = tiny.parse(parser, given, *sizes, "--set", "steps=2")
    news = tiny.rated_news if flags.tiny else news_texts.rated_news
    rated, others, similarities = news()
    texts = [*rated, *others]
    tfidf = baselines.TfIdf(texts)
    words, reduced = tfidf(rated).toarray(), tfidf.reduced(rated)
    vectors = {"TF-IDF": words, "TF-IDF, 256 dimensions": reduced}
    vectors["MiniLM"] = docjax.load(flags.init).encode(rated)
    for seed in flags.seeds:
        model, keeps = trained(flags, texts, seed)
        vectors[f"docjax, seed {seed}, keeps {keeps}"] = model.encode(rated)
    print("| vectors | Pearson | Spearman |\n|---|---|---|")
    for name, of_rated in vectors.items():
        pearson, spearman = agreement(of_rated, similarities)
        print(f"| {name} | {pearson:.3f} | {spearman:.3f} |")


def trained(
    flags: argparse.Namespace, texts: Sequence[str], seed: int
) -> tuple[DocumentModel, str]:
    """The model after training on the texts, and what its judgement keeps."""
    source, run = flags.workdir / "rated.jsonl", flags.workdir / str(seed)
    tiny.write(source, ({"id": str(n), "text": text} for n, text in enumerate(texts)))
    config = configs.load("graph_roberta", variant="frozen")
    config.init, config.source.path, config.seed = flags.init, str(source), seed
    config.update_from_flattened_dict(dict(flags.set))
    runs.trained(config, run)
    return docjax.load(run), json.loads((run / "judgement.json").read_text())["keeps"]


def agreement(
    vectors: Float[np.ndarray, "c d"], similarities: Float[np.ndarray, "c c"]
) -> tuple[float, float]:
    """Pearson's and Spearman's correlation of cosines and similarities, over pairs."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = np.triu_indices(len(unit), 1)
    cosines = (unit @ unit.T)[pairs]
    pearson = stats.pearsonr(cosines, similarities[pairs])
    return pearson.statistic, stats.spearmanr(cosines, similarities[pairs]).statistic


if __name__ == "__main__":
    main()
