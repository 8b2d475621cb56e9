"""The news of the benchmarks, and how vectors agree with people on it."""

import collections
import csv
import io
import json
import zipfile

import numpy as np
import pytest

from benchmarks import human_similarity, news_texts
from docjax.retrieval import collection

ARTICLES = {  # id: title, text
    "ships": ("Ships", "ships " * 100),
    "ships again": ("Ships", "boats " * 100),
    "copy": ("Other ships", "ships " * 100),
    "rain": ("Rain", "rain " * 100),
    "short": ("Short", "too short"),
    "untitled": ("", "votes " * 100),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A package with these articles; the collection that is made of them."""
    (tmp_path / "data/en").mkdir(parents=True)
    text = io.StringIO()
    rows = ((name, *article) for name, article in ARTICLES.items())
    csv.writer(text).writerows([("article_id", "title", "text"), *rows])
    with zipfile.ZipFile(tmp_path / "data/en/NewsArticles.zip", "w") as archive:
        archive.writestr("NewsArticles.csv", text.getvalue())
    monkeypatch.setattr(news_texts, "_package", lambda name: tmp_path)
    return tmp_path / "made"


def kept(path):
    return [json.loads(line)["_id"] for line in path.read_text().splitlines()]


def test_a_title_asks_for_its_article(folder):
    path = news_texts.headlines(folder)
    found = collection.read(path.parent)
    assert found.test == {name: {name: 1} for name in kept(path)}
    assert found.queries == {name: ARTICLES[name][0] for name in kept(path)}


def test_articles_without_a_title_short_ones_and_doubles_are_left_out(folder):
    names = kept(news_texts.headlines(folder))
    assert names == ["ships again", "copy", "rain"]  # in the order of their ids' CRC


def test_there_are_no_more_articles_than_asked_for(folder, monkeypatch):
    monkeypatch.setattr(news_texts, "MOST", 1)
    assert len(kept(news_texts.headlines(folder))) == 1


def test_five_groups_have_as_many_messages_each_without_headers(monkeypatch):
    monkeypatch.setattr(news_texts, "EACH", 2)
    labels = (*news_texts.GROUPS, "misc.forsale")
    messages = [
        {"id": f"{label}-{n}", "text": f"Subject: x\n\n{'word ' * n}", "label": label}
        for label in labels
        for n in (59, 60, 100, 800, 801)
    ]
    found = [*news_texts.five_groups(messages)]
    assert {len(message["text"].split()) for message in found} <= {60, 100, 800}
    counts = collections.Counter(message["label"] for message in found)
    assert counts == dict.fromkeys(news_texts.GROUPS, 2)


def test_a_rating_stands_on_both_sides_of_the_diagonal(tmp_path, monkeypatch):
    data = tmp_path / "test/test_data"
    data.mkdir(parents=True)
    (data / "lee.cor").write_text("a\nb\n")
    (data / "lee_background.cor").write_text("c\n")
    (data / "similarities0-1.txt").write_text("1\t0.4\n0\t1\n")
    monkeypatch.setattr(news_texts, "_package", lambda name: tmp_path)
    rated, others, similarities = news_texts.rated_news()
    assert (rated, others) == (["a", "b"], ["c"])
    np.testing.assert_array_equal(similarities, [[1, 0.4], [0.4, 1]])


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(news_texts.VERSIONS, "no_such_package", "1.0")
    with pytest.raises(SystemExit, match="no-deps no_such_package==1.0"):
        news_texts._package("no_such_package")


def test_agreement_is_over_pairs_of_different_items_and_ignores_lengths():
    vectors = np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0], [3.0, 4.0]])
    unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
    cosines = unit @ unit.T
    changed = cosines**3 - 5 * np.eye(4)  # the same order of pairs
    assert human_similarity.agreement(vectors, cosines) == pytest.approx((1, 1))
    pearson, spearman = human_similarity.agreement(vectors, changed)
    assert spearman == pytest.approx(1)
    assert 0.5 < pearson < 0.999
