"""Articles as a collection, by the rules of WIKIR."""

import json
from collections import Counter

import pytest

from docjax import cli
from docjax.data.records import full_text
from docjax.data.sources.wikir import first_sentence, wikir
from docjax.errors import UserError
from docjax.retrieval import collection
from docjax.retrieval.from_articles import write
from docjax.storage import atomic
from docjax.types import Document, Section

LEAD = (
    "For other people of that name, see Ada (name).\n\nBorn 1815\n\nKnown for\n\n"
    "Ada Lovelace (1815 – 1852) was an English mathematician. She wrote a program."
)
SENTENCE = "Ada Lovelace (1815 – 1852) was an English mathematician."
FAR_BELOW = (
    "A trust is a tie of three people. The law of it is old here. "
    "Law can change it at times. Trust law is a wide field."
)


def article(name, links=(), title="Ada Lovelace", words=200):
    sections = [
        {"heading": "", "text": LEAD},
        {"heading": "Life", "text": "word " * words},
    ]
    record = {"id": name, "title": title, "sections": sections, "links": list(links)}
    return json.dumps(record) + "\n"


def articles(path, lines):
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("title", "Ada Lovelace"),
        ("sentence", "Ada Lovelace (1815 – 1852) was an English mathematician."),
    ],
)
def test_an_article_lacks_title_and_first_sentence_and_has_its_sections(
    tmp_path, query, expected
):
    path = articles(tmp_path / "a.jsonl", [article("a", ["b"]), article("b")])
    first, _ = wikir(path, query)
    assert first.query == expected and first.title == "" and first.links == ("b",)
    assert [each.heading for each in first.sections] == ["", "Life"]
    assert SENTENCE not in full_text(first) and "She wrote" in full_text(first)
    short, _ = wikir(path, query, query_words=2, document_words=30)
    assert short.query == "Ada Lovelace" and len(full_text(short).split()) == 30 + 1


def test_short_articles_are_left_out_and_counted(tmp_path, caplog):
    path = articles(tmp_path / "a.jsonl", [article("a", words=5), article("b")])
    report = Counter()
    assert [each.id for each in wikir(path, report=report)] == ["b"]
    assert report["short articles"] == 1 and not caplog.text
    assert [each.id for each in wikir(path)] == ["b"]
    assert f"{path}: left out 1 short articles" in caplog.text
    with pytest.raises(UserError, match="query 'heading' is none of title, sentence"):
        list(wikir(path, "heading"))


def test_articles_without_a_query_or_further_text_are_counted(tmp_path):
    texts = {"one sentence": SENTENCE, "": f"{SENTENCE} More."}
    lines = [
        json.dumps({"id": f"a {title}", "title": title and "Ada", "text": text}) + "\n"
        for title, text in texts.items()
    ]
    report = Counter()
    path = articles(tmp_path / "a.jsonl", lines)
    assert list(wikir(path, least_words=1, report=report)) == []
    del report["documents"]
    assert report == {"articles without further text": 1, "articles without title": 1}


def test_lines_above_the_first_sentence_are_no_sentences():
    make = lambda text: Document("a", (Section("", text),), title="Ada Lovelace")
    assert first_sentence(make(LEAD)) == SENTENCE
    assert first_sentence(make("Ada Lovelace redirects here and to her.")) is None
    assert first_sentence(make("Quite another thing is said in here.")) is None
    names = "In this English name, Lovelace is the title of a husband."
    assert first_sentence(make(f"{names} {SENTENCE}")) == SENTENCE
    caption = "Ada Lovelace, portrait by Margaret Carpenter."
    assert first_sentence(make(f"{caption}\n\n{SENTENCE}")) == SENTENCE
    assert first_sentence(make(f"{caption} More.")) == caption  # better than none


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        (
            "Bridgewater Canal",
            "The Bridgewater Canal connects Runcorn and Leigh. It was dug by Bridgewater.",
            "The Bridgewater Canal connects Runcorn and Leigh.",
        ),
        (
            "Military tactics",
            "Separating armies is a common military plan. Military tactics are an art.",
            "Military tactics are an art.",
        ),
        (
            "Gothic War (535–554)",
            "The Gothic War with Rome took place from 535. It was one of many Gothic Wars.",
            "The Gothic War with Rome took place from 535.",
        ),
        ("Trust law", FAR_BELOW, "A trust is a tie of three people."),
    ],
)
def test_a_first_sentence_says_something_of_the_whole_title(title, text, expected):
    one = Document("a", (Section("", text),), title=title)
    assert first_sentence(one) == expected


def test_a_sentence_goes_on_after_a_full_stop_in_brackets():
    text = "Ada Lovelace (born c. 1815) was a mathematician. She wrote a program."
    spouse = "Spouse(s) Ada Lovelace (m. 1835; d. 1852; e. 1860; f. 1870; g. 1880\n\n"
    found = first_sentence(Document("a", (Section("", spouse + text),), "Ada"))
    assert found == "Ada Lovelace (born c. 1815) was a mathematician."


def documents(links):
    return [
        Document(name, (Section("", name),), query=f"query of {name}", links=linked)
        for name, linked in links.items()
    ]


def test_documents_that_link_to_the_article_of_a_query_answer_it(tmp_path):
    links = {str(i): ("x", str(i)) for i in range(5)} | {"x": (), "y": ("0",)}
    links["5"] = ("x", "gone", "0")
    links |= {f"z{i}": ("0", "x") for i in range(4)}
    found = write(documents(links), tmp_path / "w", validation=0, test=1)
    assert found["relevance"] == "links and own document"
    assert found["queries"] == {"test": 1, "train": 1}
    assert found["queries_left_out"] == len(links) - 2
    assert found["links_left_out"] == 1
    qrels = collection.read_judged(tmp_path / "w", 0.0).qrels
    assert qrels["x"] == {
        **{str(i): 1 for i in range(6)},
        **{f"z{i}": 1 for i in range(4)},
        "x": 2,
    }
    assert qrels["0"] == {"y": 1, "5": 1, **{f"z{i}": 1 for i in range(4)}, "0": 2}


