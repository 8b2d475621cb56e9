import os
from collections import Counter

import pytest

from docjax.data.documents import BadDocument
from docjax.data.reader import split_and_label
from docjax.data.sources.folder import folder, stamp
from docjax.errors import UserError


@pytest.fixture
def files(tmp_path):
    for name in (
        "20news-bydate-train/alt.atheism/53068",
        "20news-bydate-test/sci.space/6",
        "20news-bydate-test/.hidden/7",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"The text of {name}.")
    (tmp_path / ".DS_Store").write_bytes(b"\xff")
    return tmp_path


def test_sub_folders_give_split_and_label(files):
    found = list(folder(str(files)))
    assert [(one.id, one.split, one.label) for one in found] == [
        ("20news-bydate-test/sci.space/6", "test", "sci.space"),
        ("20news-bydate-train/alt.atheism/53068", "train", "alt.atheism"),
    ]
    text = "The text of 20news-bydate-test/sci.space/6."
    assert found[0].sections[0].text == text


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ((), (None, None)),
        (("sports",), (None, "sports")),
        (("train",), ("train", None)),
        (("Test",), ("test", None)),
        (("contest",), (None, "contest")),
        (("physics", "quantum"), (None, "physics/quantum")),
        (("train", "a", "b"), ("train", "a/b")),
        (("train", "unsup"), ("train", None)),
    ],
)
def test_names_of_folders_mean_split_or_label(folders, expected):
    assert split_and_label(folders) == expected


def test_invalid_utf8_names_the_file(files):
    (files / "bad.txt").write_bytes(b"caf\xe9 au lait")
    with pytest.raises(BadDocument, match=r"bad\.txt: invalid UTF-8: byte 3"):
        list(folder(str(files)))


def test_invalid_utf8_is_counted_where_allowed(files):
    (files / "bad.txt").write_bytes(b"caf\xe9")
    (files / "blank.txt").write_bytes(b" \n")
    report = Counter()
    assert len(list(folder(str(files), max_bad_fraction=0.5, report=report))) == 2
    assert report == {"documents": 2, "invalid UTF-8": 1, "empty text": 1}


def test_another_encoding_can_be_named(files):
    (files / "bad.txt").write_bytes(b"caf\xe9")
    found = {one.id: one for one in folder(str(files), encoding="latin-1")}
    assert found["bad.txt"].sections[0].text == "café"


def test_a_missing_or_empty_folder_is_named(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such file"):
        folder(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="empty corpus"):
        list(folder(str(tmp_path)))


def test_the_stamp_changes_with_the_files(files):
    before = stamp(str(files))
    (files / "more.txt").write_text("x")
    assert stamp(str(files)) != before


def test_the_stamp_of_contents_changes_with_them_alone(files):
    file = files / "more.txt"
    file.write_text("x")
    before = stamp(str(files), content=True)
    os.utime(file, (1, 1))
    assert stamp(str(files), content=True) == before
    file.write_text("y")
    assert stamp(str(files), content=True) != before


def test_a_link_to_nothing_is_a_bad_document(files):
    (files / "gone.txt").symlink_to(files / "nowhere")
    assert stamp(str(files)) and stamp(str(files), content=True)
    with pytest.raises(
        BadDocument, match=r"gone\.txt: unreadable file: cannot be read .No such"
    ):
        list(folder(str(files)))


def test_an_unknown_encoding_is_named(files):
    with pytest.raises(UserError, match="encoding='utf9'"):
        list(folder(str(files), encoding="utf9"))
