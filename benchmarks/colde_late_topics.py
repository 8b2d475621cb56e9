"""Documents whose topic comes late: CoLDE against a siamese encoder of 512 tokens.

    python -m benchmarks.colde_late_topics --workdir runs/late --seeds 0 1 2

Each document begins with two sections of 300 words that all documents could share; its
topic, one of 12, shows only in the two sections after them, where every third word is
one of the topic's 20. Pairs are similar if their topics are equal; the pairs of
training, of choosing the threshold and of scoring have different documents. All systems
train an encoder of one layer of 64 from random weights. Prints the accuracy of the
scored pairs, as the documents are and with the order of their sections shuffled.
"""

import argparse
import dataclasses
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

import docjax
from benchmarks import runs, tiny
from docjax import config as configs
from docjax.data.documents import to_line
from docjax.data.pairs import Pair, write_pairs
from docjax.progress import log
from docjax.tasks.matching import matching
from docjax.types import Document, Section

TOPICS, TOPIC_WORDS, WORDS = 12, 20, 150  # words of a late section
LETTERS = "abdegiklmnorstuvz"
SPLITS = {"train": 1.0, "dev": 0.3, "test": 0.4}  # documents, for one that trains
SYSTEMS: dict[str, dict[str, Any]] = {
    "CoLDE": {
        "config": "colde:acl,small",
        "batch": 48,
        "microbatch": 16,
        "views.fn": "docjax.views.sections.RandomSections",
        "epochs": 50,
        "evaluate_every": 0,  # before training and after it
    },
    "S-BERT at 512": {"config": "siamese:small", "epochs": 4},
}
SIZES = dict(vocabulary=2048, layers=1, width=64, heads=2, hidden=256)  # of both


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents with their topics, and pairs of each split."""

    documents: Sequence[Document]
    topics: Mapping[str, int]
    pairs: Mapping[str, Sequence[Pair]]


def corpus(seed: int, count: int) -> Corpus:
    """The documents of all splits, `count` to train on; as many similar pairs as others."""
    chance = random.Random(seed)
    names = _names(chance)
    topics = [[next(names) for _ in range(TOPIC_WORDS)] for _ in range(TOPICS)]
    common = [next(names) for _ in range(400)]
    documents, of, pairs = [], {}, {}
    for split, share in SPLITS.items():
        ids = [f"{split}{number}" for number in range(round(share * count))]
        for number, name in enumerate(ids):
            of[name] = number % TOPICS
            sections = _sections(chance, common, topics[of[name]])
            documents.append(Document(name, sections))
        pairs[split] = list(_pairs(chance, ids, of))
    return Corpus(documents, of, pairs)


def _names(chance: random.Random) -> Iterator[str]:
    """Different made-up words."""
    made = set()
    while True:
        word = "".join(chance.choices(LETTERS, k=6))
        if word not in made:
            made.add(word)
            yield word


def _sections(
    chance: random.Random, common: Sequence[str], topic: Sequence[str]
) -> tuple[Section, ...]:
    """Two sections without the topic, and two with it."""
    sections = []
    for number in range(4):
        words = chance.choices(common, k=WORDS * (2 if number < 2 else 1))
        if number >= 2:
            words[::3] = chance.choices(topic, k=len(words[::3]))
        sentences = (" ".join(words[i : i + 15]) for i in range(0, len(words), 15))
        sections.append(Section(f"Part {number}", ". ".join(sentences) + "."))
    return tuple(sections)


def _pairs(
    chance: random.Random, ids: Sequence[str], topics: Mapping[str, int]
) -> Iterator[Pair]:
    """For each document up to four of its topic and as many others, no pair twice."""
    known = set()
    for name in ids:
        most = 4
        for similar in (True, False):
            others = [
                other
                for other in ids
                if (topics[other] == topics[name]) == similar
                and other != name
                and frozenset((name, other)) not in known
            ]
            most = min(most, len(others))
            for other in chance.sample(others, most):
                known.add(frozenset((name, other)))
                yield Pair(name, other, similar)


def shuffled(documents: Sequence[Document], seed: int) -> list[Document]:
    """The documents with their sections in random order."""
    chance = random.Random(seed)
    order = lambda d: tuple(chance.sample(d.sections, len(d.sections)))
    return [dataclasses.replace(each, sections=order(each)) for each in documents]


def run(name: str, made: Corpus, seed: int, flags: argparse.Namespace) -> Path:
    """The run of a system; trained if it has not ended yet."""
    folder = flags.workdir / f"{name.replace(' ', '_')}-{seed}"
    if runs.is_done(folder):
        return folder
    data = flags.workdir / f"data-{folder.name}"
    data.mkdir(parents=True, exist_ok=True)
    source, table = data / "corpus.jsonl", data / "pairs.tsv"
    source.write_text("".join(map(_line, made.documents)), encoding="utf-8")
    write_pairs(table, made.pairs)
    fields = dict(SYSTEMS[name])
    config = configs.load(fields.pop("config"))
    config.seed = seed
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(source))
    config.examples.path = config.tasks.matching.path = str(table)
    config.tokenizer.train.vocabulary = 2048
    config.encoder.segment.update(SIZES)
    config.update_from_flattened_dict(fields | dict(flags.set))
    runs.trained(config, folder)
    return folder


def _line(document: Document) -> str:
    """The document with its split: only those of training pairs are trained on."""
    split = "train" if document.id.startswith("train") else "test"
    return json.dumps(json.loads(to_line(document)) | {"split": split}) + "\n"


def accuracy(run: Path, made: Corpus, documents: Sequence[Document]) -> float:
    """The accuracy of the scored pairs of these documents."""
    vectors = docjax.load(run).encode(list(documents))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    row = {document.id: number for number, document in enumerate(documents)}

    def part(split: str) -> tuple[Float[np.ndarray, " e"], Bool[np.ndarray, " e"]]:
        a, b, similar = zip(*made.pairs[split], strict=True)
        left, right = (vectors[[row[name] for name in side]] for side in (a, b))
        return (left * right).sum(1), np.array(similar)

    return matching(part("dev"), part("test"))["accuracy"]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--documents", type=int, default=240, help="to train on")
    runs.add_set(parser)
    sizes = "--workdir", tiny.workdir, "--systems", "S-BERT at 512", "--documents", 48
    fields = "epochs=null", "steps=1", "batch=8", "limits.segment_tokens=32"
    flags = tiny.parse(parser, given, *sizes, "--set", *fields)
    log.install()
    for seed in flags.seeds:
        made = corpus(seed, flags.documents)
        for name in flags.systems:
            folder = run(name, made, seed, flags)
            accuracies = {
                "as they are": accuracy(folder, made, made.documents),
                "shuffled": accuracy(folder, made, shuffled(made.documents, seed)),
            }
            print(json.dumps({"system": name, "seed": seed} | accuracies), flush=True)


if __name__ == "__main__":
    main()
