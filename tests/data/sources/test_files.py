"""People's files: what is read of each form, and the one line for what is not."""

import importlib.util
import io
import json
import logging
import os
import sys
import threading
from collections import Counter

import pytest

from docjax.data import once
from docjax.data.sources.files import files, queries, stamp
from docjax.errors import UserError
from tests.data.sources import forms

OFFICE = all(map(importlib.util.find_spec, ("openpyxl", "docx", "pypdf")))
NEEDS_OFFICE = pytest.mark.skipif(not OFFICE, reason="needs the extra files")


def tabular(found):
    return [(d.id, d.title, d.sections[0].text, d.label) for d in found]


def structured(found):
    return [(d.title, [(s.heading, s.text) for s in d.sections]) for d in found]


def check(folder, form):
    name, content, keywords, expected = form
    path = forms.write(folder, name, content)
    found = list(files(str(path), **keywords))
    assert tabular(found) == expected
    assert all(len(document.sections) == 1 for document in found)


@pytest.mark.parametrize("form", forms.TABLES.values(), ids=forms.TABLES)
def test_a_table_is_read_right(tmp_path, form):
    check(tmp_path, form)


@NEEDS_OFFICE
def test_an_excel_table_is_read_right(tmp_path):
    for form in forms.excel_forms().values():
        check(tmp_path, form)


@pytest.mark.parametrize("form", forms.TEXTS.values(), ids=forms.TEXTS)
def test_a_text_is_one_document(tmp_path, form):
    name, content, expected = form
    (found,) = files(str(forms.write(tmp_path, name, content)))
    assert structured([found]) == expected and found.id == name


@NEEDS_OFFICE
def test_a_text_of_an_office_is_one_document(tmp_path):
    for name, content, expected in forms.office_forms().values():
        assert structured(files(str(forms.write(tmp_path, name, content)))) == expected


@pytest.mark.parametrize("form", forms.REFUSED.values(), ids=forms.REFUSED)
def test_a_wrong_file_is_one_line_with_the_reason(tmp_path, form):
    name, content, keywords, message = form
    path = forms.write(tmp_path, name, content)
    with pytest.raises(UserError) as error:
        list(files(str(path), **keywords))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_an_encoding_is_mended_by_its_name_alone(tmp_path):
    path = forms.write(tmp_path, "a.csv", forms.csv().encode("cp1252"))
    with pytest.raises(
        UserError, match="--encoding cp1252, or source.encoding of a run$"
    ):
        list(files(str(path)))


def test_a_folder_of_texts_of_several_kinds_is_read(tmp_path):
    for name, content in {
        "train/rivers/a.txt": "The river.",
        "train/rivers/b.html": forms.PAGE,
        "Test/art/c.md": forms.NOTES,
        "test/art/noise": "no suffix",
        ".hidden/d.txt": "hidden",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        forms.write(tmp_path, name, content)
    found = {d.id: d for d in files(str(tmp_path))}
    assert {(d.id, d.split, d.label) for d in found.values()} == {
        ("train/rivers/a.txt", "train", "rivers"),
        ("train/rivers/b.html", "train", "rivers"),
        ("Test/art/c.md", "test", "art"),
        ("test/art/noise", "test", "art"),
    }
    assert structured([found["train/rivers/b.html"]]) == forms.OF_PAGE


@NEEDS_OFFICE
def test_office_files_stand_in_a_folder_too(tmp_path):
    for name, content, _ in (forms.office_forms() | forms.TEXTS).values():
        forms.write(tmp_path, name, content)
    names = {"a.docx", "a.pdf", "a.txt", "a.md", "A.MD", "a.html", "A.HTM"}
    assert {d.id for d in files(str(tmp_path))} == names


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({}, "empty corpus: a folder without a file"),
        ({"a.csv": "id,text\n1,a\n", "b.csv": "id,text\n2,b\n"}, "a folder of tables"),
        ({"a.txt": "a", "b.csv": "id,text\n1,a\n"}, "b.csv: not a text: a table in a"),
        ({"a.txt": "a", "b.png": b"\x89PNG"}, "b.png: not a text: looks like an image"),
        ({"a.txt": "a", "b.txt": " "}, "b.txt: empty text"),
        ({"a.txt": "a", "b.txt": "é".encode("latin-1")}, "can be read as cp1252"),
    ],
)
@pytest.mark.parametrize("name", ["texts", "x.csv"])
def test_what_a_folder_lacks_is_one_line(tmp_path, name, held, message):
    folder = tmp_path / name
    folder.mkdir()
    for each, content in held.items():
        forms.write(folder, each, content)
    with pytest.raises(UserError) as error:
        list(files(str(folder)))
    assert message in str(error.value) and name in str(error.value)


def test_what_is_no_text_of_a_folder_may_be_left_out(tmp_path):
    forms.write(tmp_path, "a.txt", "a")
    forms.write(tmp_path, "b.png", b"\x89PNG")
    report = Counter()
    list(files(str(tmp_path), max_bad_fraction=0.5, report=report))
    assert report == {"documents": 1, "not a text": 1}


