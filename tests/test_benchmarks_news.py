"""News as a retrieval collection."""

import csv
import io
import json
import zipfile

import numpy as np
import pytest

from benchmarks import human_similarity, news_texts
from docjax.retrieval import collection


def test_a_headline_asks_for_its_article_and_doubles_are_left_out(
    tmp_path, monkeypatch
):
    data = tmp_path / "package/data/en"
    data.mkdir(parents=True)
    long = [" ".join([word] * 100) for word in ("ships", "rain", "votes")]
    articles = [
        ("1", "Ships", long[0]),
        ("2", "Rain", long[1]),
        ("3", "Rain", long[2]),  # one of the two titles goes
        ("4", "Short", "too short"),
        ("5", "", long[2]),
    ]
    text = io.StringIO()
    csv.writer(text).writerows([("article_id", "title", "text"), *articles])
    with zipfile.ZipFile(data / "NewsArticles.zip", "w") as archive:
        archive.writestr("NewsArticles.csv", text.getvalue())
    monkeypatch.setattr(news_texts, "_package", lambda name: tmp_path / "package")
    path = news_texts.headlines(tmp_path / "headlines")
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    titles = {name: title for name, title, _ in articles}
    assert sorted(titles[document["_id"]] for document in kept) == ["Rain", "Ships"]
    found = collection.read(path.parent)
    assert found.test == {document["_id"]: {document["_id"]: 1} for document in kept}
    assert set(found.queries.values()) == {"Rain", "Ships"}


def test_five_groups_have_as_many_messages_each_without_headers(monkeypatch):
    monkeypatch.setattr(news_texts, "EACH", 2)
    labels = (*news_texts.GROUPS, "misc.forsale")
    messages = [
        {"id": f"{label}-{n}", "text": f"Subject: x\n\n{'word ' * n}", "label": label}
        for label in labels
        for n in (59, 60, 800, 801)
    ]
    found = [*news_texts.five_groups(messages)]
    lengths = [len(message["text"].split()) for message in found]
    assert sorted(lengths) == [60] * 5 + [800] * 5
    assert {message["label"] for message in found} == set(news_texts.GROUPS)


def test_a_package_that_is_missing_is_named():
    with pytest.raises(SystemExit, match="no_such_package is not installed"):
        news_texts._package("no_such_package")


def test_agreement_is_over_pairs_of_different_items_and_ignores_lengths():
    vectors = np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [3.0, 4.0]])
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    cosines = unit @ unit.T
    changed = cosines**3 - 5 * np.eye(4)  # same order of pairs
    assert human_similarity.agreement(vectors, cosines) == ("1.000", "1.000")
    pearson, spearman = human_similarity.agreement(vectors, changed)
    assert (spearman, pearson < "1.000") == ("1.000", True)
