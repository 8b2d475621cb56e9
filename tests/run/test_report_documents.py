"""Clusters and neighbours of a report: their words, titles and labels, by an oracle."""

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.run import report_documents
from docjax.run.baselines import TfIdf
from docjax.run.report_documents import Sample
from docjax.types import AFTER, BEFORE, Document, Section

TOPICS = {
    "sea": "harbour wave sail",
    "oven": "bread flour crust",
    "sky": "star moon comet",
}


def sample(labelled: bool = True, titled: bool = True) -> Sample:
    """Twelve documents of three topics; a vector points to its topic."""
    generator = np.random.default_rng(0)
    documents, vectors = [], []
    for i in range(12):
        topic = list(TOPICS)[i % 3]
        text = f"{TOPICS[topic]} and a common word. Number {i} " + "more " * 20
        documents.append(
            Document(
                str(i),
                (Section("", text),),
                title=f"{topic} {i}" if titled else "",
                label=topic if labelled else None,
            )
        )
        vectors.append(10 * np.eye(3)[i % 3] + generator.normal(size=3))
    after = np.array(vectors, np.float32)
    texts = [each.sections[0].text for each in documents]
    return Sample(documents, {BEFORE: after[::-1], AFTER: after}, TfIdf(texts))


def test_a_cluster_has_the_words_and_titles_of_its_documents():
    found = report_documents.clusters(sample())
    assert [each.documents for each in found] == [4, 4, 4]
    for cluster in found:
        assert cluster.share == 1
        assert set(cluster.words) == set(TOPICS[cluster.label].split())
        assert len(cluster.titles) == 3
        assert all(title.startswith(cluster.label) for title in cluster.titles)


def test_neighbours_are_those_of_the_highest_cosine():
    given = sample()
    found = report_documents.neighbours(given)
    assert [each.document.label for each in found] == ["oven", "sea", "sky"]
    for each in found:
        assert set(each.nearest) == {BEFORE, AFTER}
        row = [named.title for named in given.named].index(each.document.title)
        unit = given.vectors[AFTER] / np.linalg.norm(
            given.vectors[AFTER], axis=1, keepdims=True
        )
        order = [i for i in np.argsort(-(unit @ unit[row])) if i != row][:3]
        titles = [given.documents[i].title for i in order]
        assert [named.title for named in each.nearest[AFTER]] == titles
        assert {named.label for named in each.nearest[AFTER]} == {each.document.label}


def test_without_labels_and_titles_texts_speak_for_themselves():
    given = sample(labelled=False, titled=False)
    found = report_documents.neighbours(given)
    assert len(found) == 6 and found[0].document.label == ""
    assert found[0].document.title.endswith("more more …")
    assert {each.label for each in report_documents.clusters(given)} == {""}


def test_a_map_without_labels_has_the_colours_of_clusters(tmp_path):
    path = report_documents.draw_map(sample(labelled=False), tmp_path / "map")
    labels = {
        line.rpartition(",")[2]
        for line in path.with_suffix(".csv").read_text().splitlines()[1:]
    }
    assert labels == {f"cluster {i}" for i in range(1, 7)}


def test_without_common_words_clusters_have_titles_alone():
    given = sample()
    found = report_documents.clusters(Sample(given.documents, given.vectors, None))
    assert all(not each.words and each.titles for each in found)


def test_few_documents_have_neither():
    given = sample()
    few = Sample(given.documents[:4], {AFTER: given.vectors[AFTER][:4]}, None)
    for show in (report_documents.clusters, report_documents.neighbours):
        with pytest.raises(UserError, match="4 documents are too few"):
            show(few)