def odd_names(folder):
    (folder / "gone.csv").symlink_to(folder / "nowhere.csv")
    (folder / "circle.csv").symlink_to(folder / "circle.csv")
    return {
        "none.csv": "none.csv: no such file",
        "gone.csv": "gone.csv: a link to ",
        "circle.csv": "circle.csv: ",
        "n" * 300 + ".csv": "nnn.csv: no such file",
        "two\nlines.csv": "two\\nlines.csv': no such file",
        "zero\0.csv": "zero\\x00.csv': no such file",
        "*.nothing": "*.nothing: no such file",
    }


def test_a_name_that_leads_nowhere_is_one_line(tmp_path):
    for name, message in odd_names(tmp_path).items():
        with pytest.raises(UserError) as error:
            list(files(f"{tmp_path}/{name}"))
        assert message in str(error.value) and str(error.value).isprintable()


def test_odd_names_of_files_that_are_there_are_read(tmp_path):
    for name in ("two\nlines.csv", "[a].csv", "ü *.csv", "n" * 240 + ".csv"):
        path = forms.write(tmp_path, name, forms.csv())
        assert tabular(files(str(path))) == forms.WHOLE
    path = forms.write(tmp_path, "two\nlines.csv", "id,text\n1,\n")
    with pytest.raises(UserError) as error:
        list(files(str(path)))
    assert "two\\nlines.csv" in str(error.value) and str(error.value).isprintable()


def test_a_file_that_grows_while_it_is_read_is_named(tmp_path):
    path = forms.write(
        tmp_path, "a.csv", "id,text\n" + "".join(f"{i},x\n" for i in range(9))
    )
    found = files(str(path))
    next(found)
    with path.open("a") as more:
        more.write("9,x\n")
    with pytest.raises(
        UserError, match=r"a\.csv changed while it was read .from \d+ to"
    ):
        list(found)


def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(forms.csv(),))
    writer.start()
    assert tabular(files(str(path))) == forms.WHOLE
    writer.join()
    with pytest.raises(UserError, match="a stream can be read only once"):
        stamp(str(path))


@pytest.mark.parametrize("raw", [forms.csv(), forms.lines(), forms.parquet()])
def test_standard_input_is_of_any_form(monkeypatch, raw):
    raw = raw.encode() if isinstance(raw, str) else raw
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert tabular(files("-")) == forms.WHOLE


def test_a_pattern_reads_files_of_several_forms_and_numbers_all_rows(tmp_path):
    forms.write(tmp_path, "a.csv", forms.csv(columns=["title", "text"]))
    forms.write(tmp_path, "b.jsonl", forms.lines(forms.without("id")))
    assert [d.id for d in files(f"{tmp_path}/*")] == list("123456")
    for name in ("x/a.txt", "y/a.txt"):
        (tmp_path / name).parent.mkdir()
        forms.write(tmp_path, name, "words")
    assert [d.id for d in files(f"{tmp_path}/*/a.txt")] == ["x/a.txt", "y/a.txt"]


def test_the_log_says_once_what_is_read_as_what(tmp_path, caplog):
    names = ["Key", "Headline", "body", "class"]
    path = forms.write(tmp_path, "a.csv", forms.csv(";", names=names))
    once.say.cache_clear()
    with caplog.at_level(logging.INFO, "docjax"):
        assert all(d.metadata.keys() == {"Key"} for d in files(str(path)))
        list(files(str(path)))
    (line,) = caplog.messages
    assert line == (
        f"{path}: semicolons between columns, with a header: title is 'Headline'; text "
        "is 'body'; label is 'class'; ids are numbers of rows; to metadata: 'Key'"
    )


def test_plain_json_lines_need_no_word_in_the_log(tmp_path, caplog):
    path = forms.write(tmp_path, "a.jsonl", forms.lines())
    with caplog.at_level(logging.INFO, "docjax"):
        list(files(str(path)))
    assert not caplog.messages


def test_cells_hold_splits_links_sections_and_metadata(tmp_path):
    sections = '"[{""heading"": ""H"", ""text"": ""x""}]"'
    head = "id,sections,split,links,query,metadata,year\n"
    rows = f'1,{sections}, TRAIN ,"b; 3",why,m,1999\n2,{sections},Fold A,"[""b""]",,,\n'
    first, second = files(str(forms.write(tmp_path, "a.csv", head + rows)))
    assert structured([first]) == [("", [("H", "x")])]
    assert (first.split, first.links, first.query) == ("train", ("b", "3"), "why")
    assert first.metadata == {"metadata": "m", "year": "1999"}
    assert (second.split, second.links, second.query) == ("Fold A", ("b",), None)


@pytest.mark.parametrize("split", ["Train", "TEST", "Validation", "DEV"])
def test_splits_in_capitals_are_the_well_known_ones(tmp_path, split):
    text = f"text,split\na,{split}\n"
    (found,) = files(str(forms.write(tmp_path, "a.csv", text)))
    assert found.split == split.lower()


