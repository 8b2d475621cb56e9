"""Collections and documents of ir-datasets, from datasets made of local files."""

import pytest

from docjax.data.records import full_text
from docjax.data.sources import ir_datasets as source
from docjax.errors import UserError
from docjax.parts.named import build
from docjax.retrieval import collection

library = pytest.importorskip("ir_datasets", reason="needs ir-datasets")


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    """made: documents; made/train and made/test: with queries and judgements."""
    (tmp_path / "docs.tsv").write_text("a\tcats\nb\tfish\n")
    (tmp_path / "queries.tsv").write_text("q\tcat\nr\tfish food\n")
    (tmp_path / "test.qrels").write_text("q 0 a 2\nr 0 a 0\n")
    (tmp_path / "train.qrels").write_text("r 0 b 1\n")
    docs, queries = str(tmp_path / "docs.tsv"), str(tmp_path / "queries.tsv")
    made = {"made": library.create_dataset(docs_tsv=docs)}
    for split in ("train", "test"):
        made[f"made/{split}"] = library.create_dataset(
            docs_tsv=docs, queries_tsv=queries, qrels_trec=f"{tmp_path}/{split}.qrels"
        )
    return registered(monkeypatch, made)


def registered(monkeypatch, datasets):
    for name, dataset in datasets.items():
        monkeypatch.setitem(library.registry._registered, name, dataset)
    return datasets


def test_splits_are_the_datasets_below_a_name(datasets, caplog):
    found = collection.read("ir-datasets:made")
    assert found.test == {"q": {"a": 2}} and found.tuning == {}
    assert "made, judgements test: 1 of 2 queries have no document" in caplog.text
    assert found.queries == {"q": "cat", "r": "fish food"}
    assert [full_text(each) for each in found.documents(0.0)] == ["cats", "fish"]
    assert collection.to_train("ir-datasets:made", None) == (
        {"r": "fish food"},
        {"r": {"b": 1}},
    )
    assert collection.training_files("ir-datasets:made", None) == []
    judged = collection.read_judged("ir-datasets:made", 0.0)
    assert judged.qrels == {"q": {"a": 2}, "r": {"b": 1}}


def missing():
    raise FileNotFoundError("put the disks\n  into this folder")


def test_files_that_cannot_be_had_are_one_line(datasets, monkeypatch):
    for method in ("docs_iter", "queries_iter", "qrels_iter"):
        with monkeypatch.context() as patched:
            patched.setattr(datasets["made/test"], method, missing)
            with pytest.raises(UserError, match="made/test.*: put the disks into this"):
                found = collection.read("ir-datasets:made/test")
                list(found.documents(0.0))


def test_a_judged_dataset_is_its_own_test(datasets):
    found = collection.read("ir-datasets:made/train")
    assert found.test == {"r": {"b": 1}} and found.tuning == {}
    with pytest.raises(UserError, match="needs judgements train; .* name a dataset th"):
        collection.to_train("ir-datasets:made/train", None)


def test_a_dataset_of_wikir_trains_on_its_split_training(datasets, monkeypatch):
    parts = {"wiki": datasets["made"], "wiki/training": datasets["made/train"]}
    registered(monkeypatch, parts | {"wiki/test": datasets["made/test"]})
    assert set(collection.to_train("ir-datasets:wiki", None)[1]) == {"r"}
    assert set(collection.read("ir-datasets:wiki").test) == {"q"}


def test_a_dataset_without_a_split_that_tests_is_told_what_to_name(
    datasets, monkeypatch
):
    """As MS MARCO has: train, dev and the years of TREC."""
    parts = {"marco": datasets["made"], "marco/train": datasets["made/train"]}
    parts |= {"marco/dev": datasets["made/test"], "marco/trec": datasets["made/test"]}
    registered(monkeypatch, parts)
    with pytest.raises(
        UserError,
        match="judgements test, or of one other split; it has train, dev: name "
        "ir-datasets:marco/NAME in its place, where NAME is one of train, dev, trec",
    ):
        collection.read("ir-datasets:marco")
    assert set(collection.read("ir-datasets:marco/trec").test) == {"q"}
    assert set(collection.to_train("ir-datasets:marco", None)[1]) == {"r"}


def test_datasets_called_folds_are_folds(datasets, tmp_path, monkeypatch):
    """As those of Robust04."""
    judged, parts = datasets["made/test"], {}
    (tmp_path / "test.qrels").write_text("q 0 a 2\nr 0 b 1\n")
    for number, text in ((1, "q\tcat\n"), (2, "r\tfish food\n"), (10, "s\tdog\n")):
        (tmp_path / f"{number}.tsv").write_text(text)
        queries = str(tmp_path / f"{number}.tsv")
        parts[f"robust/fold{number}"] = library.create_dataset(queries_tsv=queries)
    registered(monkeypatch, {"robust": judged} | parts)
    assert collection.read("ir-datasets:robust").folds == [["q"], ["r"], []]
    assert set(collection.read("ir-datasets:robust", fold=1).test) == {"r"}
    monkeypatch.delitem(library.registry._registered, "robust/fold2")
    with pytest.raises(UserError, match="robust: 1 of 2 judged queries are in no fold"):
        collection.read("ir-datasets:robust")
    monkeypatch.setattr(parts["robust/fold1"], "queries_iter", missing)
    with pytest.raises(UserError, match="cannot read robust/fold1: put the disks into"):
        collection.read("ir-datasets:robust")


def test_mistakes_that_nobody_can_mend_are_counted(datasets, tmp_path, caplog):
    (tmp_path / "test.qrels").write_text("q 0 a 2\nz 0 a 1\nq 0 a 1\nq 0 b 0\n")
    assert collection.read("ir-datasets:made").test == {"q": {"a": 2, "b": 0}}
    assert "1 judgements of unknown queries and 1 repeated ones" in caplog.text
    # A run in a file is scored on the same queries.
    assert collection.read_test("ir-datasets:made") == {"q": {"a": 2, "b": 0}}


def test_documents_have_the_fields_that_datasets_call_so(datasets):
    [document, _] = source.ir_datasets("made")
    assert (document.id, document.title, full_text(document)) == ("a", "", "cats")
    with pytest.raises(UserError, match="has no dataset 'mode'"):
        list(source.ir_datasets("mode"))
    node = {"fn": "docjax.data.sources.ir_datasets.ir_datasets", "name": "made"}
    assert [each.id for each in build(node)()] == ["a", "b"]
    [(name, _, version)] = source.stamp("made")
    assert name == "made" and version == library.__version__
