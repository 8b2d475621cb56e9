"""The flag `--tiny` of every benchmark, and the made data that it reads.

`--tiny` means the same everywhere: the smallest sizes and made data, no download, a few
seconds. The figures mean nothing. tests/test_benchmarks_tiny.py runs every benchmark so,
and fails for one that has no tiny mode: a change of docjax cannot break one unseen.
"""

import argparse
import functools
import json
import lzma
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tiny_transformer import checkpoint, vocabulary, workdir

TOPICS, TRAIN, TEST = 4, 120, 40  # documents; of fewer none are left out to judge
CORPORA = ("20news", "r8")
COLLECTIONS = ("cisi", "nfcorpus_proc")
JUDGED = {"dev": range(16), "test": range(16, 24)}  # the queries of a collection


def parse(
    parser: argparse.ArgumentParser,
    given: Sequence[str] | None,
    *sizes: str | int | Callable[[], Path],
) -> argparse.Namespace:
    """The flags in `given`, or those of the command.

    With `--tiny` the words of `sizes` come first, so that what is given overrides them;
    a function, such as `data`, gives a path.
    """
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, made data")
    words = sys.argv[1:] if given is None else list(given)
    if "--tiny" in words:
        words = [str(size() if callable(size) else size) for size in sizes] + words
    return parser.parse_args(words)


def documents() -> Path:
    """A file of made documents with sections, labels and splits."""
    return data() / "20news.jsonl.xz"


def collection() -> Path:
    """A retrieval collection."""
    return data() / COLLECTIONS[0]


def pairs() -> Path:
    """A table of pairs of the documents in `documents`."""
    return data() / "pairs.tsv"


@functools.cache
def data() -> Path:
    """A folder of made data under the names of the real data."""
    folder, made = workdir(), list(_documents())
    for name in CORPORA:
        write(folder / f"{name}.jsonl.xz", made)
    write(folder / "acl/papers.jsonl.xz", made)
    ids = [document["id"] for document in made]
    found = list(_pairs(ids))
    for name in ("acl/pairs.tsv", "acl/pairs_uniform.tsv"):
        _write_table(
            folder / name, found, {"train": slice(0, 240), "dev": slice(240, 320)}
        )
    parts = {"train": slice(0, 160), "dev": slice(160, 240), "test": slice(240, 320)}
    _write_table(folder / "pairs.tsv", found, parts)
    for name in COLLECTIONS:
        _write_collection(folder / name, made)
    return folder


def rated_news() -> tuple[list[str], list[str], np.ndarray]:
    """Texts that people would have rated, others, and the rating of each pair."""
    texts = [" ".join(each["text"] for each in d["sections"]) for d in _documents()]
    topics = np.arange(TEST) % TOPICS
    return texts[:TEST], texts[TEST:], 1.0 * (topics[:, None] == topics)


def _documents() -> Iterator[dict[str, Any]]:
    """Documents of TOPICS labels with three sections; their ids have a year."""
    chance, words = random.Random(0), vocabulary()[1000:]
    topics = [chance.sample(words, 20) for _ in range(TOPICS)]
    for number in range(TRAIN + TEST):
        known = topics[number % TOPICS] + words[:20]
        texts = [" ".join(chance.choices(known, k=10)) for _ in range(7)]
        sections = [
            {"heading": f"Part {i}", "text": f"{texts[i]}. {texts[i + 3]}."}
            for i in range(3)
        ]
        yield {
            "id": f"P{number % 20:02}-{number:04}",
            "title": texts[6],
            "sections": sections,
            "label": f"topic{number % TOPICS}",
            "split": "train" if number < TRAIN else "test",
        }


def _pairs(ids: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Two pairs with each document: one of its topic, and one of the next topic."""
    for number, name in enumerate(ids):
        for step in (TOPICS, 1) if number % 2 else (1, TOPICS):
            yield ids[(number + step) % len(ids)], name, int(step == TOPICS)


def _write_table(path: Path, pairs: Sequence, parts: dict[str, slice]) -> None:
    lines = ["split\tsource\ttarget\tlabel"]
    for split, which in parts.items():
        lines += ["\t".join(map(str, (split, *pair))) for pair in pairs[which]]
    path.write_text("\n".join(lines) + "\n")


def _write_collection(folder: Path, made: Sequence[dict]) -> None:
    """Documents whose titles are queries."""
    text = lambda document: " ".join(part["text"] for part in document["sections"])
    write(
        folder / "corpus.jsonl.xz",
        ({"_id": each["id"], "text": text(each)} for each in made),
    )
    titles = ({"_id": f"q{i}", "text": made[i]["title"]} for i in range(24))
    write(folder / "queries.jsonl", titles)
    for part, numbers in JUDGED.items():
        lines = [f"q{i}\t{made[i]['id']}\t1\n" for i in numbers]
        path = folder / f"qrels/{part}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


def write(path: Path, records: Iterable[dict]) -> None:
    """Writes JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(record) + "\n" for record in records)


# The flags of a benchmark that trains.
TRAINING = "--data", data, "--workdir", workdir, "--init", checkpoint
