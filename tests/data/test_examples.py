"""Examples: which documents a loss compares, and which are related."""

import itertools
import logging
from pathlib import Path

import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.examples import Documents, Known, Pairs, linked, relation
from docjax.data.pairs import held_out, read_pairs
from docjax.data.units import Whole
from docjax.data.word_tokenizer import train_words
from docjax.errors import UserError
from docjax.types import DOCUMENT, Document, Section

HEADER = "split\tsource\ttarget\tlabel\n"
# d0 and d1 name each other; d2 names d0, itself, one that is not there; d5 names d4.
LINKS = [("d1",), ("d0",), ("d0", "d2", "gone"), (), (), ("d4", "d4"), ()]


def known(folder, documents=None, links=LINKS) -> Known:
    made = [
        Document(f"d{i}", (Section("", "word"),), links=some)
        for i, some in enumerate(links)
    ]
    tokenizer = train_words(["word other"], least_count=1, stop_words=False)
    corpus = Corpus.build(folder / "corpus", made, Whole(), tokenizer, 8, "")
    rows = np.arange(len(made)) if documents is None else np.array(documents)
    labels = np.arange(len(made)) % 3 - 1
    return Known(folder, lambda: iter(made), corpus, None, rows, labels)


def linked_by_hand(one: int, other: int) -> bool:
    """Whether one of two documents names the other."""
    return one != other and (f"d{other}" in LINKS[one] or f"d{one}" in LINKS[other])


def table(folder, *lines: str) -> str:
    path = folder / "pairs.tsv"
    path.write_text(HEADER + "".join(line.replace(" ", "\t") + "\n" for line in lines))
    return str(path)


def test_every_document_that_training_reads_is_an_example(tmp_path):
    found = Documents().among(known(tmp_path, [5, 2, 3]))
    assert found.kinds == (DOCUMENT,) and found.related is None
    assert found.rows.tolist() == [[5], [2], [3]]
    assert found.labels.tolist() == [1, 1, -1]
    some = found.where(np.array([True, False, True]))
    assert some.rows.tolist() == [[5], [3]] and some.labels.tolist() == [1, -1]


def test_linked_documents_are_related_in_both_directions(tmp_path):
    related = Documents(related="links").among(known(tmp_path)).related
    for rows in itertools.permutations(range(7), 4):
        found = related(np.array(rows)[:, None])
        expected = [[linked_by_hand(i, j) for j in rows] for i in rows]
        assert found.dtype == bool and found.tolist() == expected
        assert (found == found.T).all()
    assert any(linked_by_hand(i, j) for i in range(7) for j in range(7))


def test_a_document_that_comes_twice_is_related_to_the_same_ones(tmp_path):
    neighbours = linked(known(tmp_path).corpus, np.arange(7))
    assert relation(neighbours, np.array([[0], [2], [2]])).tolist() == [
        [False, True, True],
        [True, False, False],
        [True, False, False],
    ]


def test_a_table_relates_its_similar_pairs(tmp_path):
    path = table(tmp_path, "train d0 d3 1", "train d3 d4 0", "dev d1 d2 1")
    found = Documents("pairs", path).among(known(tmp_path))
    assert found.rows.tolist() == [[i] for i in range(7)]
    mask = found.related(found.rows) & ~np.eye(7, dtype=bool)
    assert np.argwhere(mask).tolist() == [[0, 3], [3, 0]]
    assert found.together[0] >= {3} and 1 not in found.together
    assert (
        Documents("pairs", path, together=False).among(known(tmp_path)).together is None
    )
    with pytest.raises(UserError, match="no table of pairs: give --config.examples"):
        Documents("pairs").files()


def test_links_are_read_from_the_documents_that_training_reads(tmp_path):
    """d2 names d0; a link to a document that is not read relates nothing."""
    corpus, rows = known(tmp_path).corpus, np.array([[0], [2]])
    assert relation(linked(corpus, np.array([0, 2])), rows).any()
    with pytest.raises(UserError, match="no training document links to another"):
        linked(corpus, np.array([2, 3]))


def test_the_candidates_of_several_slots_are_those_of_the_later_slots():
    neighbours = {0: {1, 2}, 3: {5}}
    rows = np.array([[0, 1, 9], [3, 2, 5], [4, 1, 2]])
    candidates = [1, 2, 1, 9, 5, 2]
    expected = [[j in neighbours.get(i, ()) for j in candidates] for i in (0, 3, 4)]
    assert relation(neighbours, rows).tolist() == expected


def test_documents_without_links_between_them_are_a_mistake(tmp_path):
    given = known(tmp_path, links=[("gone",), ("d1",)])
    with pytest.raises(UserError, match="no training document links to another; give"):
        Documents(related="links").among(given)


def test_an_unknown_relation_is_a_mistake():
    with pytest.raises(UserError, match="related 'label' is neither 'links'"):
        Documents(related="label")


def test_similar_pairs_of_the_training_split_are_examples(tmp_path):
    lines = "train d1 d2 1", "train d1 d3 0", "test d0 d1 1", "train d5 d0 1"
    found = Pairs(table(tmp_path, *lines)).among(known(tmp_path))
    assert found.kinds == (DOCUMENT, DOCUMENT)
    assert found.rows.tolist() == [[1, 2], [5, 0]]
    assert found.labels.tolist() == [0, 1]


