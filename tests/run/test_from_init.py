"""What the weights `init` decide of a run: here the prompts before its texts."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import docjax
from docjax import config as configs
from docjax.errors import UserError
from docjax.export.write import export
from docjax.run.parameters import start_params
from docjax.run.prepare import Prepared, prepare
from docjax.training.vector_trainer import training_batches
from docjax.types import DOCUMENT, QUERY

pytestmark = pytest.mark.usefixtures("one_device")

PROMPTS = {"query": "query: ", "passage": "passage: "}
TEXTS = [f"A query of {'dogs and of cats ' * 20} at place {i}." for i in range(12)]
QUERIES = ["stories of dogs", "cats"]
MODULES = [
    {
        "idx": i,
        "name": str(i),
        "path": path,
        "type": f"sentence_transformers.models.{kind}",
    }
    for i, (kind, path) in enumerate((("Transformer", ""), ("Pooling", "1_Pooling")))
]


@pytest.fixture(scope="module")
def init(tiny, tmp_path_factory) -> Path:
    """A folder of sentence-transformers with a prompt for documents and for queries."""
    folder = tmp_path_factory.mktemp("init") / "tiny"
    shutil.copytree(tiny, folder)
    given = json.dumps({"prompts": PROMPTS})
    (folder / "config_sentence_transformers.json").write_text(given)
    return folder


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Path:
    """A folder of documents, of queries and of judgements to train and to test with."""
    folder = tmp_path_factory.mktemp("judged")
    queries = [f"what is at place {i}" for i in range(len(TEXTS))]
    for name, texts in (("corpus", TEXTS), ("queries", queries)):
        lines = [{"_id": f"{name[0]}{i}", "text": text} for i, text in enumerate(texts)]
        written = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(written)
    (folder / "qrels").mkdir()
    for part, rows in (("train", range(8)), ("dev", (8, 9)), ("test", (10, 11))):
        pairs = "".join(f"q{i}\tc{i}\t1\n" for i in rows)
        (folder / f"qrels/{part}.tsv").write_text(
            "query-id\tcorpus-id\tscore\n" + pairs
        )
    return folder


def recipe(name: str, judged: Path, init: Path | None, **fields):
    """A recipe that reads the corpus and trains four steps."""
    found = configs.load(name)
    found.source.path, found.init = str(judged / "corpus.jsonl"), init and str(init)
    if "examples.negatives" in fields:
        found.examples.path = found.tasks.retrieval.path = str(judged)
    found.batch, found.steps = 4, 4
    found.update_from_flattened_dict(fields)
    return found


def frozen(judged: Path, init: Path, **fields):
    return recipe("graph_roberta:frozen", judged, init, **fields)


def retriever(judged: Path, init: Path, **fields):
    uniform = {"examples.negatives": "uniform", "checkpoint_every": 4}
    return recipe("retriever:frozen", judged, init, **uniform | fields)


def ids(prepared: Prepared, prompt: str) -> list[int]:
    """The tokens before a text: of the folder's tokenizer, and of the prompt."""
    encoded = prepared.tokenizer.backend.encode(prompt, add_special_tokens=False)
    return [*prepared.tokenizer.prefix.tolist(), *encoded.ids]


def test_a_run_has_the_prompts_of_its_init(judged, init, tmp_path, caplog):
    with caplog.at_level("INFO", "absl"):
        prepared = prepare(retriever(judged, init), tmp_path / "run")
    assert prepared.config.prompts.by_name() == {
        "document": "passage: ",
        "query": "query: ",
    }
    assert "each document has the prompt 'passage: '" in caplog.text
    for kind, prompt in ((DOCUMENT, "passage:"), (QUERY, "query:")):
        assert prepared.frames[kind].prefix.tolist() == ids(prepared, prompt)
        table = np.load(tmp_path / "run/words.npy")
        assert table.any() and not table[prepared.frames[kind].prefix].any()
    batches = training_batches(prepared, None)
    views, _ = batches.reader.read((QUERY, DOCUMENT), np.array([0, 0]), 0)
    for view, kind in zip(views, (QUERY, DOCUMENT), strict=True):
        prefix = prepared.frames[kind].prefix
        assert view.tokens[: len(prefix)].tolist() == prefix.tolist()


def test_the_start_gives_the_vectors_of_the_plain_folder(judged, init, tmp_path):
    prepared = prepare(frozen(judged, init), tmp_path / "run")
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    model, plain = prepared.model(params), docjax.load(init)
    ours, theirs = cosines(model.encode(TEXTS)), cosines(plain.encode(TEXTS))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert np.abs(theirs - cosines(plain.encode(TEXTS, prompt=""))).max() > 1e-5


def cosines(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def test_a_trained_run_and_its_export_read_with_the_prompts(judged, init, tmp_path):
    run = tmp_path / "run"
    model = docjax.train(retriever(judged, init), run)
    assert model.prompts == {"document": "passage: ", "query": "query: "}
    other = model.encode_queries(QUERIES, prompt="")
    assert np.abs(model.encode_queries(QUERIES) - other).max() > 1e-3
    export(run, tmp_path / "exported")
    again = docjax.load(tmp_path / "exported")
    assert again.prompts == model.prompts
    np.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-5)
    begun = prepare(frozen(judged, run), tmp_path / "next")
    assert begun.config.prompts.by_name() == model.prompts


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"prompts.document": ""}, {"query": "query: "}),
        ({"prompts.document": "", "prompts.query": ""}, {}),
        ({"prompts.query": "find: "}, {"document": "passage: ", "query": "find: "}),
    ],
)
def test_the_config_has_the_last_word(own, expected, judged, init, tmp_path):
    prepared = prepare(frozen(judged, init, **own), tmp_path / "run")
    assert prepared.config.prompts.by_name() == expected
    words = expected.get("document", "").strip()
    assert prepared.frames[DOCUMENT].prefix.tolist() == ids(prepared, words)


def test_prompts_that_the_mean_leaves_out_are_one_line(judged, init, tmp_path):
    folder = shutil.copytree(init, tmp_path / "init")
    (folder / "modules.json").write_text(json.dumps(MODULES))
    (folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    with pytest.raises(
        UserError, match="leaves prompts out of the mean .* set --config"
    ):
        prepare(frozen(judged, folder), tmp_path / "run")
    without = {"prompts.document": "", "prompts.query": ""}
    assert prepare(frozen(judged, folder, **without), tmp_path / "run")


def test_prompts_of_words_are_one_line(judged, tmp_path):
    asked = configs.load("deca:smoke")
    asked.prompts.query = "query: "
    with pytest.raises(UserError, match="prompts.query: only a transformer reads pro"):
        prepare(asked, tmp_path / "run")


def test_a_run_that_began_without_prompts_goes_on_without(judged, init, tmp_path):
    run = tmp_path / "run"
    config = prepare(frozen(judged, init), run).config.to_json()
    del config["prompts"]  # as an earlier docjax wrote it
    (run / "config.json").write_text(json.dumps(config))
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    shutil.rmtree(run / "corpus")
    assert prepare(frozen(judged, init), run).config.prompts.by_name() == {}
