"""Collections and documents of ir-datasets, from datasets made of local files."""

import pytest

from docjax.data.documents import full_text
from docjax.data.sources import ir_datasets as source
from docjax.errors import UserError
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
    for name, dataset in made.items():
        monkeypatch.setitem(library.registry._registered, name, dataset)
    return made


def test_splits_are_the_datasets_below_a_name(datasets, caplog):
    collection._warn_once.cache_clear()
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


def test_a_judged_dataset_is_its_own_test(datasets):
    found = collection.read("ir-datasets:made/train")
    assert found.test == {"r": {"b": 1}} and found.tuning == {}
    with pytest.raises(UserError, match="ir-datasets:made/train: needs judgements tr"):
        collection.to_train("ir-datasets:made/train", None)


def test_documents_have_the_fields_that_datasets_call_so(datasets):
    [document, _] = source.ir_datasets("made")
    assert (document.id, document.title, full_text(document)) == ("a", "", "cats")
    with pytest.raises(UserError, match="has no dataset 'mode'"):
        list(source.ir_datasets("mode"))
    [(name, _, version)] = source.stamp("made")
    assert name == "made" and version == library.__version__
