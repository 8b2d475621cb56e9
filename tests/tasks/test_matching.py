import numpy as np
import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from docjax.data.pairs import held_out, read_pairs
from docjax.errors import UserError
from docjax.tasks.matching import FIXED, Matching, matching, measures, splits_of

TUNING = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False])


def test_the_threshold_is_that_of_the_tuning_pairs():
    test = np.array([0.7, 0.6, 0.52, 0.2]), np.array([True, False, True, True])
    found = matching(TUNING, test)
    assert found["threshold"] == pytest.approx(0.55)  # between 0.3 and 0.8
    assert found["f1"] == pytest.approx(2 * 1 / (2 + 3))
    assert found["accuracy"] == 0.25


def test_the_best_f1_decides_not_the_accuracy():
    cosines = np.linspace(0, 1, 11)
    similar = np.array([False, True, False, True] + [True] * 7)
    found = matching((cosines, similar), (cosines, similar))
    assert 0 <= found["threshold"] < 0.1
    assert found["f1"] == pytest.approx(2 * 9 / (10 + 9))


def by_sklearn(similar: np.ndarray, predicted: np.ndarray) -> list[float]:
    """Precision, recall, F1 and accuracy."""
    few = precision_recall_fscore_support(
        similar, predicted, average="binary", zero_division=0
    )
    return [*few[:3], accuracy_score(similar, predicted)]


def test_measures_are_those_of_scikit_learn():
    generator = np.random.default_rng(0)
    for share in (0, 0.1, 0.5, 1):
        similar = generator.random(50) < 0.4
        predicted = generator.random(50) < share
        expected = by_sklearn(similar, predicted)
        assert list(measures(similar, predicted).values()) == pytest.approx(expected)


def test_fixed_thresholds_stand_beside_and_ignore_the_tuning_pairs():
    generator = np.random.default_rng(0)
    cosines, similar = generator.uniform(-1, 1, 90), generator.random(90) < 0.5
    found = matching(TUNING, (cosines, similar))
    assert FIXED == (0.25, 0.5, 0.75)
    for fixed in FIXED:
        values = [found[f"{name}@{fixed}"] for name in measures(similar, similar)]
        assert values == pytest.approx(by_sklearn(similar, cosines > fixed))
    names = {"precision", "recall", "f1", "accuracy", "threshold"}
    assert names == {name for name in found if "@" not in name}


def test_all_pairs_count_together_not_the_mean_of_batches():
    """CoLDE's released code averages the F1 of batches."""
    similar = np.array([True, False, False, False, True, True, True, True])
    cosines = np.array([0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1])
    of_halves = [
        by_sklearn(similar[half], cosines[half] > 0.5)[2]
        for half in (slice(4), slice(4, 8))
    ]
    found = matching(TUNING, (cosines, similar))["f1@0.5"]
    assert found == pytest.approx(8 / 12) != pytest.approx(np.mean(of_halves))


@pytest.mark.parametrize("labels", [[], [True, True], [False]])
def test_pairs_of_one_kind_are_refused(labels):
    part = np.zeros(len(labels)), np.array(labels, bool)
    for parts in ((part, TUNING), (TUNING, part)):
        with pytest.raises(UserError, match=f"{len(labels)} .* pairs, .* both kinds"):
            matching(*parts)


