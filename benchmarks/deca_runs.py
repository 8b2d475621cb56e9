"""Measures the figures of DECA's tables: trained runs, libraries, BERT.

A file beside each run keeps the resolved config and the metrics:
WORKDIR/DATASET/SYSTEM-SEED.json, r8/lambda-WEIGHT-SEED.json, r8/KIND-WAY-SEED.json,
mr/SYSTEM-batch-SIZE-SEED.json. deca_tables.py has the names.
"""

import argparse
import copy
import dataclasses
import json
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from benchmarks import baselines, runs
from benchmarks.deca_tables import CLUSTERED, ON_BERT
from docjax import config as config_lib
from docjax.data.corpus import Corpus
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import Whole
from docjax.data.vocabulary import vocabulary
from docjax.huggingface import weights as huggingface
from docjax.parts import named
from docjax.run.prepare import prepare
from docjax.run.prepared import Prepared
from docjax.run.side_by_side import all_words
from docjax.storage import atomic
from docjax.types import Document, Section

logger = logging.getLogger("docjax.benchmarks")

ONCE = ("tfidf", *baselines.BERT)  # no seed changes them
MINILM = "all-MiniLM-L6-v2"  # where --bert names no other transformer


def of_system(
    system: str, dataset: str, seed: int, flags: argparse.Namespace
) -> dict[str, float] | None:
    """The metrics of a system on a dataset (Tables 3 and 4)."""
    run = flags.workdir / dataset / f"{system}-{seed}"
    if system in ON_BERT:
        asked = on_bert(system, dataset, seed, flags)
        return measured(run, asked, lambda: fine_tuned(asked, run, flags), flags)
    variant = ",simsiam" if system == "deca_ss" else ""
    asked = config(dataset, seed, flags, variant)
    if system in baselines.BERT:
        asked.init = flags.bert or MINILM
    if system == "doc2vecc":
        asked.objective.weight = 0.0

    def measure() -> dict[str, float]:
        if system in baselines.LIBRARY:
            return baselines.of_library(system, words(asked, run.parent))
        if system in baselines.BERT:
            return baselines.of_bert(system, words(asked, run.parent), bert(flags))
        return trained(asked, run)

    return measured(run, asked, measure, flags, system)


def of_weight(
    weight: float, seed: int, flags: argparse.Namespace
) -> dict[str, float] | None:
    """The metrics of DECA with a lambda on R8 (Figure 3)."""
    asked, run = config("r8", seed, flags), flags.workdir / f"r8/lambda-{weight}-{seed}"
    asked.objective.weight = weight
    return measured(run, asked, lambda: trained(asked, run), flags)


def of_batch(
    system: str, size: str, seed: int, flags: argparse.Namespace
) -> dict[str, float] | None:
    """The metrics of DECA on BERT on MR with batches of a size (Table 7)."""
    asked = on_bert(system, "mr", seed, flags)
    run = flags.workdir / f"mr/{system}-batch-{size}-{seed}"
    asked.limits.segment_tokens = 64
    asked.batch = asked.microbatch = int(size)
    return measured(run, asked, lambda: fine_tuned(asked, run, flags), flags)


def of_paraphrases(
    way: str, kind: str, seed: int, flags: argparse.Namespace
) -> dict[str, float] | None:
    """The metrics of paraphrases on R8 (Table 5).

    "contrastive" uses them in the contrastive loss. Any other way appends them to the
    documents of Doc2vecC; "open" also takes words outside the vocabulary.
    """
    asked, run = config("r8", seed, flags), flags.workdir / f"r8/{kind}-{way}-{seed}"
    view(asked, kind, flags)
    if way == "contrastive":
        return measured(run, asked, lambda: trained(asked, run), flags)
    begun, path = copy.deepcopy(asked), run.with_suffix(".jsonl")
    asked.source.path = str(path)
    asked.objective.weight = 0.0

    def measure() -> dict[str, float]:
        tokenizer = append(path, begun, seed, flags, outside=way == "open")
        # Not one of the words that are frequent enough: they would be the old ones.
        own = copy.deepcopy(asked)
        own.tokenizer.path = str(run.with_suffix(".tokenizer.json"))
        tokenizer.save(Path(own.tokenizer.path))
        own.encoder.segment.vocabulary = tokenizer.vocabulary
        return ended(own, run)

    return measured(run, asked, measure, flags)


def measured(
    run: Path,
    asked: ConfigDict,
    measure: Callable[[], dict[str, float]],
    flags: argparse.Namespace,
    system: str = "deca",
) -> dict[str, float] | None:
    """The result of `measure`, kept in a file; None if `only_measured` finds no file.

    The file holds for all configs that agree in the fields that the system reads.
    """
    path = run.with_name(f"{run.name}.json")  # a lambda has no suffix but a point
    plain = named.plain(asked)
    if path.exists():
        before, found = json.loads(path.read_text())
        if _read(system, before) != _read(system, plain):
            raise SystemExit(f"{run} was measured with another config: --workdir")
        return found
    if flags.only_measured:
        return None
    found = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(path, json.dumps([plain, found]))
    logger.info("%s: %s", run, found)
    return found


def _read(system: str, plain: dict) -> dict:
    """The fields of a config that a system reads."""
    if system not in (*baselines.LIBRARY, *baselines.BERT):
        return plain
    names = ["source", "holdout", "splits", "tasks"]
    if system in baselines.LIBRARY:
        names += ["transductive", "tokenizer", "units", "segments", "limits"]
    else:
        names.append("init")
    if system not in ONCE:
        names.append("seed")
    found = {name: plain[name] for name in names}
    if system in baselines.WINDOWS:
        found |= {name: plain["objective"][name] for name in ("window", "negatives")}
    return found


