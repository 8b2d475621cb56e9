"""`docjax index` and searching it: equal to a search over the corpus, whatever stops it.

The file is also the program that is killed.
"""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import docjax
from docjax import cli
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.model import build_index as building
from docjax.model import encode_file
from docjax.model.build_index import build_index
from docjax.model.document_model import DocumentModel
from docjax.model.search import hits, query_vectors, search, search_index
from docjax.retrieval import fusion, index_files, nearest, shortlist, systems, trec
from docjax.retrieval import index_folder as index
from docjax.retrieval.systems import QueryVectors
from docjax.storage import atomic

ROOT = Path(__file__).resolve().parents[2]
WORDS = "mother river garden window letter market doctor engine winter silver".split()
QUERIES = {"q": "a river and a garden. The letter?", "r": "silver", "s": "of zebras"}
COUNT = 60


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(encode_file, "DOCUMENTS", 8)
    monkeypatch.setattr(nearest, "ROWS", 32)
    monkeypatch.setattr(building, "AT_ONCE", 16)


@pytest.fixture(scope="module")
def model(tiny):
    return docjax.load(tiny)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Documents of 1 to 6 segments, the last one without a word for BM25."""
    generator = np.random.default_rng(0)
    texts = [
        " ".join(generator.choice(WORDS, n)) for n in generator.integers(1, 300, COUNT)
    ]
    texts[-1] = "the of"
    records = [
        {
            "id": f"d{i}",
            "title": f"Title {i}",
            "sections": [{"heading": "H", "text": t}],
        }
        for i, t in enumerate(texts)
    ]
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


@pytest.fixture
def made(model, corpus, tmp_path):
    def make(**keywords) -> index.Index:
        build_index(model, str(corpus), tmp_path / "index", **keywords)
        return index.load(tmp_path / "index", model.fingerprint())

    return make


def same(found, expected):
    assert list(found) == list(expected)
    for query, scores in expected.items():
        assert list(found[query]) == list(scores)
        np.testing.assert_allclose(
            list(found[query].values()), list(scores.values()), rtol=1e-4, atol=1e-5
        )


def test_an_index_finds_what_a_search_over_the_corpus_finds(model, corpus, made):
    from docjax.retrieval import bm25

    read = lambda: jsonl(str(corpus))
    found = search_index(model, made(), QUERIES, "dense", 10)
    same(found, search(model, read(), QUERIES, {}, 10))
    by_words = search_index(model, made(), QUERIES, "bm25", 10)
    same(by_words, bm25.index(read()).search(QUERIES, top=10))
    assert by_words["s"] == {} and len(made()) == COUNT


def test_the_best_passage_counts(model, corpus, made):
    """Against the segments of each document, read as queries."""

    found = made(passages=True)
    documents = list(jsonl(str(corpus)))
    parts = {
        each.id: passages
        for each, (_, passages) in zip(
            documents, model.encode_with_passages(documents, {}), strict=True
        )
    }
    assert max(map(len, parts.values())) >= 5 and min(map(len, parts.values())) == 1
    for name, texts in QUERIES.items():
        [vector] = model.encode_queries([texts])
        expected = {
            d: float(model.similarity(vector, p).max()) for d, p in parts.items()
        }
        ranked = search_index(model, found, {name: texts}, "maxp", COUNT)[name]
        assert ranked == pytest.approx(expected, abs=1e-5)
        assert list(ranked.values()) == sorted(ranked.values(), reverse=True)
    sentences = model.encode_queries(["a river and a garden.", "The letter?"])
    expected = {
        name: float(model.similarity(sentences, p).max(1).sum())
        for name, p in parts.items()
    }
    ranked = search_index(model, found, {"q": QUERIES["q"]}, "maxsim", COUNT)["q"]
    assert ranked == pytest.approx(expected, abs=1e-5)


def test_fused_systems_hold_the_documents_of_both(model, made):
    found = made(passages=True)
    for system in ("fused", "fused_maxp", "fused_maxsim", "rrf"):
        ranked = search_index(model, found, QUERIES, system, 5)
        assert all(len(scores) == 5 for scores in ranked.values())
    for part, system in systems.FUSED.items():
        alone = search_index(model, found, QUERIES, part, 5)
        fused = search_index(model, found, QUERIES, system, 5, weight=1.0)
        assert list(map(list, fused.values())) == list(map(list, alone.values()))


def test_scores_are_fused_raw_as_asked(model, made):
    found, weights = made(), dict.fromkeys(QUERIES, 0.75)
    parts = [search_index(model, found, QUERIES, part) for part in ("dense", "bm25")]
    for scale in ("raw", "min-max"):
        expected = fusion.fuse(*parts, weights, scale, 5)
        options = {"weight": 0.75, "scale": scale}
        assert search_index(model, found, QUERIES, "fused", 5, **options) == expected


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_codes_choose_and_vectors_score(model, made, kind, monkeypatch):
    """Of 8 groups of vectors the codes choose 2, and float32 compares those."""
    generator = np.random.default_rng(0)
    draw = lambda count: generator.normal(size=(count, 16)).astype(np.float32)
    encode = DocumentModel.encode_stream
    monkeypatch.setattr(
        *(DocumentModel, "encode_stream"),
        lambda *given, **options: (draw(1)[0] for _ in encode(*given, **options)),
    )
    monkeypatch.setattr(shortlist, "GROUPS", {kind: 0.5})
    found, asked = made(kind=kind), draw(3)
    best = found.by_vectors("dense", QueryVectors(asked, None), 4)
    codes, steps = (
        np.load(found.folder / n) for n in (index_files.CODES, index_files.STEPS)
    )
    signs = np.unpackbits(codes.view(np.uint8), axis=-1) * 2.0 - 1
    decoded = (codes if kind == "int8" else signs) * steps[:, None]
    by_codes = model.similarity(asked, decoded.astype(np.float32))
    by_vectors = model.similarity(asked, np.array(found.vectors))
    for number, scores in enumerate(by_vectors):
        highest = [by_codes[number, i : i + 8].max() for i in range(0, COUNT, 8)]
        groups = np.argsort(highest)[-2:]
        rows = [row for row in np.argsort(-scores) if row // 8 in groups][:4]
        assert best.rows[number].tolist() == rows
        np.testing.assert_allclose(best.scores[number] / scores[rows], 1, rtol=1e-4)


def test_a_graph_finds_what_the_vectors_find(made):
    """Among few documents the graph leaves nothing out."""
    found = made(graph=True)
    exact = index.Index(found.folder, {**found.facts, "graph": False})
    queries = QueryVectors(exact.vectors[:3] * np.float32(2), None)
    assert (found.folder / index_files.GRAPH).exists()
    for top in (5, COUNT):
        best = found.by_vectors("dense", queries, top)
        expected = exact.by_vectors("dense", queries, top)
        np.testing.assert_allclose(best.scores, expected.scores, rtol=1e-5, atol=1e-5)
    (found.folder / index_files.GRAPH).unlink()
    with pytest.raises(AttributeError):  # the graph is what is searched
        found.by_vectors("dense", queries, 5)
    with pytest.raises(UserError, match="--codes int8 and --graph exclude"):
        made(graph=True, kind="int8")


def test_an_index_of_an_older_docjax_is_told(made, model, corpus):
    found = made()
    facts = {name: x for name, x in found.facts.items() if name != "bfloat16"}
    (found.folder / index_files.FACTS).write_text(json.dumps(facts))
    for again in (
        lambda: index.load(found.folder, model.fingerprint()),
        lambda: build_index(model, str(corpus), found.folder),
    ):
        with pytest.raises(UserError, match="made by an older docjax: delete .*json,"):
            again()
    (found.folder / index_files.FACTS).unlink()  # as the message says
    made_before = (found.folder / index_files.VECTORS).stat().st_mtime_ns
    build_index(model, str(corpus), found.folder)
    assert index.load(found.folder, model.fingerprint()).facts == found.facts
    assert (found.folder / index_files.VECTORS).stat().st_mtime_ns == made_before


def test_a_graph_needs_usearch(made, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(UserError, match=r"pip install 'docjax\[graph\]'"):
        made(graph=True)


def test_a_model_or_settings_of_another_index_are_refused(
    model, corpus, made, tmp_path
):
    made()
    with pytest.raises(UserError, match="was made with another model: give that"):
        index.load(tmp_path / "index", "other")
    with pytest.raises(UserError, match="with --words docjax, not with --words ans"):
        made(words="anserini")
    with pytest.raises(UserError, match="made with no --passages, not with --passages"):
        made(passages=True)
    cut = dataclasses.replace(model, truncate_dim=8)
    with pytest.raises(UserError, match="no --truncate-dim, not with --truncate-dim 8"):
        build_index(cut, str(corpus), tmp_path / "index")
    (tmp_path / "index" / index_files.FACTS).rename(
        tmp_path / "facts"
    )  # it was stopped
    with pytest.raises(UserError, match="was made without passages; use the original"):
        made(passages=True)
    (tmp_path / "facts").rename(tmp_path / "index" / index_files.FACTS)
    with pytest.raises(UserError, match="no passages: make it again with docjax index"):
        search_index(model, made(), QUERIES, "maxp")
    with pytest.raises(UserError, match="system best is none of bm25"):
        search_index(model, made(), QUERIES, "best")
    (tmp_path / "index/words/vocab.index.json").write_text("{}")
    with pytest.raises(UserError, match="words/vocab.index.json is damaged or missing"):
        index.load(tmp_path / "index", model.fingerprint())
    (tmp_path / "index" / index_files.FACTS).unlink()
    with pytest.raises(UserError, match="docjax index was stopped; run the same"):
        index.load(tmp_path / "index", model.fingerprint())
    assert len(made()) == COUNT  # made whole again


def test_an_index_of_a_corpus_that_has_changed_is_made_anew(model, corpus, tmp_path):
    """The vectors were deleted, as the message says; the other files are as large."""
    copy, folder = tmp_path / "corpus.jsonl", tmp_path / "index"
    lines = corpus.read_text().splitlines(keepends=True)
    copy.write_text("".join(lines))
    build_index(model, str(copy), folder)
    copy.write_text("".join(lines[::-1]))
    with pytest.raises(UserError, match="vectors.npy was made of other documents"):
        build_index(model, str(copy), folder)
    (folder / index_files.VECTORS).unlink()
    build_index(model, str(copy), folder)
    found = index.load(folder, model.fingerprint())
    rows = dict(zip(found.ids, range(COUNT), strict=True))
    assert rows["d59"] == 0 and found.document(0).id == "d59"
    build_index(model, str(copy), tmp_path / "fresh")
    fresh = index.load(tmp_path / "fresh", model.fingerprint())
    for system in ("bm25", "dense"):
        ranked = [
            search_index(model, one, QUERIES, system, 5) for one in (found, fresh)
        ]
        same(*ranked)


def test_an_index_of_another_model_is_told_before_anything_is_encoded(
    model, corpus, made, tmp_path, monkeypatch
):
    made()
    (tmp_path / "index" / index_files.VECTORS).unlink()
    monkeypatch.setattr(building, "encode_file", None)
    other = dataclasses.replace(model, prompts={"document": "a text: "})
    with pytest.raises(UserError, match="was made with another model or prompt: use"):
        build_index(other, str(corpus), tmp_path / "index")


@pytest.mark.parametrize("change", ["\n", '{"id": "new", "text": "river"}'])
def test_a_corpus_that_changes_while_the_index_is_finished_is_told(
    model, corpus, tmp_path, monkeypatch, change
):
    """The vectors are those of the documents before."""
    copy, folder = tmp_path / "corpus.jsonl", tmp_path / "index"
    whole = corpus.read_text()
    copy.write_text(whole)
    write = building.line_starts.write

    def changed(*given):
        write(*given)
        copy.write_text(whole + change)

    monkeypatch.setattr(building.line_starts, "write", changed)
    with pytest.raises(UserError, match="changed while the index was made"):
        build_index(model, str(copy), folder)
    with pytest.raises(UserError, match="docjax index was stopped"):
        index.load(folder, model.fingerprint())
    copy.write_text(whole)
    monkeypatch.setattr(building.line_starts, "write", write)
    build_index(model, str(copy), folder)
    assert len(index.load(folder, model.fingerprint())) == COUNT


def test_readings_of_other_numbers_of_documents_are_told(corpus):
    given = building._Corpus(str(corpus), {})
    given.check(COUNT, COUNT, COUNT)
    with pytest.raises(UserError, match="made: 59 documents in place of 60; run the s"):
        given.check(COUNT, COUNT, COUNT - 1)


def test_an_id_that_no_run_can_hold_is_told_before_anything_is_encoded(
    model, corpus, tmp_path, monkeypatch
):
    monkeypatch.setattr(encode_file, "_encode_shards", None)
    copy = tmp_path / "corpus.jsonl"
    copy.write_text(corpus.read_text().replace('"d59"', '"d 59"'))
    with pytest.raises(UserError, match="'d 59': a TREC run has no room for white spa"):
        build_index(model, str(copy), tmp_path / "index")


@pytest.mark.parametrize(
    "name", ["vectors.npy", "vectors.npy.passages.npy", "vectors.npy.sizes.npy"]
)
def test_a_damaged_index_is_made_whole_again(made, model, tmp_path, name):
    folder = tmp_path / "index"
    before = search_index(model, made(passages=True), QUERIES, "maxsim", 5)
    whole = (folder / name).read_bytes()
    for mend in (
        (folder / name).unlink,
        lambda: (folder / name).write_bytes(whole[:-4]),
    ):
        mend()
        with pytest.raises(UserError, match=f"{name} is damaged or missing: run the"):
            index.load(folder, model.fingerprint())
        assert search_index(model, made(passages=True), QUERIES, "maxsim", 5) == before
        assert (folder / name).read_bytes() == whole


def test_the_files_of_an_index_are_its_own(made, model, tmp_path):
    folder = tmp_path / "index"
    made(passages=True, kind="int8")
    (folder / index_files.FACTS).unlink()
    (folder / "notes.txt").write_text("of a user")
    found = made(passages=True, kind="int8")
    of_words = {f"words/{file.name}" for file in (folder / "words").iterdir()}
    parts = ("", ".ids.jsonl", ".ids.jsonl.starts.npy", ".json", ".passages.npy")
    assert set(found.facts["files"]) == of_words | {
        *(f"vectors.npy{part}" for part in (*parts, ".sizes.npy")),
        *("codes.npy", "steps.npy", "documents.jsonl", "documents.jsonl.starts.npy"),
    }
    (folder / "notes.txt").unlink()
    (folder / ".lock").unlink()
    (folder / "words/new").write_text("")
    index.load(folder, model.fingerprint())


def test_an_index_that_is_made_again_is_none_until_it_is_whole(made, model, tmp_path):
    made()
    (tmp_path / "index/documents.jsonl").unlink()

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building.bm25_files, "write", stopped)
        with pytest.raises(KeyboardInterrupt):
            made()
    with pytest.raises(UserError, match="docjax index was stopped; run the same"):
        index.load(tmp_path / "index", model.fingerprint())
    assert len(made()) == COUNT


def run(capsys, command, *arguments):
    code = cli.main([command, *map(str, arguments)])
    return code, *capsys.readouterr()


def test_commands_make_and_search_an_index(capsys, tiny, corpus, tmp_path, caplog):
    options = tiny, corpus, "--output", tmp_path / "index", "--passages"
    options += ("--truncate-dim", 12)
    code, out, _ = run(capsys, "index", *options)
    assert code == 0 and json.loads(out)["documents"] == COUNT
    assert json.loads(out)["width"] == 12
    queries = tmp_path / "queries.jsonl"
    lines = [json.dumps({"id": q, "text": t}) + "\n" for q, t in QUERIES.items()]
    queries.write_text("".join(lines))
    options = (tiny, tmp_path / "index", "--queries", queries)
    options += ("--run", tmp_path / "o.trec")
    with open(queries, "a") as file:
        file.write('{"id": "none", "text": "zyx"}\n')
    run(capsys, "search", *options, "--system", "bm25")
    assert "2 of 4 queries match no document and are not in the run" in caplog.text
    queries.write_text("".join(lines))
    scores = []
    for scale in ("raw", "min-max"):
        run(capsys, "search", *options, "--system", "fused", "--scale", scale)
        scores.append(next(iter(trec.read(tmp_path / "o.trec")["r"].values())))
    assert scores[0] != scores[1] <= 1
    code, out, _ = run(
        *(capsys, "search", *options, "--system", "rrf", "--top", 3),
        *("--hits", tmp_path / "hits.jsonl"),
    )
    assert code == 0 and json.loads(out) == {"queries": 3, "documents": COUNT}
    assert len((tmp_path / "o.trec").read_text().splitlines()) == 9
    lines = (tmp_path / "hits.jsonl").read_text().splitlines()
    found = list(map(json.loads, lines))
    assert [one["query"] for one in found] == list(QUERIES)
    model = docjax.load(tiny, truncate_dim=12)
    documents = {each.id: each for each in jsonl(str(corpus))}
    for one in found:
        assert one["text"] == QUERIES[one["query"]]
        ranked = trec.read(tmp_path / "o.trec")[one["query"]]
        assert [hit["id"] for hit in one["hits"]] == list(ranked)
        assert [hit["score"] for hit in one["hits"]] == pytest.approx(
            [*ranked.values()]
        )
        for hit in one["hits"]:
            check_hit(model, one["text"], documents[hit["id"]], hit)


def test_hits_of_sentences_have_the_passages_that_made_them(model, corpus, made):
    found = made(passages=True)
    documents = {each.id: each for each in jsonl(str(corpus))}
    vectors = query_vectors(model, QUERIES, "maxsim")
    ranking = search_index(model, found, QUERIES, "maxsim", 4, vectors=vectors)
    sentences = ["a river and a garden.", "The letter?"], ["silver"], ["of zebras"]
    for one, parts in zip(hits(model, found, QUERIES, vectors, ranking), sentences):
        assert len(one["hits"]) == 4
        for hit in one["hits"]:
            check_hit(model, one["text"], documents[hit["id"]], hit)
            for part, best in zip(parts, hit["sentences"], strict=True):
                best |= {"title": hit["title"]}
                assert best["sentence"] == part
                check_hit(model, part, documents[hit["id"]], best)
            total = sum(best["passage_score"] for best in hit["sentences"])
            assert total == pytest.approx(hit["score"], abs=1e-5)


def test_passages_of_an_older_docjax_that_cut_otherwise_are_told(model, tiny, made):
    found, queries = made(passages=True), {"q": QUERIES["q"]}
    vectors = query_vectors(model, queries, "maxp")
    ranking = search_index(model, found, queries, "maxp", COUNT, vectors=vectors)
    other = docjax.load(tiny, segments=1)
    with pytest.raises(UserError, match="has [2-6] passages there, but .* 1 seg"):
        [*hits(other, found, queries, vectors, ranking)]


def check_hit(model, query, document, hit):
    """The passage is the document's segment that is nearest to the query."""
    [(_, passages)] = model.encode_with_passages([document], {})
    scores = model.similarity(model.encode_queries([query]), passages)[0]
    _, texts = model.cut.with_texts(document)
    best = int(scores.argmax())
    assert hit["passage"] == texts[best].text and hit["title"] == document.title
    assert hit["passage_score"] == pytest.approx(float(scores[best]), abs=1e-5)
    assert hit["section"] == document.sections[texts[best].section].heading


