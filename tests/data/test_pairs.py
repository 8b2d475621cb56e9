import pytest

from docjax.data.pairs import Pair, read_pairs
from docjax.errors import UserError

HEADER = "split\tsource\ttarget\tlabel\n"


def test_pairs_are_read_by_split(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(HEADER + "train\ta\tb\t1\ntest\ta\tc\t0\ntrain\tc\ta\t0\n")
    assert read_pairs(path) == {
        "train": [Pair("a", "b", True), Pair("c", "a", False)],
        "test": [Pair("a", "c", False)],
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: not split, source"),
        ("a\tb\n", "line 1: not split, source"),
        (HEADER + "train\ta\tb\n", "line 2: .* is not split, source"),
        (HEADER + "train\ta\tb\t1\ntrain\ta\tb\tyes\n", "line 3: .* label 0 or 1"),
    ],
)
def test_a_table_that_is_none_is_an_error_with_its_line(tmp_path, text, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"pairs\.tsv, {message}"):
        read_pairs(path)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no\.tsv: cannot be read"):
        read_pairs(tmp_path / "no.tsv")