def test_a_title_is_not_read_twice(tmp_path):
    for text in (
        "Oil Prices\r\n\r\nRose.",
        " \n Oil  Prices \nRose.",
        "Oil\nPrices\nRose.",
    ):
        record = json.dumps({"id": "a", "title": "Oil Prices ", "text": text})
        (found,) = files(str(forms.write(tmp_path, "a.jsonl", record)))
        assert found.sections[0].text == "Rose."
    record = json.dumps({"id": "a", "title": "Oil", "text": "Oil prices\nrose."})
    (found,) = files(str(forms.write(tmp_path, "a.jsonl", record)))
    assert found.sections[0].text == "Oil prices\nrose."


def test_a_key_that_only_later_rows_of_json_have_keeps_its_meaning(tmp_path):
    records = [{"id": i, "text": "x"} for i in range(150)]
    records.append({"id": 150, "text": "x", "label": "late"})
    path = forms.write(tmp_path, "a.jsonl", forms.lines(records))
    assert list(files(str(path)))[-1].label == "late"
    assert list(files(str(path), label=""))[-1].label is None


def test_a_column_that_the_user_names_replaces_docjaxs_own(tmp_path):
    path = forms.write(tmp_path, "a.csv", "id,text,body\n1,short,long\n")
    (found,) = files(str(path), text="Body", id="")
    assert (found.sections[0].text, found.id) == ("long", "1")
    assert found.metadata == {"id": "1", "text": "short"}


def test_a_label_that_may_be_one_of_two_columns_is_none(tmp_path, caplog):
    path = forms.write(tmp_path, "a.csv", "text,category,class\na,b,c\n")
    with caplog.at_level(logging.INFO, "docjax"):
        (found,) = files(str(path))
    assert found.label is None and found.metadata == {"category": "b", "class": "c"}
    assert "no label, 'category', 'class' may be it (--label-column" in caplog.text


def test_queries_have_names_of_their_own(tmp_path):
    path = forms.write(tmp_path, "a.tsv", "query-id\tquery\nq1\tcoffee\n")
    assert [(q.id, q.sections[0].text) for q in queries(str(path))] == [
        ("q1", "coffee")
    ]
    path = forms.write(tmp_path, "a.csv", "qid,question,vraag\nq1,coffee,koffie\n")
    (found,) = queries(str(path), text="vraag")
    assert (found.id, found.sections[0].text) == ("q1", "koffie")


def test_a_long_field_and_many_rows_are_read(tmp_path):
    rows = "".join(
        f'{i},"{"x " * (200_000 if i == 700 else 40)}"\n' for i in range(2000)
    )
    path = forms.write(tmp_path, "a.csv", "id,text\n" + rows)
    found = list(files(str(path)))
    assert [d.id for d in found] == [str(i) for i in range(2000)]
    assert len(found[700].sections[0].text) == 400_000


def test_bad_rows_of_a_table_may_be_left_out(tmp_path):
    rows = b'id,text\n1,a\n2\n3,"b"c\n4,\xff\n5,\n1,again\n6,good\n'
    path = forms.write(tmp_path, "a.csv", rows)
    report = Counter()
    found = list(files(str(path), max_bad_fraction=0.8, report=report))
    assert [d.id for d in found] == ["1", "6"]
    assert report == {"documents": 2, "wrong columns": 1, "bad quotes": 1} | {
        "invalid UTF-8": 1,
        "empty text": 1,
        "duplicate id": 1,
    }


def test_a_saved_dataset_is_read_by_split(tmp_path):
    datasets = pytest.importorskip("datasets")
    classes = datasets.ClassLabel(names=["a", "b"])
    features = datasets.Features({"body": datasets.Value("string"), "label": classes})
    made = lambda rows: datasets.Dataset.from_list(rows, features=features)
    both = datasets.DatasetDict(
        train=made([{"body": "x", "label": 1}, {"body": "y", "label": -1}]),
        test=made([{"body": "z", "label": 0}]),
    )
    both.save_to_disk(tmp_path / "saved")
    found = list(files(str(tmp_path / "saved")))
    assert [(d.id, d.split, d.label) for d in found] == [
        ("train/0", "train", "b"),
        ("train/1", "train", None),
        ("test/0", "test", "a"),
    ]
    both["train"].to_parquet(tmp_path / "a.parquet")
    assert [d.label for d in files(str(tmp_path / "a.parquet"))] == ["b", None]
    (tmp_path / "saved/train/state.json").write_text("{")
    with pytest.raises(UserError, match="saved: a damaged dataset"):
        list(files(str(tmp_path / "saved")))


def test_the_stamp_changes_with_a_file_and_a_folder(tmp_path):
    path = forms.write(tmp_path, "a.csv", forms.csv())
    before = stamp(str(path)), stamp(str(tmp_path))
    forms.write(tmp_path, "a.csv", forms.csv(";"))
    assert stamp(str(path)) != before[0] and stamp(str(tmp_path)) != before[1]