def test_hits_are_checked_before_the_model_loads_and_cost_no_run(
    capsys, made, tiny, tmp_path, monkeypatch
):
    found = made(passages=True)
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "q", "text": "silver"}\n')
    output = tmp_path / "o.trec"
    options = found.folder, "--queries", queries, "--run", output, "--hits"
    for name, message in (
        (tmp_path, "--hits .* names no file"),
        (tmp_path / "no/hits", "no/hits: cannot be written .there is no such folder"),
    ):
        code, _, err = run(capsys, "search", "no model", *options, name)
        assert code == 2 and re.search(message, err) and err.count("\n") == 1
    code, _, err = run(
        *(capsys, "search", "no model", *options, tmp_path / "a", "--system", "best")
    )
    assert code == 2 and "--system best is none of bm25" in err

    write = atomic.write_text

    def full(path, text):
        if path.name == "hits.jsonl":
            raise OSError(28, "No space left on device")
        write(path, text)

    monkeypatch.setattr(atomic, "write_text", full)
    code, _, err = run(capsys, "search", tiny, *options, tmp_path / "hits.jsonl")
    assert code == 2 and len(output.read_text().splitlines()) == COUNT
    assert "hits.jsonl: cannot be written" in err and err.count("\n") == 1


def test_queries_are_encoded_once_and_ids_parsed_only_where_they_are_shown(
    capsys, made, tiny, tmp_path, monkeypatch
):
    found = made(passages=True)
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "q", "text": "silver"}\n')
    encoded, parsed = [], []
    encode = DocumentModel.encode_queries_of_any_length
    monkeypatch.setattr(
        *(DocumentModel, "encode_queries_of_any_length"),
        lambda self, texts: encoded.append(texts) or encode(self, texts),
    )
    read = index.Ids.__getitem__
    monkeypatch.setattr(
        index.Ids,
        "__getitem__",
        lambda self, row: parsed.append(row) or read(self, row),
    )
    options = found.folder, "--queries", queries, "--run", tmp_path / "o.trec"
    options += ("--hits", tmp_path / "hits.jsonl", "--top", 3)
    assert run(capsys, "search", tiny, *options)[0] == 0
    assert encoded == [["silver"]] and len(parsed) < 10