def test_no_pair_of_the_table_is_a_negative(tmp_path):
    """d1 is similar to d2 and d4, d4 is the source of another pair with d1."""
    lines = "train d1 d2 1", "train d1 d4 1", "train d4 d1 1", "train d5 d0 1"
    found = Pairs(table(tmp_path, *lines)).among(known(tmp_path))
    assert found.related(found.rows).tolist() == [
        [True, True, True, False],
        [True, True, True, False],
        [False, True, True, False],
        [False, False, False, True],
    ]


def test_pairs_of_documents_that_training_does_not_read_are_left_out(tmp_path, caplog):
    lines = "train d1 d2 1", "train d1 d3 1", "train d4 d2 1"
    with caplog.at_level(logging.WARNING):
        found = Pairs(table(tmp_path, *lines)).among(known(tmp_path, [1, 2, 4]))
    assert found.rows.tolist() == [[1, 2], [4, 2]]
    assert "left out 1 of 3 pairs: training does not read" in caplog.text


def test_training_does_not_read_pairs_that_choose_a_threshold(tmp_path):
    pairs = list(itertools.combinations(range(40), 2))
    lines = [f"train d{i} d{j} {int(i % 2 == j % 2)}" for i, j in pairs]
    path = table(tmp_path, *lines, "dev d0 d1 0")
    chosen = {frozenset(pair[:2]) for pair in held_out(read_pairs(Path(path)))[1]}
    given = known(tmp_path, links=[()] * 40)
    found = Pairs(path, dissimilar=True).among(given)
    read = {frozenset(f"d{row}" for row in rows) for rows in found.rows.tolist()}
    assert 40 < len(chosen) == len(pairs) - len(read) and not chosen & read
    related = Documents(related="pairs", path=path).among(given).related
    for i, j in pairs:
        expected = i % 2 == j % 2 and {f"d{i}", f"d{j}"} not in chosen
        assert related(np.array([[i], [j]]))[0, 1] == expected


def test_pairs_with_unknown_documents_are_a_mistake_with_their_number(tmp_path):
    path = table(tmp_path, "train d1 e9 1", "train e8 d1 1", "train e7 e6 0")
    message = r"pairs\.tsv: 2 of its documents are not in the corpus, the first is 'e8'"
    with pytest.raises(UserError, match=message) as error:
        Pairs(path).among(known(tmp_path))
    assert "\n" not in str(error.value)


def test_a_table_without_similar_pairs_to_train_on_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match='"train" has the label 1; its splits are test'):
        Pairs(table(tmp_path, "test d1 d2 1")).among(known(tmp_path))


def test_a_missing_table_is_named_before_the_corpus_is_read(tmp_path):
    path = str(tmp_path / "no.tsv")
    with pytest.raises(UserError, match=r"examples.path .*no\.tsv: no such file"):
        Pairs(path).files()
    assert Pairs().files() == ()


def test_pairs_of_both_kinds_have_their_label(tmp_path):
    """The class of a document is no label of a pair, and no pair is left out."""
    lines = "train d1 d2 1", "train d1 d3 0", "test d0 d1 1", "train d5 d0 1"
    pairs = Pairs(table(tmp_path, *lines), dissimilar=True)
    found = pairs.among(known(tmp_path))
    assert found.rows.tolist() == [[1, 2], [1, 3], [5, 0]]
    assert found.labels.tolist() == [1, 0, 1] and found.related is None
    some = found.where(np.array([False, True, True]))
    assert some.rows.tolist() == [[1, 3], [5, 0]] and some.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    "lines, message",
    [
        (("train d1 d2 1", "test d1 d3 0"), "1 training pairs, 1 of them similar"),
        (("train d1 d2 0",), '"train" has the label 1; its splits are train'),
        # Training reads one document of the pair that is not similar.
        (("train d1 d2 1", "train d1 d6 0"), "1 training pairs, 1 .*: both kinds"),
        (("train d1 d2 1", "train d1 e9 0"), "1 of its documents .* is 'e9'"),
    ],
)
def test_pairs_of_one_label_or_of_unknown_documents_are_one_line(
    tmp_path, lines, message
):
    pairs = Pairs(table(tmp_path, *lines), dissimilar=True)
    with pytest.raises(UserError, match=message) as error:
        pairs.among(known(tmp_path, [1, 2, 3]))
    assert "\n" not in str(error.value)


def test_without_a_table_links_make_the_pairs(tmp_path):
    """As many pairs without a link; each has the target of a linked pair."""
    found = Pairs(dissimilar=True).among(known(tmp_path))
    similar = found.rows[found.labels == 1].tolist()
    assert similar == [[0, 1], [2, 0], [5, 4]]
    others = found.rows[found.labels == 0].tolist()
    assert others and all(not linked_by_hand(*pair) for pair in others)
    assert {pair[1] for pair in others} <= {1, 0, 4}
    assert Pairs().among(known(tmp_path)).rows.tolist() == similar


def test_links_to_documents_that_training_does_not_read_make_no_pairs(tmp_path):
    found = Pairs().among(known(tmp_path, [0, 2, 4]))
    assert found.rows.tolist() == [[2, 0]]
    with pytest.raises(UserError, match="links to another, .* give a table of pairs"):
        Pairs().among(known(tmp_path, [2, 3]))


def test_a_table_that_relates_no_training_documents_is_a_mistake(tmp_path):
    path = table(tmp_path, "train d0 d1 0", "train d2 d3 1")
    found = Documents(related="pairs", path=path)
    assert found.among(known(tmp_path)).related is not None
    with pytest.raises(UserError, match="has no similar pair of two training doc"):
        found.among(known(tmp_path / "few", [0, 1, 2]))
