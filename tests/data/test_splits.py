import random
from collections import Counter
from pathlib import Path

import pytest

from docjax.data.sources.jsonl import jsonl
from docjax.data.splits import holdout
from docjax.errors import UserError
from docjax.types import Document, Section

DATA = Path(__file__).resolve().parents[2] / "../shared/data"


def make(number, **keywords):
    return Document(f"d{number}", (Section("", "text"),), **keywords)


def splits(documents, **keywords):
    return {one.id: one.split for one in holdout(documents, **keywords)}


LABELLED = [make(i, label=str(i % 3)) for i in range(300)]


def test_every_label_is_divided_by_the_shares():
    found = splits(LABELLED, test=0.2, validation=0.1)
    counts = Counter((one.label, found[one.id]) for one in LABELLED)
    for label in "012":
        assert counts[label, "test"] == 20
        assert counts[label, "validation"] == 10
        assert counts[label, "train"] == 70


def test_the_order_of_the_documents_does_not_matter():
    shuffled = random.Random(0).sample(LABELLED, len(LABELLED))
    assert splits(shuffled) == splits(LABELLED)
    assert [one.id for one in holdout(shuffled)] == [one.id for one in shuffled]


def test_another_seed_gives_other_parts():
    assert splits(LABELLED, seed=1) != splits(LABELLED, seed=0)


def test_a_split_that_is_given_is_kept():
    documents = [make(i, split="dev") for i in range(10)] + [make(i) for i in range(10)]
    found = [one.split for one in holdout(documents, test=0.5)]
    assert found[:10] == ["dev"] * 10
    assert Counter(found[10:]) == {"train": 5, "test": 5}


def test_a_part_can_be_held_out_of_a_split():
    documents = [make(i, split="train") for i in range(20)] + [make(99, split="test")]
    found = splits(documents, test=0.0, validation=0.1, of="train")
    assert found.pop("d99") == "test"
    assert Counter(found.values()) == {"train": 18, "validation": 2}


def test_a_split_to_divide_that_is_not_there_is_an_error():
    documents = [make(0, split="train")]
    assert list(holdout(documents)) == documents
    with pytest.raises(UserError, match="of='dev': no document is in that split"):
        list(holdout(documents, of="dev"))


def test_a_group_stays_together():
    documents = [make(i, metadata={"chapter": i % 40}) for i in range(200)]
    found = list(holdout(documents, by="chapter"))
    chapters = {(one.metadata["chapter"], one.split) for one in found}
    assert len(chapters) == 40
    assert Counter(split for _, split in chapters) == {"train": 32, "test": 8}


def test_a_function_is_read_twice_and_gives_the_same():
    assert splits(lambda: iter(LABELLED)) == splits(iter(LABELLED))


def test_a_document_without_the_group_is_named():
    with pytest.raises(UserError, match="by='chapter': document 'd0' .* it has book"):
        list(holdout([make(0, metadata={"book": 1})], by="chapter"))


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.6, 0.5), (-0.1, 0.0)])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(UserError, match="below 1"):
        list(holdout(LABELLED, test=shares[0], validation=shares[1]))


def test_chapters_of_openstax_are_disjoint():
    path = DATA / "openstax.jsonl.xz"
    if not path.exists():
        pytest.skip("openstax is not in ../shared/data")
    found = list(holdout(jsonl(str(path)), by="chapter"))
    chapters = {"train": set(), "test": set()}
    for one in found:
        chapters[one.split].add(one.metadata["chapter"])
    assert not chapters["train"] & chapters["test"]
    for label in {one.label for one in found}:
        own = [one.split for one in found if one.label == label]
        assert 0.1 < own.count("test") / len(own) < 0.3
