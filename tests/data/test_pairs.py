from collections import Counter

import pytest

from docjax.data import pairs
from docjax.data.pairs import Pair, held_out, linked_pairs, read_pairs
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


def test_a_table_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(HEADER + "train\ta\tb\t1\n", "utf-8-sig")
    assert read_pairs(path) == {"train": [Pair("a", "b", True)]}


def test_a_pair_may_stand_twice_with_one_label(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(HEADER + "train\ta\tb\t1\ntrain\tb\ta\t1\n")
    assert len(read_pairs(path)["train"]) == 2


def made_pairs(similar: int, others: int) -> list[Pair]:
    kinds = [True] * similar + [False] * others
    return [Pair(f"a{n}", f"b{n}", kind) for n, kind in enumerate(kinds)]


def test_a_tenth_of_the_training_pairs_is_held_out_if_nothing_else_is_left():
    pairs = made_pairs(300, 300)
    train, chosen = held_out({"train": pairs, "dev": [], "unknown": []})
    assert sorted(train + chosen) == sorted(pairs)
    for kind in (True, False):
        assert 20 < sum(pair.similar == kind for pair in chosen) < 40
    turned = [Pair(b, a, similar) for a, b, similar in pairs[::-1]]
    _, again = held_out({"test": [], "train": pairs[50:] + turned})
    assert {frozenset(pair) for pair in again} == {frozenset(pair) for pair in chosen}


@pytest.mark.parametrize(
    "splits",
    [
        {"train": made_pairs(300, 300), "dev": [], "test": []},
        {"train": made_pairs(300, 40), "test": []},
        {"train": made_pairs(10, 10) * 30, "test": []},
        {"train": made_pairs(300, 300), "unknown": []},
        {"train": made_pairs(300, 300)},
    ],
    ids=["three splits", "few pairs", "repeated pairs", "not scored", "one split"],
)
def test_other_tables_are_trained_on_whole(splits):
    assert held_out(splits) == (splits["train"], [])


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
