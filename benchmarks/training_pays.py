"""Does training on a corpus pay? The recipe graph_roberta:frozen against what a user has.

    python -m benchmarks.training_pays --data FOLDER --workdir runs/pays \
        --corpora r8 openstax cranfield --seeds 0 1 2

Each corpus is trained on with `configs/graph_roberta.py:frozen` and a frozen MiniLM,
without labels or judgements, which only measure. Rows: the plain MiniLM over all words
and cut at its limit, TF-IDF whole and reduced, docjax, and with --deca DECA. All runs
lie under --workdir; the same command resumes them and does not repeat a run that has
ended. The last table has the gain over the better of the two MiniLM rows, with a 95 %
interval over corpora. --variant tune trains all weights, in another --workdir. Corpora
that no setting was chosen on: benchmarks/debian_texts.py, benchmarks/news_texts.py.
"""

import argparse
import json
import lzma
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from benchmarks import debian_texts, news_texts, tiny
from benchmarks.runs import add_init, add_set, begin, trained
from docjax import config as configs

LABELLED = ("clustering/nmi", "clustering/purity", "classification/accuracy")
SHOTS, NDCG = "few_shot/accuracy", "retrieval/dense/ndcg@10"
METRICS = (*LABELLED, SHOTS, NDCG, "matching/f1")
TITLES = "NMI | purity | accuracy | 10-shot | nDCG@10 | citations, F1"
PLAIN = "MiniLM, all words"
OF_INIT = (PLAIN, "MiniLM, cut")
OF_WORDS = ("TF-IDF, all words", "TF-IDF, 256 dimensions", "BM25")
CHUNK = 1500  # words of a piece of a book
HEADLINES, FIVE_GROUPS = "headlines", "fivegroups"
DEBIAN = {  # no setting was chosen on these
    "packages": debian_texts.packages,
    "manuals": debian_texts.manuals,
    "chapters": debian_texts.chapters,
    "kernel": debian_texts.kernel,
    "help": debian_texts.help_pages,
}

Lines = Iterator[dict[str, Any]]


def files(data: Path, corpus: str, folder: Path) -> Path:
    """The JSON lines of a corpus; made in `folder` if no file has them."""
    if corpus == HEADLINES:
        return news_texts.headlines(folder / corpus)
    parts = {
        "imdb": lambda: _sample(data),
        "gutenberg": lambda: _authors(data),
        FIVE_GROUPS: lambda: news_texts.five_groups(read(data / "20news.jsonl.xz")),
    }
    make = (parts | DEBIAN).get(corpus)
    if make is None:
        return data / FILES.get(corpus, f"{corpus}.jsonl.xz")
    path = folder / f"{corpus}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(line) + "\n" for line in make())
        path.write_text("".join(lines), encoding="utf-8")
    return path


def read(path: Path) -> Lines:
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def _sample(data: Path) -> Lines:
    """Every tenth review of IMDB."""
    yield from list(read(data / "imdb.jsonl.xz"))[::10]