def config(
    dataset: str, seed: int, flags: argparse.Namespace, variant: str = ""
) -> ConfigDict:
    """The config of DECA on a dataset; `variant` follows the dataset's name."""
    found = config_lib.load("deca", variant=dataset + variant)
    found.tokenizer.train.lexicons = flags.lexicons
    return with_flags(found, dataset, seed, flags)


def on_bert(
    system: str, dataset: str, seed: int, flags: argparse.Namespace
) -> ConfigDict:
    """The config of DECA on BERT."""
    variant = f"{dataset},simsiam" if system == "deca_bert_ss" else dataset
    found = config_lib.load("deca_bert", variant=variant)
    found.init = flags.bert or MINILM
    return with_flags(found, dataset, seed, flags)


def with_flags(
    found: ConfigDict, dataset: str, seed: int, flags: argparse.Namespace
) -> ConfigDict:
    """A config with the files and the fields of the flags."""
    found.seed = seed
    name = "imdb*" if dataset == "imdb" else dataset
    found.source.path = str(flags.data / f"{name}.jsonl.xz")
    view(found, found.views.fn.rpartition(".")[2], flags)
    if flags.validate:
        fn = "docjax.data.splits.holdout"
        found.holdout = dict(fn=fn, of="train", test=0.0, validation=0.2)
        found.splits.test = "validation"
    if dataset not in CLUSTERED:
        del found.tasks["clustering"], found.tasks["clustering_raw"]
    found.update_from_flattened_dict(dict(flags.set))
    return found


def bert(flags: argparse.Namespace) -> str:
    """The folder or name of the transformer."""
    return flags.bert or runs.MINILM


def view(config: ConfigDict, name: str, flags: argparse.Namespace) -> None:
    """Sets the kind of paraphrases."""
    before, config.views = config.views.to_dict(), None
    rest = {key: before[key] for key in ("least_count",) if key in before}
    fn = f"docjax.views.replaced.{name}"
    where = dict(path=flags.pairs) if name == "Paraphrases" else None
    where = where or dict(lexicons=flags.lexicons)
    config.views = dict(fn=fn, **where, **(rest if name != "Uninformative" else {}))


def words(asked: ConfigDict, folder: Path) -> Prepared:
    """The words of a dataset, read once for all runs on the dataset."""
    plain = ConfigDict(asked.to_dict())
    plain.objective.contrastive, plain.objective.weight = None, 0.0
    plain.init = None
    with plain.unlocked():
        plain.views = dict(fn="docjax.views.whole.Whole")
    return prepare(plain, folder / "words")


def trained(asked: ConfigDict, run: Path) -> dict[str, float]:
    """The final metrics of a run on the words of its dataset."""
    if not run.exists():
        read = words(asked, run.parent).run
        shutil.copytree(read, run, copy_function=os.link)
    return ended(asked, run)


def fine_tuned(
    asked: ConfigDict, run: Path, flags: argparse.Namespace
) -> dict[str, float]:
    """The final metrics of a run that begins with the transformer."""
    own = copy.deepcopy(asked)
    own.init = bert(flags)
    own.encoder.segment.update(huggingface.load(own.init).keywords)
    return ended(own, run)


def ended(asked: ConfigDict, run: Path) -> dict[str, float]:
    """The final metrics of a run of this config."""
    return {
        name.removeprefix("eval/"): value
        for name, value in runs.trained(asked, run)[-1].items()
        if name.startswith("eval/")
    }


def append(
    path: Path, asked: ConfigDict, seed: int, flags: argparse.Namespace, outside: bool
) -> Tokenizer:
    """Writes the words of each document and of a paraphrase; returns their tokenizer.

    If `outside`, replacements may be words that the corpus does not have.
    """
    prepared, views = words(asked, path.parent), named.build(asked.views)
    tokenizer, corpus = prepared.tokenizer, prepared.corpus
    documents = _of_vocabulary(prepared)
    if outside:
        known = set(vocabulary(tokenizer, corpus).ids)
        # Words as they are: the texts are written with spaces between them.
        tokenizer = all_words(known, flags.lexicons, flags.pairs, r"\S+")
        folder = path.with_suffix(".corpus")
        corpus = Corpus.build(
            folder, documents, Whole(), tokenizer, 512, tokenizer.sha256
        )
        if hasattr(views, "least_count"):
            views = dataclasses.replace(views, least_count=0)
    fitted = views.fitted(tokenizer, corpus)
    with open(path, "w", encoding="utf-8") as lines:
        for i, document in enumerate(documents):
            other = fitted(corpus[i], np.random.default_rng((seed, i)))[1]
            added = tokenizer.backend.decode(other.tokens.tolist())
            record = dict(id=document.id, label=document.label, split=document.split)
            record["text"] = f"{document.sections[0].text} {added}"
            lines.write(json.dumps(record) + "\n")
    return tokenizer


def _of_vocabulary(prepared: Prepared) -> list[Document]:
    """The documents with only the words of the vocabulary."""
    decode, corpus = prepared.tokenizer.backend.decode, prepared.corpus
    return [
        dataclasses.replace(
            document,
            title="",
            sections=(Section("", decode(corpus[i].tokens.tolist())),),
        )
        for i, document in enumerate(prepared.documents())
    ]
