"""`docjax search` against the vectors of `encode`."""

import dataclasses
import io
import json
import sys

import numpy as np
import pytest

import docjax
from docjax import cli
from docjax.data.documents import parse
from docjax.model.document_model import DocumentModel
from docjax.model.search import search

WORDS = "mother river garden window letter market doctor engine winter silver".split()


@pytest.fixture(scope="module")
def model(tiny) -> DocumentModel:
    return docjax.load(tiny)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(WORDS, 6)) for _ in range(30)]
    return written(tmp_path_factory.mktemp("corpus") / "corpus.jsonl", "d", texts)


@pytest.fixture(scope="module")
def queries(tmp_path_factory):
    texts = ["a river and a garden", "the doctor's letter", "silver"]
    return written(tmp_path_factory.mktemp("queries") / "queries.jsonl", "q", texts)


def written(path, prefix, texts):
    records = [{"_id": f"{prefix}{i}", "text": text} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def run(capsys, *arguments):
    code = cli.main(["search", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_a_run_holds_the_nearest_documents_of_each_query(
    capsys, model, tiny, corpus, queries, tmp_path
):
    output = tmp_path / "out.trec"
    options = "--queries", queries, "--run", output, "--top", 5
    code, out, _ = run(capsys, tiny, corpus, *options)
    counts = json.loads(out)
    assert code == 0 and (counts["queries"], counts["documents"]) == (3, 30)
    assert counts["tokens_cut"] == 0 and counts["left_out"] == {}
    unit = dict(normalize_embeddings=True)
    asked = model.encode_queries([one["text"] for one in records(queries)], **unit)
    scores = asked @ model.encode(records(corpus), **unit).T
    found = [line.split() for line in output.read_text().splitlines()]
    assert [line[0] for line in found] == [f"q{i}" for i in (0, 1, 2) for _ in range(5)]
    best = np.sort(scores, axis=1)[:, ::-1][:, :5].ravel()
    np.testing.assert_allclose([float(line[4]) for line in found], best, atol=1e-5)
    for line in found:
        score = scores[int(line[0][1:]), int(line[2][1:])]
        assert float(line[4]) == pytest.approx(score, abs=1e-5)


def test_a_corpus_comes_from_standard_input_and_a_run_goes_to_standard_output(
    capsys, tiny, corpus, queries, tmp_path, monkeypatch
):
    options = "--queries", queries, "--top", 2, "--run"
    run(capsys, tiny, corpus, *options, tmp_path / "out.trec")
    given = io.TextIOWrapper(io.BytesIO(corpus.read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    code, out, err = run(capsys, tiny, "-", *options, "-")
    assert code == 0 and out == (tmp_path / "out.trec").read_text()
    assert json.loads(err.splitlines()[-1])["documents"] == 30


def test_a_table_and_topics_give_the_run_of_the_same_json_lines(
    capsys, tiny, corpus, queries, tmp_path
):
    """The files of MS MARCO and TREC."""
    table, topics = tmp_path / "corpus.tsv", tmp_path / "topics.txt"
    rows = records(corpus)
    table.write_text("".join(f"{one['_id']}\t{one['text']}\n" for one in rows))
    asked = "<top>\n<num> Number: {_id}\n<title> {text}\n\n<desc>\n</top>\n"
    topics.write_text("".join(asked.format(**one) for one in records(queries)))
    runs = tmp_path / "jsonl.trec", tmp_path / "tsv.trec"
    run(capsys, tiny, corpus, "--queries", queries, "--run", runs[0])
    run(capsys, tiny, table, "--queries", topics, "--run", runs[1])
    assert runs[0].read_text() == runs[1].read_text() != ""


def test_vectors_are_compared_as_the_model_was_trained(model, corpus):
    documents = [parse(one, "here") for one in records(corpus)]
    vectors = model.encode(documents)
    query = model.encode_queries(["silver"])
    products, lengths = vectors @ query[0], np.linalg.norm(vectors, axis=1)
    cosines = products / lengths / np.linalg.norm(query)
    for kind, scores in (("dot", products), ("cosine", cosines)):
        other = dataclasses.replace(model, similarity_fn_name=kind)
        found = search(other, documents, {"q": "silver"}, {}, top=3)["q"]
        expected = np.sort(scores)[::-1][:3]
        np.testing.assert_allclose(list(found.values()), expected, rtol=1e-4)


def test_a_long_query_is_read_as_a_document(model):
    texts = ["silver", " ".join(WORDS * 30), "a river"]
    found = model.encode_queries_of_any_length(texts)
    np.testing.assert_allclose(found[::2], model.encode_queries(texts[::2]), atol=1e-5)
    np.testing.assert_allclose(found[1], model.encode(texts[1:2])[0], atol=1e-5)


def test_mistakes_are_one_line(capsys, tiny, corpus, queries, tmp_path):
    spaced = tmp_path / "spaced.jsonl"
    spaced.write_text('{"id": "a b", "text": "silver"}\n')
    output = tmp_path / "out.trec"
    there = "--run", output, "--queries"
    for arguments, message in (
        ((tiny, tmp_path / "no.jsonl", *there, queries), "no such file"),
        (("no", tmp_path / "no.jsonl", *there, queries), "no.jsonl: no such file"),
        ((tiny, corpus, *there, tmp_path / "no.jsonl"), "no such file"),
        ((tmp_path, corpus, *there, queries), "no such file"),
        ((tiny, spaced, *there, queries), "no room for white space"),
        ((tiny, corpus, *there, spaced), "no room for white space"),
        ((tiny, "-", *there, "-"), "both standard input"),
        ((tiny, corpus, *there, queries, "--top", 0), "--top 0"),
        ((tiny, corpus, "--queries", queries, "--run", tmp_path / "no/a"), "no/a"),
        (("no", corpus, "--queries", queries, "--run", ""), "--run '' names no file"),
        (("no", corpus, "--queries", queries, "--run", tmp_path), "names no file"),
        (
            ("no", corpus, "--queries", queries, "--run", corpus),
            "is CORPUS too: name an",
        ),
        (
            ("no", corpus, *there, queries, "--hits", output),
            "is --run too: name another",
        ),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "") and not output.exists()
        assert message in err and err.count("\n") == 1