def _authors(data: Path) -> Lines:
    """Pieces of books by their author, at most 30 of a book."""
    for book in read(data / "gutenberg17.jsonl.xz"):
        words = book["text"].split()
        pieces = [words[i : i + CHUNK] for i in range(0, len(words) - CHUNK, CHUNK)]
        author = re.split("[-_]", book["id"])[0]
        for number, piece in enumerate(pieces[:: -(-len(pieces) // 30)]):
            name = f"{book['id']}-{number}"
            yield {"id": name, "text": " ".join(piece), "label": author}


def _pairs(data: Path, folder: Path) -> Path:
    """The pairs of ACL papers; the last known split is the test."""
    path = folder / "acl-pairs.tsv"
    folder.mkdir(parents=True, exist_ok=True)
    lines = (data / "acl" / "pairs.tsv").read_text(encoding="utf-8").split("\n")
    lines = [re.sub("^dev\t", "test\t", line) for line in lines]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


FILES = {
    "acl": "acl/papers.jsonl.xz",
    "mr": "mr.jsonl.xz",
    "reviews": "movie_reviews2k.jsonl.xz",
    **{
        name: f"{folder}/corpus.jsonl.xz"
        for name, folder in {
            **{n: n for n in ("cranfield", "cisi", "med", "lisa", "npl")},
            "nfcorpus": "nfcorpus_proc",
        }.items()
    },
}
HOLDOUT = {"openstax": dict(test=0.2, by="chapter")}
CORPORA = (
    *("20news", "r8", "r52", "mr", "imdb", "openstax", "hyperpartisan", "reviews"),
    *("gutenberg", "cranfield", "cisi", "med", "lisa", "npl", "nfcorpus", "acl"),
)
KNOWN = (*CORPORA, *DEBIAN, HEADLINES, FIVE_GROUPS)


def config(corpus: str, flags: argparse.Namespace, seed: int) -> Any:
    """The recipe for a corpus; nothing but the data and the tasks is set."""
    found = configs.load("graph_roberta", variant=flags.variant)
    found.init = flags.init
    _set_data(found, corpus, flags, seed)
    found.update_from_flattened_dict(dict(flags.set))
    return found


def deca_config(corpus: str, flags: argparse.Namespace, seed: int) -> Any:
    """DECA by the rule of `configs/deca.py`, with paraphrases that drop words."""
    documents, words, _ = facts(corpus, flags)
    found = configs.load("deca", variant="20news" if documents * words > 8e5 else "r52")
    found.views = dict(fn="docjax.views.replaced.Dropped")
    found.tokenizer.train.stop_words = False  # no lexicon
    found.tasks = config(corpus, flags, seed).tasks
    _set_data(found, corpus, flags, seed)
    return found


def _set_data(found: Any, corpus: str, flags: argparse.Namespace, seed: int) -> None:
    path = files(flags.data, corpus, flags.workdir / "made")
    found.source.path, found.seed = str(path), seed
    found.source.max_bad_fraction = 0.01  # Cranfield has two empty documents
    if corpus in HOLDOUT:
        found.holdout = dict(fn="docjax.data.splits.holdout", **HOLDOUT[corpus])
    if path.name.startswith("corpus."):
        task = dict(
            fn="docjax.tasks.retrieval.Retrieval",
            path=str(path.parent),
            max_bad_fraction=0.01,
        )
        found.tasks = dict(retrieval=task)
    elif corpus == "acl":
        pairs = str(_pairs(flags.data, flags.workdir / "made"))
        task = dict(fn="docjax.tasks.matching.Matching", path=pairs)
        found.tasks = dict(matching=task)
    else:  # k-means and the drawn documents differ from seed to seed, for all rows
        found.tasks.clustering.seed = found.tasks.few_shot.seed = seed


def of_deca(corpus: str, flags: argparse.Namespace, seed: int) -> dict[str, float]:
    """The metrics of DECA; kept in a file beside its run."""
    run = flags.workdir / f"deca-{corpus}-{seed}"
    path = run / "measured.json"
    if not path.exists():
        scores = trained(deca_config(corpus, flags, seed), run)[-1]
        found = {m: scores[f"eval/{m}"] for m in METRICS if f"eval/{m}" in scores}
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


def measured(corpus: str, flags: argparse.Namespace, seed: int) -> dict[str, dict]:
    """The metrics of each system, by name; kept in a file beside the run.

    Raises:
      SystemExit: if the run is one of the other variant.
    """
    run = flags.workdir / f"{corpus}-{seed}"
    path = run / "measured.json"
    if path.exists():
        frozen = json.loads((run / "config.json").read_text())["encoder"]["frozen"]
        if (frozen == "segment/") != (flags.variant == "frozen"):
            raise SystemExit(f"{run} is of the other variant: give another --workdir")
        return json.loads(path.read_text())
    asked, started = config(corpus, flags, seed), time.perf_counter()
    begin(run, flags.workdir.glob(f"{corpus}-*"), baselines=False)
    lines = trained(asked, run)
    scored = [line for line in lines if any(f"eval/{m}" in line for m in METRICS)]
    found = {"before training": scored[0], "docjax": scored[-1]}
    kept_baselines = run / "baselines.json"
    known = json.loads(kept_baselines.read_text()) if kept_baselines.exists() else {}
    for name, scores in known.items():
        cut, plain = name.startswith("init, cut"), name.startswith("init")
        found["MiniLM, cut" if cut else PLAIN if plain else name] = scores
    if "retrieval" in asked.tasks:
        found["BM25"] = {f"eval/{NDCG}": scored[-1]["eval/retrieval/bm25/ndcg@10"]}
    kept = {
        name: {m: scores[f"eval/{m}"] for m in METRICS if f"eval/{m}" in scores}
        for name, scores in found.items()
    }
    judged = json.loads((run / "judgement.json").read_text())
    facts = {"keeps": judged["keeps"], "seconds": time.perf_counter() - started}
    path.write_text(json.dumps(kept | {"facts": facts}))
    return kept | {"facts": facts}


def facts(corpus: str, flags: argparse.Namespace) -> tuple[int, float, float]:
    """The documents of a corpus, their mean number of words, and pieces in a word."""
    folder = min(flags.workdir.glob(f"{corpus}-*/corpus"))
    found = json.loads((folder / "corpus.json").read_text())["summary"]
    documents, words, tokens = (found[n] for n in ("documents", "words", "tokens"))
    return documents, words / documents, tokens / words


def parse(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", choices=KNOWN, default=CORPORA)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    variants = ("frozen", "tune")
    parser.add_argument("--variant", default="frozen", choices=variants)
    parser.add_argument("--deca", action="store_true", help="train DECA too")
    add_init(parser)
    add_set(parser)
    sizes = "--corpora", "20news", "--seeds", 0, "--set", "steps=2"
    return tiny.parse(parser, given, *tiny.TRAINING, *sizes)


def main(given: Sequence[str] | None = None) -> None:
    flags = parse(given)
    print(f"| corpus | documents, words | system | {TITLES} |")
    print("|---|---|---|---|---|---|---|---|---|")
    gains: dict[str, dict[str, float]] = {}
    over_words: dict[str, dict[str, float]] = {}
    for corpus in flags.corpora:
        runs = [measured(corpus, flags, seed) for seed in flags.seeds]
        for run, seed in zip(runs, flags.seeds if flags.deca else ()):
            run["DECA"] = of_deca(corpus, flags, seed)
        documents, words, _ = facts(corpus, flags)
        for name in (n for n in runs[0] if n != "facts"):
            values = [_mean(runs, name, metric) for metric in METRICS]
            cells = " | ".join("" if v is None else f"{v:.3f}" for v in values)
            print(
                f"| {corpus} | {documents:,}, {words:.0f} | {name} | {cells} |",
                flush=True,
            )
        gains[corpus] = _gain(runs)
        over_words[corpus] = _gain(runs, OF_WORDS)
        kept = ", ".join(run["facts"]["keeps"] for run in runs)
        print(f"{corpus}: the runs keep {kept}", flush=True)
    print(
        "\n| metric | mean gain | 95 % interval | better on | worst |\n|---|---|---|---|---|"
    )
    for metric in METRICS:
        values = {c: each[metric] for c, each in gains.items() if metric in each}
        if values:
            print(f"| {metric} | {_summary(values)} |")
    _by_corpus(gains, over_words, flags)


def _by_corpus(gains: dict, over_words: dict, flags: argparse.Namespace) -> None:
    """Prints the gains by corpus, the most usual words first."""
    rows = sorted((facts(corpus, flags)[::-1], corpus) for corpus in gains)
    for known, title in ((gains, "MiniLM"), (over_words, "TF-IDF or BM25")):
        print(f"\n| over {title} | documents | words | pieces in a word | {TITLES} |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for (pieces, words, documents), corpus in rows:
            values = [known[corpus].get(metric) for metric in METRICS]
            cells = " | ".join("" if v is None else f"{v:+.3f}" for v in values)
            print(
                f"| {corpus} | {documents:,} | {words:.0f} | {pieces:.2f} | {cells} |"
            )


def _mean(runs: list[dict], name: str, metric: str) -> float | None:
    values = [run[name][metric] for run in runs if metric in run.get(name, {})]
    return float(np.mean(values)) if values else None


def _gain(runs: list[dict], others: tuple[str, ...] = OF_INIT) -> dict[str, float]:
    """docjax's mean over the seeds, less that of the best of the other rows."""
    gains = {}
    for metric in METRICS:
        ours = _mean(runs, "docjax", metric)
        plain = [_mean(runs, name, metric) for name in others]
        plain = [value for value in plain if value is not None]
        if ours is not None and plain:
            gains[metric] = ours - max(plain)
    return gains


def _summary(values: dict[str, float]) -> str:
    gains = np.array(list(values.values()))
    mean, worst, interval = gains.mean(), min(values, key=values.get), ""
    if len(gains) > 1:
        quantile = scipy.stats.t.ppf(0.975, len(gains) - 1)  # the corpora are few
        width = quantile * gains.std(ddof=1) / len(gains) ** 0.5
        interval = f"{mean - width:+.3f} to {mean + width:+.3f}"
    return (
        f"{mean:+.3f} | {interval} | {(gains > 0).sum()} of {len(gains)} "
        f"| {worst} {values[worst]:+.3f}"
    )


if __name__ == "__main__":
    main()
