import json
import re
from collections import Counter

import numpy as np
import pytest

from docjax.data.counted import read
from docjax.data.documents import BadDocument, decode, from_text, json_value, parse
from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.types import Document, Section


def parse_line(line, place):
    return parse(json_value(decode(line, place), place), place)


def test_a_flat_record_is_a_document_of_one_section():
    found = parse({"id": 7, "text": "Some words.", "label": 3, "year": 1999}, "here")
    assert found == Document(
        "7", (Section("", "Some words."),), label="3", metadata={"year": 1999}
    )


def test_a_sectioned_record_keeps_its_structure():
    found = parse(
        {
            "id": "a",
            "title": "T",
            "sections": [{"heading": "H", "text": "x", "level": 2}, {"text": "y"}],
            "label": None,
            "split": "train",
            "links": ["b", 3],
            "edges": [[0, 1]],
            "query": "q",
            "metadata": {"venue": "v"},
        },
        "here",
    )
    assert found == Document(
        "a",
        (Section("H", "x"), Section("", "y")),
        title="T",
        split="train",
        links=("b", "3"),
        edges=((0, 1),),
        query="q",
        metadata={"venue": "v"},
    )


def test_what_python_and_numpy_hold_are_records_too():
    found = parse(
        {
            "id": np.int64(7),
            "sections": ({"text": "x"}, {"text": "y"}),
            "links": (np.int64(3), "b"),
            "edges": ((0, np.int32(1)), [1, 1]),
        },
        "here",
    )
    sections = (Section("", "x"), Section("", "y"))
    assert found == Document("7", sections, links=("3", "b"), edges=((0, 1), (1, 1)))


@pytest.mark.parametrize("edge", [(0, 2), (-1, 0), (0.5, 1), ("0", 1), (0, 1, 1), 0])
def test_an_edge_that_joins_no_two_sections_is_named(edge):
    record = {"id": "a", "sections": [{"text": "x"}, {"text": "y"}], "edges": [edge]}
    with pytest.raises(BadDocument, match=re.escape(f"below 2, not {edge}")):
        parse(record, "here")


def test_the_id_may_be_called_as_in_beir():
    assert parse({"_id": "MED-1", "title": "T", "text": ""}, "here").id == "MED-1"


def test_full_text_holds_title_headings_and_texts():
    document = Document("d", (Section("", "a"), Section("H", "b")), title="T")
    assert full_text(document) == "T\n\na\n\nH\n\nb"


@pytest.mark.parametrize(
    "text, rest", [("Oil\n\nIt rose.", "It rose."), ("Oil", ""), ("Oils", "Oils")]
)
def test_a_text_that_begins_with_its_title_has_it_once(text, rest):
    found = parse({"id": "a", "title": "Oil", "text": text}, "here")
    assert found == Document("a", (Section("", rest),), title="Oil")


