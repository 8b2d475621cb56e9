"""What may be a negative, and every way in which a file of them can be wrong."""

import hashlib
import json

import pytest

from docjax.errors import UserError
from docjax.retrieval.negatives import Digest, Trained, made_by, mine, read, write
from docjax.storage import atomic

FOUND = {"q": ["c", "é"], "r": [], "s": ["a"]}


def ranking(asked: list[int]):
    """a, b, c, ... for every query, as many as are asked for."""

    def rank(top: int):
        asked.append(top)
        return {query: dict.fromkeys("abcdefgh"[:top], 1.0) for query in "qr"}

    return rank


def test_relevant_documents_are_no_negatives_and_the_rest_stays_in_order():
    asked = []
    qrels = {"q": {"a": 2, "c": 1, "d": 0}, "r": {"x": 1}, "s": {"a": 1}}
    found = mine(ranking(asked), qrels, top=3)
    assert found == {"q": ["b", "d", "e"], "r": ["a", "b", "c"], "s": []}
    assert asked == [5]  # the most relevant documents of a query are 2


@pytest.mark.parametrize("sign", [1, -1])
def test_documents_near_the_best_answer_are_left_out(sign):
    """Scores 10, 9.6, ..., or the same below 0, of which b is the answer."""
    scores = {"a": 10.0, "b": 9.6, "c": 9.3, "d": 9.0, "e": 2.0}
    if sign < 0:
        scores = {name: score - 20 for name, score in scores.items()}
    rank = lambda top: {"q": scores}
    assert mine(rank, {"q": {"b": 1}}, 9, 0.0) == {"q": ["c", "d", "e"]}
    assert mine(rank, {"q": {"b": 1}}, 9, 0.05) == {"q": ["d", "e"]}
    # An answer below the ranking is below each document, and so is the limit.
    assert mine(rank, {"q": {"x": 1}}, 2, 0.05) == {"q": []}
    assert mine(rank, {"q": {"x": 1}}, 2) == {"q": ["a", "b"]}


def test_a_query_without_judgement_has_no_negatives():
    assert mine(ranking([]), {"q": {"a": 1}}, top=1) == {"q": ["b"]}


def test_a_popular_query_does_not_lengthen_all_rankings():
    asked = []
    qrels = {"q": {f"d{i}": 1 for i in range(5000)}, "r": {"a": 1}}
    assert mine(ranking(asked), qrels, top=3)["r"] == list("bcd")
    mine(ranking(asked), qrels, top=300)
    assert asked == [3 + 100, 300 + 300]


TEXTS = {"q": "of q", "r": "of r", "s": "of s"}
DOCUMENTS = list("abcdefgh") + ["é"]
TRAINED = Trained(DOCUMENTS, list("abc"), TEXTS)


def save(found, file, documents=DOCUMENTS, **queries):
    texts = TEXTS | queries
    write(found, file, queries=texts, documents=Digest(documents), made_by="bm25")


@pytest.fixture
def file(tmp_path):
    save(FOUND, tmp_path / "found.jsonl")
    return tmp_path / "found.jsonl"


def test_a_file_is_read_back_and_says_where_it_is_from(file):
    assert read(file) == read(file, TRAINED) == FOUND
    *lines, last = file.read_bytes().splitlines(keepends=True)
    expected = {"query": "q", "text": "of q", "negatives": ["c", "é"]}
    assert json.loads(lines[0]) == expected
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in DOCUMENTS]
    assert json.loads(last) == {
        "seal": hashlib.sha256(b"".join(lines)).hexdigest(),
        "documents": 9,
        "ids": f"{sum(int(each, 16) for each in digests) % 2**256:064x}",
        "made_by": "bm25",
        "queries": 3,
    }
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_no_queries_make_a_file_that_can_be_read(tmp_path):
    save({}, tmp_path / "none.jsonl", [])
    assert read(tmp_path / "none.jsonl") == {}


def test_a_file_that_is_cut_anywhere_is_refused(file):
    whole = file.read_bytes()
    for size in range(len(whole) - 2):  # the last line may lack its end
        file.write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"found\.jsonl: .* docjax mine"):
            read(file)


def test_a_changed_file_is_refused(file):
    whole = file.read_bytes()
    end = whole.rindex(b'"documents"')
    for place in range(end):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        with pytest.raises(UserError, match=r"found\.jsonl: .* docjax mine"):
            read(file)
    file.write_bytes(b"".join(whole.splitlines(keepends=True)[1:]))
    with pytest.raises(UserError, match="was changed after it was written"):
        read(file)


@pytest.mark.parametrize("text", ["", "[]", "[" * 10**5, '"seal"', "{}", "a\tb"])
def test_another_kind_of_file_is_one_line(tmp_path, text):
    (tmp_path / "other").write_text(text)
    with pytest.raises(UserError, match="the last line is no seal"):
        read(tmp_path / "other")
    with pytest.raises(UserError, match="no: cannot be read .No such file"):
        read(tmp_path / "no")


def test_negatives_of_other_documents_are_refused(file, tmp_path):
    with pytest.raises(UserError, match="2 of 3 documents are not in the .* 'a' is"):
        read(file, TRAINED._replace(corpus=["c", "x"]))
    more = TRAINED._replace(corpus=[*DOCUMENTS, "new"])
    with pytest.raises(
        UserError, match="found.jsonl: was made of other documents than the "
    ):
        read(file, more)
    save({"q": ["c"]}, tmp_path / "trained.jsonl", documents=list("cab"))
    assert read(tmp_path / "trained.jsonl", more) == {"q": ["c"]}


def test_negatives_of_other_queries_with_the_same_ids_are_refused(file):
    some = TRAINED._replace(queries={"q": "of q", "new": "of another"})
    assert read(file, some) == FOUND
    with pytest.raises(UserError, match="none of the 1 queries that train: .* mine, w"):
        read(file, TRAINED._replace(queries={"new": "of another"}))
    with pytest.raises(UserError, match="1 of 2 queries have another text, 's' is the"):
        read(file, TRAINED._replace(queries={"q": "of q", "s": "of another"}))


def test_a_file_of_an_older_docjax_is_one_line(file):
    *lines, last = file.read_bytes().splitlines(keepends=True)
    seal = {name: fact for name, fact in json.loads(last).items() if name != "ids"}
    file.write_bytes(b"".join(lines) + json.dumps(seal).encode())
    assert made_by(file) is None and read(file) == FOUND
    with pytest.raises(UserError, match="made by an older docjax: write it again with"):
        read(file, TRAINED)


def test_what_cannot_be_written_leaves_nothing(tmp_path, file, monkeypatch):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder: cannot be written"):
        save(FOUND, tmp_path / "folder")
    before = file.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "rename", full)
    with pytest.raises(UserError, match="No space left"):
        save({"other": []}, file, other="")
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", file.name]
