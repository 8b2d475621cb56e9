import json
import os
import sys

import pytest

from docjax.data.sources.huggingface import huggingface, stamp
from docjax.errors import UserError

datasets = pytest.importorskip("datasets")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    features = datasets.Features(
        {
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["a", "b"]),
        }
    )

    def table(count):
        rows = {
            "text": [f"Text {i}." for i in range(count)],
            "label": [i % 2 if i else -1 for i in range(count)],
        }
        return datasets.Dataset.from_dict(rows, features=features)

    both = datasets.DatasetDict({"train": table(6), "test": table(3)})
    both.save_to_disk(tmp_path / "saved")
    return tmp_path


def test_a_saved_dataset_gives_documents_with_class_names(folder):
    found = list(huggingface(str(folder / "saved")))
    assert [one.split for one in found] == ["train"] * 6 + ["test"] * 3
    assert [one.label for one in found[:3]] == [None, "b", "a"]
    assert found[7].id == "test/1"
    assert found[7].sections[0].text == "Text 1."


def test_a_local_file_is_one_split(folder):
    file = folder / "rows.jsonl"
    rows = [{"body": f"Text {i}.", "kind": f"k{i}"} for i in range(3)]
    file.write_text("\n".join(map(json.dumps, rows)))
    found = list(huggingface(str(file), split="train", text="body", label="kind"))
    assert [(one.label, one.split) for one in found] == [
        ("k0", "train"),
        ("k1", "train"),
        ("k2", "train"),
    ]


def test_numbers_without_class_names_are_labels(folder):
    file = folder / "rows.csv"
    file.write_text("text,label\nOne.,1\nTwo.,-1\nThree.,0\n")
    found = huggingface(str(file), split="train")
    assert [one.label for one in found] == ["1", "-1", "0"]


def test_a_column_or_split_that_is_not_there_is_named(folder):
    path = str(folder / "saved")
    with pytest.raises(UserError, match="text='body': .* it has text, label"):
        huggingface(path, text="body")
    with pytest.raises(UserError, match="split 'dev'"):
        huggingface(path, split="dev")


def test_a_file_of_another_kind_is_refused(folder):
    (folder / "a.pdf").write_bytes(b"x")
    with pytest.raises(UserError, match=r"a\.pdf is no PDF file"):
        list(huggingface(str(folder / "a.pdf"), split="train"))


def test_one_table_is_not_read_as_two_splits(folder):
    (folder / "a.csv").write_text("text,label\none,x\n")
    with pytest.raises(
        UserError, match="one table, not the splits train, test: name one"
    ):
        huggingface(str(folder / "a.csv"))


def test_without_the_package_the_command_to_install_it_is_given(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"pip install 'docjax\[huggingface\]'"):
        huggingface(str(folder / "saved"))


def test_the_stamp_changes_with_the_files(folder):
    path = str(folder / "saved")
    before = stamp(path)
    assert before == stamp(path)
    (folder / "saved/more").write_text("x")
    assert stamp(path) != before


@pytest.mark.parametrize("path", ["saved", "saved/more"])
def test_the_stamp_of_contents_changes_with_them_alone(folder, path):
    file, path = folder / "saved/more", str(folder / path)
    file.write_text("x")
    before = stamp(path, content=True)
    os.utime(file, (1, 1))
    assert stamp(path, content=True) == before
    file.write_text("y")
    assert stamp(path, content=True) != before


def test_the_cause_of_a_table_that_cannot_be_read_is_told(folder):
    (folder / "tables").mkdir()
    (folder / "tables/train.csv").write_bytes("text,label\nGröße,1\n".encode("latin-1"))
    with pytest.raises(UserError, match="generating the dataset: .*(?i:utf.?8)"):
        list(huggingface(str(folder / "tables"), split="train"))


def test_splits_and_gaps_of_a_saved_dataset_are_named(folder):
    with pytest.raises(UserError, match="no such split; the splits are train, test"):
        huggingface(str(folder / "saved"), split="validation")
    table = datasets.Dataset.from_dict({"text": ["a", None], "label": [1.0, None]})
    table.save_to_disk(folder / "gaps")
    with pytest.raises(UserError, match="example 1: empty text: the text is a gap"):
        list(huggingface(str(folder / "gaps"), split="train"))


def test_a_local_table_keeps_na_and_null_as_texts_and_gaps_as_no_label(folder):
    (folder / "na.csv").write_text("text,label\na,x\nNA,\nnull,z\n")
    found = list(huggingface(str(folder / "na.csv"), split="train"))
    assert [(d.id, d.sections[0].text, d.label) for d in found] == [
        ("train/0", "a", "x"),
        ("train/1", "NA", None),
        ("train/2", "null", "z"),
    ]