BAD = [
    (b'{"id": "a", "text"', "bad JSON"),
    (b'{"id": ' + b"[" * 100_000, "bad JSON"),
    (b'["a"]', "wrong type"),
    (b'{"text": "x"}', "missing key"),
    (b'{"id": "", "text": "x"}', "missing key"),
    (b'{"id": "a"}', "missing key"),
    (b'{"id": "a", "sections": [{"heading": "x"}]}', "missing key"),
    (b'{"id": 1.5, "text": "x"}', "wrong type"),
    (b'{"id": "a", "text": ["x"]}', "wrong type"),
    (b'{"id": "a", "text": null}', "wrong type"),
    (b'{"id": "a", "text": "x", "title": 3}', "wrong type"),
    (b'{"id": "a", "text": "x", "label": ["b"]}', "wrong type"),
    (b'{"id": "a", "text": "x", "split": true}', "wrong type"),
    (b'{"id": "a", "text": "x", "links": "b"}', "wrong type"),
    (b'{"id": "a", "text": "x", "links": [null]}', "wrong type"),
    (b'{"id": "a", "text": "x", "edges": [[0, 1]]}', "wrong type"),
    (b'{"id": "a", "text": "x", "edges": [0]}', "wrong type"),
    (b'{"id": "a", "sections": [{"text": "x"}], "edges": [[false, 0]]}', "wrong type"),
    (b'{"id": "a", "text": "x", "links": [true]}', "wrong type"),
    (b'{"id": "a", "text": "x", "query": 1}', "wrong type"),
    (b'{"id": "a", "text": "x", "metadata": 1}', "wrong type"),
    (b'{"id": "a", "text": "x", "sections": [{"text": "y"}]}', "wrong type"),
    (b'{"id": "a", "sections": {"text": "x"}}', "wrong type"),
    (b'{"id": "a", "sections": ["x"]}', "wrong type"),
    (b'{"id": "a", "text": "\xff"}', "invalid UTF-8"),
    (b'{"id": "a", "text": "\\ud800"}', "invalid UTF-8"),
    (b'{"id": "a", "text": " \\n"}', "empty text"),
    (b'{"id": "a", "sections": []}', "empty text"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line_names_place_and_reason(line, reason):
    with pytest.raises(BadDocument) as error:
        parse_line(line, "a.jsonl, line 3")
    assert error.value.reason == reason
    assert str(error.value).startswith("a.jsonl, line 3")
    assert f": {reason}: " in str(error.value)
    assert "\n" not in str(error.value)


def lines(*records):
    texts = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    return [(f"f, line {number}", text) for number, text in enumerate(texts, start=1)]


def good(count):
    return [{"id": number, "text": "x"} for number in range(count)]


def test_the_first_bad_document_raises_with_the_mend():
    found = read(lines(*good(2), b"{"), parse_line)
    assert [next(found).id, next(found).id] == ["0", "1"]
    with pytest.raises(BadDocument, match="f, line 3: bad JSON: .*max_bad_fraction"):
        next(found)


def test_a_duplicate_id_raises():
    with pytest.raises(BadDocument, match="line 2: duplicate id: '0'") as error:
        list(read(lines(*good(1), *good(1)), parse_line))
    assert error.value.reason == "duplicate id"


def test_bad_documents_within_the_fraction_are_counted_by_reason():
    report = Counter()
    records = [*good(8), b"{", b"{", {"id": "a", "text": ""}, {"id": 0, "text": "y"}]
    found = list(read(lines(*records), parse_line, 0.4, report))
    assert [document.id for document in found] == [str(i) for i in range(8)]
    assert report == {
        "documents": 8,
        "bad JSON": 2,
        "empty text": 1,
        "duplicate id": 1,
    }


def test_what_is_left_out_is_told_once(caplog):
    given = [*good(8), b"{", {"id": "a", "text": ""}]
    list(read(lines(*given), parse_line, 0.4, Counter()))
    assert not caplog.records
    for _ in range(2):  # as every evaluation reads the data again
        list(read(lines(*given), parse_line, 0.4))
    told = (
        "left out 2 of 10 documents, which are bad: 1 bad JSON, 1 empty text; see f, "
    )
    assert caplog.text.count(f"{told}line 9: bad JSON") == 1


def test_a_bad_document_may_have_any_name(caplog):
    given = [{"id": "100%s", "text": "x"}] * 2
    list(read(lines(*given), parse_line, 0.5))
    assert "see f, line 2: duplicate id: '100%s'" in caplog.text


def test_more_bad_documents_than_the_fraction_raise_with_counts():
    with pytest.raises(UserError, match=r"2 of 4 .* \(2 bad JSON\).*0\.4.*line 1"):
        list(read(lines(b"{", *good(2), b"}"), parse_line, 0.4))


def test_no_document_at_all_is_an_empty_corpus():
    with pytest.raises(UserError, match="empty corpus"):
        list(read([], parse_line))
    with pytest.raises(UserError, match="empty corpus"):
        list(read(lines(b"{"), parse_line, max_bad_fraction=1.0))


@pytest.mark.parametrize("key", ["id", "label", "split", "query"])
def test_half_a_character_is_named_wherever_it_is(key):
    record = {"id": "a", "text": "some words", key: "\ud800"}
    with pytest.raises(BadDocument, match="invalid UTF-8"):
        parse(record, "here")


def test_a_number_too_long_to_read_is_bad_json():
    line = b'{"id": "a", "text": "words", "year": ' + b"9" * 5000 + b"}"
    with pytest.raises(BadDocument, match="bad JSON"):
        parse_line(line, "here")


def test_when_all_are_bad_their_reasons_are_told():
    with pytest.raises(UserError, match="2 bad records were left out .2 empty text"):
        records = [("here", {"id": name, "text": ""}) for name in "ab"]
        list(read(records, parse, max_bad_fraction=1.0))


@pytest.mark.parametrize(
    "text, expected",
    [
        (' {"title": "T", "text": "a"}', Document("a.txt", (Section("", "a"),), "T")),
        ('{"_id": "1", "text": "a"}', Document("1", (Section("", "a"),))),
        ("{{Infobox}} a", Document("a.txt", (Section("", "{{Infobox}} a"),))),
    ],
)
def test_what_people_give_is_json_or_plain_text(text, expected):
    assert from_text(text, "a.txt") == expected


def test_a_share_of_bad_documents_is_from_0_to_1():
    with pytest.raises(
        UserError, match="max_bad_fraction 5.0 is not a share from 0 to 1"
    ):
        list(read(lines(b"{}"), parse_line, max_bad_fraction=5.0))