def test_vectors_that_are_not_finite_are_refused(model, corpus, tmp_path, monkeypatch):
    """In one passage, in a document of a search, and in a query."""
    pairs = DocumentModel.encode_with_passages

    def broken(self, documents, counts):
        for document, (vector, parts) in zip(documents, pairs(self, documents, counts)):
            parts = np.where(document.id == "d9", np.nan, parts).astype(np.float32)
            yield vector, parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DocumentModel, "encode_with_passages", broken)
        with pytest.raises(
            UserError, match="of document 'd9' is not finite, the first"
        ):
            build_index(model, str(corpus), tmp_path / "index", passages=True)
    infinite = jax.tree.map(lambda leaf: leaf * np.inf, model.params)
    other = dataclasses.replace(model, params=infinite)
    with pytest.raises(UserError, match="of document 'd0' is not finite"):
        build_index(other, str(corpus), tmp_path / "other")
    with pytest.raises(UserError, match="of query 'q' is not finite"):
        search(other, jsonl(str(corpus)), QUERIES, {}, 10)
    build_index(model, str(corpus), tmp_path / "index", passages=True)
    found = index.load(tmp_path / "index", model.fingerprint())
    with pytest.raises(UserError, match="of query 'q' is not finite"):
        search_index(other, found, QUERIES, "dense")


