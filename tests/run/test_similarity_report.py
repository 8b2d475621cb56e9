"""The report's heat maps show the documents of scored pairs."""

import csv
from unittest import mock

import docjax
from docjax.run.similarity_report import maps
from docjax.tasks.clustering import Clustering
from docjax.tasks.matching import Matching
from docjax.types import Document, Section, TaskData

TEXTS = {name: f"{name} of a river and the sea. " * 3 for name in "abcdef"}


def drawn(tiny, folder, **tasks) -> dict:
    documents = (
        Document(name, (Section(f"{name}1", text), Section(f"{name}2", text)))
        for name, text in TEXTS.items()
    )
    nothing = mock.create_autospec(TaskData, instance=True)
    return maps(tasks, nothing, documents, docjax.load(tiny).similarities, folder)


def test_both_documents_of_a_similar_pair_stand_side_by_side(tiny, tmp_path):
    table = tmp_path / "pairs.tsv"
    rows = ("train a b 1", "train a c 0", "dev d b 0", "dev e c 1", "dev c b 1")
    lines = ["split source target label", *rows]
    table.write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))
    tasks = dict(clusters=Clustering(), matching=Matching(str(table)))
    found = drawn(tiny, tmp_path, **tasks)
    assert set(found) == {"documents", "sections", "segments"}
    with found["documents"].with_suffix(".csv").open() as stream:
        names = next(csv.reader(stream))
    assert names[1:4] == ["0 e", "1 c", "2 b"]
    assert drawn(tiny, tmp_path, clusters=Clustering()) == {}
