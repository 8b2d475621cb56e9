from collections import Counter

import pytest

from docjax.data import pairs
from docjax.data.pairs import HELD_OUT, Pair, linked_pairs, read_pairs, with_held_out
from docjax.errors import UserError
from docjax.types import Document

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
        (HEADER + "train\ta\ta\t1\n", "line 2: 'a' is paired with itself; .* leave"),
        (
            HEADER + "train\ta\tb\t1\ndev\tb\ta\t0\n",
            "line 3: 'b' and 'a' have the label 0, in line 2 the label 1: keep one",
        ),
    ],
)
def test_a_table_that_is_none_is_an_error_with_its_line(tmp_path, text, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"pairs\.tsv, {message}"):
        read_pairs(path)


def test_a_pair_may_stand_twice_with_one_label(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(HEADER + "train\ta\tb\t1\ntrain\tb\ta\t1\n")
    assert len(read_pairs(path)["train"]) == 2


def made_pairs(similar: int, others: int) -> list[Pair]:
    kinds = [True] * similar + [False] * others
    return [Pair(f"a{n}", f"b{n}", kind) for n, kind in enumerate(kinds)]


def test_a_tenth_of_the_training_pairs_is_held_out_if_nothing_else_is_left():
    train, dev = made_pairs(20, 35), [Pair("c", "d", True)]
    again = [Pair("b9", "a9", True)]  # a pair that is held out, the other way round
    found = with_held_out({"train": train + again, "dev": dev})
    assert found["dev"] == dev
    numbers = [int(pair.source[1:]) for pair in found[HELD_OUT]]
    assert numbers == [9, 19, 29, 39, 49]
    assert found["train"] == [pair for pair in train if pair not in found[HELD_OUT]]


@pytest.mark.parametrize(
    "splits",
    [
        {"train": made_pairs(20, 20), "dev": [], "test": []},
        {"train": made_pairs(20, 9), "test": []},
        {"dev": made_pairs(20, 20), "test": []},
        {"train": made_pairs(20, 20)},
    ],
    ids=["three splits", "few pairs", "no training pairs", "one split"],
)
def test_other_tables_stay_as_they_are(splits):
    assert with_held_out(splits) == splits


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no\.tsv: cannot be read"):
        read_pairs(tmp_path / "no.tsv")


def documents(**links: str) -> list[Document]:
    """Documents called by one letter, each with the letters that it links to."""
    return [Document(name, (), links=tuple(some)) for name, some in links.items()]


def test_documents_with_a_link_between_them_are_a_pair_once():
    found = linked_pairs(documents(a="bcx", b="a", c="c", d="b"), seed=0)
    linked = [pair[:2] for pair in found if pair.similar]
    assert linked == [("a", "b"), ("a", "c"), ("d", "b")]  # x is not there


def test_there_are_as_many_random_pairs_with_the_same_targets():
    names = [chr(ord("A") + i) for i in range(26)]
    links = {name: names[i - 3 : i] for i, name in enumerate(names)}
    found = linked_pairs(documents(**links), seed=0)
    linked, others = ([p for p in found if p.similar is kind] for kind in (True, False))
    assert len(linked) == len(others) == 3 * 23
    targets = [Counter(pair.target for pair in some) for some in (linked, others)]
    assert targets[0] == targets[1]
    assert len(set(map(frozenset, (pair[:2] for pair in found)))) == len(found)
    assert {pair.source for pair in others} <= {pair.source for pair in linked}
    assert all(len({*pair[:2]}) == 2 for pair in found)


def test_the_seed_decides_which_pairs_are_drawn():
    names = [chr(ord("A") + i) for i in range(26)]
    links = documents(**{name: names[i - 2 : i] for i, name in enumerate(names)})
    assert linked_pairs(links, seed=1) == linked_pairs(links, seed=1)
    assert linked_pairs(links, seed=1) != linked_pairs(links, seed=2)


@pytest.mark.parametrize("draws", [0, 100])
def test_the_only_unlinked_source_is_found(monkeypatch, draws):
    monkeypatch.setattr(pairs, "DRAWS", draws)
    found = linked_pairs(documents(a="xy", b="xy", c="y", x="", y=""), seed=0)
    assert [pair for pair in found if not pair.similar] == [Pair("c", "x", False)]


def test_documents_without_links_make_no_pairs():
    assert linked_pairs(documents(a="", b="x"), seed=0) == []