def test_mistakes_are_one_line(capsys, tiny, corpus, tmp_path):
    there = "--output", tmp_path / "index"
    (tmp_path / "file").write_text("")
    stopped = tmp_path / "stopped"
    (stopped / "vectors.npy.shards").mkdir(parents=True)
    queries = ("--queries", corpus, "--run", tmp_path / "o.trec")
    fused = (*queries, "--system", "fused")
    for arguments, message in (
        (
            ("index", tiny, corpus, *there, "--words", "lucene"),
            "none of docjax, anserini",
        ),
        (("index", tiny, corpus, "--output", tmp_path / "file"), "is a file: give"),
        (("search", tiny, corpus, *queries, "--system", "bm25"), "--system bm25 needs"),
        (("search", tiny, corpus, *queries, "--hits", "a"), "--hits needs an index"),
        (
            ("search", tiny, corpus, *queries, "--scale", "raw"),
            "--scale needs an index",
        ),
        (
            ("search", tiny, corpus, *queries, "--weight", "0"),
            "--weight needs an index",
        ),
        (
            ("search", tiny, stopped, *queries),
            "is no index, or docjax index",
        ),
        (("search", tiny, stopped, *fused, "--weight", 2), "--weight 2.0 is not"),
        (("search", tiny, stopped, *fused, "--scale", "x"), "none of min-max, raw"),
        (
            ("search", tiny, stopped, *queries, "--weight", 0.5, "--system", "rrf"),
            "--weight does nothing to --system rrf: leave it out",
        ),
        (("search", tiny, stopped, *queries, "--truncate-dim", 8), "leave it out"),
        (
            ("search", tiny, stopped, *queries, "--max-bad-fraction", 0.5),
            "--max-bad-fraction: docjax index has read the documents; leave it out",
        ),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_missing_library_is_told_before_documents_are_encoded(
    monkeypatch, made, tmp_path
):
    def missing():
        raise UserError("BM25 needs bm25s")

    monkeypatch.setattr(building.bm25, "libraries", missing)
    with pytest.raises(UserError, match="BM25 needs bm25s"):
        made()
    assert not (tmp_path / "index").exists()


def test_vectors_are_read_block_by_block(monkeypatch, made):
    """A map of the whole file would be memory that grows with the documents."""
    measured, parts = building.shortlist.measured, []
    monkeypatch.setattr(
        building.shortlist,
        "measured",
        lambda part, **keywords: parts.append(part) or measured(part, **keywords),
    )
    found = made()
    assert [len(part) for part in parts] == [16, 16, 16, 12]
    assert not any(isinstance(part, np.memmap) for part in parts)
    cosine = found.facts["similarity"] == "cosine"
    expected = measured(np.array(found.vectors), cosine=cosine)
    np.testing.assert_allclose(found.facts["bfloat16"], expected, rtol=1e-5)


def test_killed_again_and_again_it_ends_like_an_uninterrupted_one(
    tiny, corpus, model, tmp_path
):
    for stop in ("shard", "words", "facts"):
        assert start(stop, tiny, corpus, tmp_path / "killed") == -signal.SIGKILL
        with pytest.raises(UserError, match="docjax index was stopped"):
            index.load(tmp_path / "killed", model.fingerprint())
    assert start("", tiny, corpus, tmp_path / "killed") == 0
    assert start("", tiny, corpus, tmp_path / "whole") == 0
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert contents(killed) == contents(whole)
    both = (index.load(folder, model.fingerprint()) for folder in (killed, whole))
    first, second = (search_index(model, found, QUERIES, "bm25") for found in both)
    assert first == second


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def start(*arguments) -> int:
    done = subprocess.run(
        [sys.executable, "-W", "error", __file__, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        timeout=300,
        check=False,
    )
    return done.returncode


def main(stop: str, folder: str, corpus: str, output: str) -> None:
    """Makes an index; dies by SIGKILL before the third shard or a later step."""
    encode_file.DOCUMENTS = 8
    die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    if stop == "shard":
        write = encode_file.Shards.write
        encode_file.Shards.write = lambda self, number, *rest: (
            die() if number == 2 else write(self, number, *rest)
        )
    elif stop == "words":
        building.bm25_files.write = die
    elif stop == "facts":
        building.json_file.write = die
    build_index(docjax.load(folder), corpus, Path(output), passages=True, kind="int8")


if __name__ == "__main__":
    main(*sys.argv[1:])
