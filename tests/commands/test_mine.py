"""`docjax mine` by words and by a model, on a folder and on a run."""

import json
import shutil

import numpy as np
import pytest

import docjax
from configs import graph_roberta
from docjax import cli
from docjax.retrieval import negatives
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.storage.checkpoint import Checkpointer

TEXTS = {
    "a": "The river floods the valley each spring and autumn.",
    "b": "A river in the valley carries silver and old letters.",
    "c": "The doctor reads old letters by the window in winter.",
    "d": "An engine of the old market hall, painted in silver.",
    "e": "Winter market by the river, with a doctor and an engine.",
    "f": "The garden gate closes at night in the spring.",
}
QUERIES = {"x": "river valley", "y": "old silver", "z": "spring", "w": "never judged"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BEIR folder of three judged queries, in two splits."""
    folder = tmp_path_factory.mktemp("beir")
    for name, texts in (("corpus", TEXTS), ("queries", QUERIES)):
        rows = [json.dumps({"_id": i, "text": text}) for i, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(rows))
    (folder / "qrels").mkdir()
    (folder / "qrels/train.tsv").write_text("x\ta\t1\ny\td\t0\ny\tb\t1\n")
    (folder / "qrels/test.tsv").write_text("z\tf\t2\nx\tb\t1\n")
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of first parameters, on the same texts with queries and links of their own."""
    folder = tmp_path_factory.mktemp("mine")
    rows = [
        {"id": name, "text": text, "query": text[:20], "split": "train"}
        for name, text in TEXTS.items()
    ]
    rows[0]["links"] = ["b", "f"]
    rows[1].pop("query")
    rows[5]["split"] = "test"
    corpus = folder / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = graph_roberta.get_config("smoke")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
    config.tokenizer.train.vocabulary = 270
    config.encoder.segment.vocabulary = 270
    prepared = prepare(config, folder / "run")
    saved = Checkpointer(folder / "run" / "checkpoints")
    saved.save(
        1, initial_params(prepared.config, prepared.encoder), {"step": np.zeros(())}, {}
    )
    saved.close()
    return folder / "run"


def mine(capsys, output, *arguments):
    code = cli.main(["mine", *map(str, arguments), "--output", str(output)])
    return code, *capsys.readouterr()


def seal(file) -> dict:
    return json.loads(file.read_text().splitlines()[-1])


def test_words_rank_the_judged_queries_of_all_splits(capsys, folder, tmp_path, caplog):
    output = tmp_path / "out.jsonl"
    code, out, _ = mine(capsys, output, "bm25", "--data", folder)
    assert "1 of 4 queries have no judgement in any split: left out" in caplog.text
    trained = negatives.Trained(list(TEXTS), [], QUERIES)
    found = negatives.read(output, trained)
    assert code == 0 and set(found) == {"x", "y", "z"}
    assert found["x"] == ["e"]  # a and b answer it, in one split or the other
    assert set(found["y"]) == {"c", "d"} and found["z"] == ["a"]
    counts = json.loads(out.splitlines()[-1])
    assert counts == {
        "queries": 3,
        "documents": 6,
        "negatives": 4,
        "queries_without_negatives": 0,
    }
    facts = seal(output)
    assert (facts["made_by"], facts["queries"]) == ("bm25 docjax", 3)
    assert facts["documents"] == 6


def test_judged_documents_that_are_not_there_are_counted(
    capsys, folder, tmp_path, caplog
):
    copy = shutil.copytree(folder, tmp_path / "beir")
    (copy / "qrels/train.tsv").write_text("x\ta\t1\ny\tgone\t1\n")
    mine(capsys, tmp_path / "out.jsonl", "bm25", "--data", copy)
    assert "1 of 4 judged documents are not in the corpus" in caplog.text
    caplog.clear()
    mine(capsys, tmp_path / "out.jsonl", "bm25", "--data", folder)
    assert "judged documents" not in caplog.text
    for part in (copy / "qrels").iterdir():
        part.write_text("x\tgone\t1\n")
    code, _, error = mine(capsys, tmp_path / "none", "bm25", "--data", copy)
    assert (
        code == 2 and "1 of 1 judged documents are not in the corpus, 'gone'" in error
    )
    assert not (tmp_path / "none").exists()


def test_words_are_those_of_the_settings(capsys, folder, tmp_path):
    """Without stemming, "floods" and "reads" are no words of the query."""
    copy = shutil.copytree(folder, tmp_path / "beir")
    (copy / "queries.jsonl").write_text('{"_id": "x", "text": "flood reading"}')
    (copy / "qrels/train.tsv").write_text("x\tf\t1\n")
    (copy / "qrels/test.tsv").unlink()
    output = tmp_path / "out.jsonl"
    for words, expected in (("docjax", ["a", "c"]), ('{"stemmer": null}', [])):
        mine(capsys, output, "bm25", "--data", copy, "--words", words)
        assert negatives.read(output)["x"] == expected
    assert seal(output)["made_by"] == 'bm25 {"stemmer": null}'


def test_queries_whose_answer_is_not_ranked_lose_their_negatives_to_a_margin(
    capsys, folder, tmp_path
):
    """BM25 does not find b, the answer of y, if a query has no word of it."""
    copy = shutil.copytree(folder, tmp_path / "beir")
    (copy / "qrels/train.tsv").write_text("x\tf\t1\ny\tb\t1\n")
    (copy / "qrels/test.tsv").unlink()
    for margin, without in (([], 0), (["--margin", 0], 1)):
        output = tmp_path / "out.jsonl"
        _, out, _ = mine(capsys, output, "bm25", "--data", copy, *margin)
        assert json.loads(out)["queries_without_negatives"] == without
    assert negatives.read(output)["x"] == []


def test_a_model_ranks_by_its_vectors(capsys, folder, tiny, tmp_path):
    output = tmp_path / "out.jsonl"
    _, out, _ = mine(capsys, output, tiny, "--data", folder, "--top", 2)
    found = negatives.read(output, negatives.Trained(list(TEXTS), [], QUERIES))
    model = docjax.load(tiny)
    vectors = model.encode([{"id": i, "text": text} for i, text in TEXTS.items()])
    for query, relevant in (("x", "ab"), ("y", "b"), ("z", "f")):
        scores = model.similarity(model.encode_queries([QUERIES[query]]), vectors)[0]
        best = [list(TEXTS)[row] for row in np.argsort(-scores)]
        assert found[query] == [name for name in best if name not in relevant][:2]
    assert json.loads(out.splitlines()[-1])["documents"] == 6
    assert seal(output)["made_by"] == f"{tiny} {model.fingerprint()}"


@pytest.mark.parametrize("model", ["bm25", "run"])
def test_a_run_gives_its_training_documents_with_their_queries(
    capsys, run, tmp_path, model
):
    output = tmp_path / "out.jsonl"
    options = [run] if model == "run" else ["bm25", "--data", run]
    code, out, _ = mine(capsys, output, *options)
    texts = {name: text[:20] for name, text in TEXTS.items() if name != "b"}
    # f is a test document
    found = negatives.read(output, negatives.Trained(set(TEXTS), set("abcde"), texts))
    assert code == 0 and set(found) == set("acde")
    for query, names in found.items():
        assert query not in names
    assert "b" not in found["a"]
    if model == "run":  # vectors rank all documents
        assert sorted(found["a"]) == list("cde") and sorted(found["c"]) == list("abde")
    assert json.loads(out.splitlines()[-1])["documents"] == 5


def test_mistakes_are_one_line(capsys, folder, run, tiny, tmp_path, begun):
    bare = begun(["a text without a query", "and another one of those"])
    for arguments, message in (
        (("bm25",), "--data is missing: bm25 is not a run"),
        ((tiny,), "is not a run, so it has no documents"),
        (("bm25", "--data", tmp_path), "0 files are called queries.jsonl"),
        (("no", "--data", folder), "no"),
        (
            ("bm25", "--data", folder, "--top", 0),
            "--top 0 is too small; give at least 1",
        ),
        ((bare,), 'no training document has a "query"'),
        (
            ("bm25", "--data", folder, "--words", "x"),
            "'x' are none of docjax, anserini",
        ),
        ((tiny, "--data", folder, "--words", "anserini"), "anserini does nothing to"),
    ):
        code, out, err = mine(capsys, tmp_path / "out.jsonl", *arguments)
        assert (code, out) == (2, "") and not (tmp_path / "out.jsonl").exists()
        assert message in err and err.count("\n") == 1, err
    for output, message in ((tmp_path, "names no file"), ("no/x", "no such folder")):
        code, _, err = mine(capsys, output, "bm25", "--data", folder)
        assert code == 2 and message in err and err.count("\n") == 1


def test_a_collection_needs_an_answer(capsys, folder, tmp_path):
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        (beir / name).write_text((folder / name).read_text())
    code, _, err = mine(capsys, tmp_path / "out", "bm25", "--data", beir)
    assert code == 2 and "beir: no query has a document with score 1" in err


@pytest.mark.parametrize("field", ["source", "holdout"])
def test_a_run_names_no_code_to_execute(capsys, run, tmp_path, field):
    copy = shutil.copytree(run, tmp_path / "run")
    written = tmp_path / "written"
    (tmp_path / "evil.py").write_text(f"open({str(written)!r}, 'w')")
    config = json.loads((copy / "config.json").read_text())
    config[field] = {"fn": "docjax.config.load", "name": str(tmp_path / "evil.py")}
    (copy / "config.json").write_text(json.dumps(config))
    code, _, error = mine(capsys, tmp_path / "out.jsonl", "bm25", "--data", copy)
    assert code == 2 and not written.exists()
    assert f"{field}.fn 'docjax.config.load' is not under docjax.data." in error