def test_articles_with_few_links_are_told_of_the_limit(tmp_path):
    links = {str(i): (str((i + 1) % 20),) for i in range(20)}
    with pytest.raises(
        UserError, match="no article has 5 others .*lower --least-links"
    ):
        write(documents(links), tmp_path / "w", validation=2, test=3)
    sizes = dict(validation=2, test=3, least_links=1)
    assert write(documents(links), tmp_path / "w", **sizes)["queries_left_out"] == 0


def test_bad_articles_are_told_of_without_a_report(tmp_path, caplog):
    path = articles(tmp_path / "a.jsonl", [article("a"), "{\n"])
    list(wikir(path, max_bad_fraction=0.5))
    assert "left out 1 of 2 documents, which are bad: 1 bad JSON" in caplog.text


def test_a_call_that_was_killed_is_made_again(tmp_path):
    links = {str(i): () for i in range(20)}
    (tmp_path / "corpus.jsonl.partial").write_text("half of the cor")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels/dev.tsv").write_text("of the call before")
    (tmp_path / "queries.log").write_text("what a shell wrote")
    write(documents(links), tmp_path, validation=0, test=3)
    assert len(collection.read(tmp_path).test) == 3
    names = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.*")}
    made = {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv", "qrels/train.tsv"}
    assert names == {*made, "queries.log"}


def test_a_call_that_failed_leaves_nothing(tmp_path, monkeypatch):
    written = atomic.write_text

    def full(path, text):
        if path.suffix == ".tsv":
            raise OSError("no room")
        written(path, text)

    monkeypatch.setattr(atomic, "write_text", full)
    links = documents({str(i): () for i in range(20)})
    with pytest.raises(OSError, match="no room"):
        write(links, tmp_path / "w", validation=2, test=3)
    assert not list((tmp_path / "w").iterdir())


@pytest.mark.parametrize(
    "name", ["corpus.tsv", "corpus.jsonl.xz", "queries.tsv", "queries.jsonl.gz"]
)
def test_no_other_collection_is_written_over(capsys, tmp_path, name):
    (tmp_path / name).write_text("")
    links = documents({str(i): () for i in range(20)})
    with pytest.raises(UserError, match=f"has {name} already: name another"):
        write(links, tmp_path, validation=2, test=3)
    output = str(tmp_path / name)
    assert cli.main(["queries", "no.jsonl", "--output", output]) == 2
    assert "is a file: give the name of a folder" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_ids_that_tables_have_no_room_for_are_refused(tmp_path):
    links = documents({"a\tb": ()} | {str(i): () for i in range(20)})
    with pytest.raises(UserError, match="has a tab or a line break in its id"):
        write(links, tmp_path / "w", validation=2, test=3)


def test_without_a_part_that_chooses_each_tenth_training_query_does(tmp_path):
    links = {str(i): () for i in range(23)}
    write(documents(links), tmp_path / "w", validation=0, test=3)
    assert len(collection.read(tmp_path / "w").tuning) == 2
    assert len(collection.to_train(tmp_path / "w", None)[1]) == 18


def test_without_links_a_query_has_its_own_document(tmp_path):
    links = {str(i): () for i in range(10)}
    found = write(documents(links), tmp_path / "w", validation=2, test=3)
    assert found["relevance"] == "own document alone"
    read = collection.read(tmp_path / "w")
    assert (len(read.test), len(read.tuning)) == (3, 2)
    assert all(gains == {query: 2} for query, gains in read.test.items())
    assert len(collection.to_train(tmp_path / "w", None)[1]) == 5
    with pytest.raises(UserError, match="has corpus.jsonl already: name another"):
        write(documents(links), tmp_path / "w", validation=2, test=3)
    with pytest.raises(UserError, match="10 queries: too few for 5 to validate, 5 to"):
        write(documents(links), tmp_path / "v", validation=5, test=5)
    assert not list((tmp_path / "v").iterdir())
    write(documents(links), tmp_path / "v", validation=2, test=3)  # the corrected call
    assert len(collection.read(tmp_path / "v").test) == 3


def test_the_command_says_what_it_made(capsys, tmp_path):
    lines = [article(str(i), title=f"Ada {i}") for i in range(6)] + [
        article("s", words=3)
    ]
    path = articles(tmp_path / "a.jsonl", lines)
    options = ["--output", str(tmp_path / "w"), "--validation", "1", "--test", "2"]
    assert cli.main(["queries", path, *options]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["queries"] == {"dev": 1, "test": 2, "train": 3}
    assert counts["left_out"] == {"short articles": 1}
    queries = collection.read(tmp_path / "w").queries
    assert sorted(queries.values()) == [f"Ada {i}" for i in range(6)]


@pytest.mark.parametrize(
    "flag, least",
    [("--test", 0), ("--validation", 0), ("--query-words", 1), ("--document-words", 1)],
)
def test_numbers_that_are_too_small_are_one_line(capsys, tmp_path, flag, least):
    options = ["--output", str(tmp_path / "w"), flag, str(least - 1)]
    assert cli.main(["queries", "no.jsonl", *options]) == 2
    error = capsys.readouterr().err
    assert f"{flag} {least - 1} is too small; give at least {least}" in error
    assert error.count("\n") == 1 and not (tmp_path / "w").exists()