@pytest.fixture
def linked(given, document):
    """Makes data whose linked documents have the same vector, in each of some parts."""

    def make(*parts: str):
        documents, vectors = [], []
        for part in parts:
            for number in range(6):
                link = f"{part}{number // 2 * 2}"
                name = f"{part}{number}"
                documents.append(document(name, split=part, links=(link,)))
                vectors.append(np.eye(3)[number // 2])
        return given(documents, np.array(vectors, np.float32))

    return make


@pytest.mark.parametrize(
    "parts, part, read",
    [
        (("train", "validation", "test"), "test", {"validation", "test"}),
        (("train", "test"), "test", {"train", "test"}),
        (("train", "validation", "test"), "validation", {"train", "validation"}),
    ],
)
def test_links_within_a_part_are_pairs_and_another_part_has_the_threshold(
    linked, parts, part, read
):
    data, task = linked(*parts), Matching(seed=1)
    task.check(data, part)
    assert data.encoded == []
    metrics = task(data, part)
    assert metrics.pop("threshold") == pytest.approx(0.5)
    assert len(metrics) == 4 * (1 + len(FIXED)) and set(metrics.values()) == {1}
    assert {name[:-1] for name in data.encoded} == read


def test_only_the_scored_documents_are_shuffled(linked):
    data = linked("train", "test")
    asked = []
    shuffled = data.shuffled
    data.shuffled = lambda *given: asked.append(given) or shuffled(*given)
    plain = Matching(seed=1)(data, "test")
    found = Matching(seed=1, shuffled="sections")(data, "test")
    assert found["threshold"] == plain["threshold"] and found != plain
    [(ids, pieces, seed)] = asked
    assert {name[:-1] for name in ids} == {"test"} and (pieces, seed) == ("sections", 1)


def test_a_wrong_kind_of_shuffling_is_one_line():
    with pytest.raises(UserError, match="shuffled 'words': give one of sections, seg"):
        Matching(shuffled="words")
    with pytest.raises(UserError, match="seed -1: give 0 or more"):
        Matching(seed=-1)


def test_vectors_of_a_diverged_model_are_told(linked):
    data = linked("train", "test")
    data.by_id["test1"][0] = np.nan
    with pytest.raises(
        UserError, match="3 of 12 pair vectors are not finite .* diverged"
    ):
        Matching()(data, "test")


@pytest.mark.parametrize(
    "parts, message",
    [
        (("train",), "no two test documents have a link"),
        (("test",), "no two validation or train documents have a link"),
        ((), 'no two test documents .* "links" and splits .* the task a table'),
    ],
)
def test_documents_without_links_are_one_line(linked, parts, message):
    with pytest.raises(UserError, match=message):
        Matching().check(linked(*parts), "test")


def test_random_pairs_that_cannot_be_drawn_are_told(given, document):
    some = [document(x, split=s, links=(y,)) for x, y, s in LINKS]
    data = given(some, np.eye(len(some), dtype=np.float32))
    with pytest.raises(UserError, match="1 tuning pairs, 1 of them similar"):
        Matching().check(data, "test")


LINKS = [
    ("a", "b", "train"),
    ("b", "a", "train"),
    ("c", "d", "test"),
    ("d", "c", "test"),
]


def test_a_table_names_documents_of_any_part(linked, tmp_path, caplog):
    rows = [
        f"{split}\ttrain{a}\ttest{b}\t{int(a // 2 == b // 2)}"
        for split in ("train", "dev", "test")
        for a in range(6)
        for b in range(6)
    ]
    path = tmp_path / "pairs.tsv"
    rows.append(rows[-1])
    path.write_text("\n".join(["split\tsource\ttarget\tlabel", *rows]) + "\n")
    data, task = linked("train", "test"), Matching(str(path))
    for part in ("test", "validation"):
        task.check(data, part)
        assert data.encoded == []
    assert "not used: {'train': 36}" in caplog.text
    assert "1 of 37 pairs of 'test' stand in the table before" in caplog.text
    assert task(data, "test")["f1"] == task(data, "validation")["accuracy"] == 1
    with pytest.raises(UserError, match="6 of 12 documents .* 'train0' is the first"):
        task.check(linked("test"), "test")


def test_training_does_not_read_the_pairs_that_choose_the_threshold(tmp_path, given):
    rows = [f"train\ta{n}\tb{n}\t{int(n < 300)}" for n in range(600)]
    rows += ["dev\tc\td\t1", "dev\tc\te\t0"]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(["split\tsource\ttarget\tlabel", *rows]) + "\n")
    data = given([], np.zeros((0, 2), np.float32))
    for part in ("test", "validation"):
        tuning, scored = Matching(str(path)).pairs(data, part)
        assert len(scored) == 2
        assert tuning == held_out(read_pairs(path))[1] and len(tuning) > 20


@pytest.mark.parametrize(
    "splits, part, expected",
    [
        (("train", "dev", "test"), "test", ("dev", "test")),
        (("train", "test"), "test", ("train", "test")),
        (("train", "dev"), "test", ("train", "dev")),
        (("train", "val", "test"), "validation", ("train", "val")),
    ],
)
def test_the_splits_of_a_table_have_their_parts(splits, part, expected):
    assert splits_of({name: [] for name in splits}, part) == expected


@pytest.mark.parametrize(
    "splits, part, message",
    [
        (("train",), "test", 'splits "test or dev or .*" and train .* are train'),
        (("test",), "test", 'splits "test" and dev or .* there are test'),
        (("train", "test"), "validation", 'splits "dev or .*" and train are needed'),
        ((), "validation", "there are none"),
    ],
)
def test_a_missing_split_of_a_table_is_named(splits, part, message):
    with pytest.raises(UserError, match=message):
        splits_of({name: [] for name in splits}, part)
