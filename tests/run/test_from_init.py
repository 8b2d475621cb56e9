"""What the weights `init` decide of a run: prompts, pooling, the kind of transformer."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import transformers

import docjax
from docjax import config as configs
from docjax.errors import UserError
from docjax.export.write import export
from docjax.model.inference import local_mesh
from docjax.model.load import load_transformer
from docjax.objectives.masked_lm import MaskedLM
from docjax.recipe import judges, words
from docjax.run import fields
from docjax.run import frozen as reading
from docjax.run.fields import Prompts
from docjax.run.parameters import start_params
from docjax.run.prepare import checked, prepare
from docjax.run.prepared import Prepared
from docjax.run.scoring import RunData, plain_data
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


def recipe(name: str, judged: Path, init: Path, **changes):
    """A recipe that reads the corpus and trains four steps."""
    found = configs.load(name)
    found.source.path, found.init = str(judged / "corpus.jsonl"), str(init)
    found.batch, found.steps = 4, 4
    found.update_from_flattened_dict(changes)
    return found


def frozen(judged: Path, init: Path, **changes):
    return recipe("graph_roberta:frozen", judged, init, **changes)


def retriever(judged: Path, init: Path, **changes):
    paths = dict.fromkeys(("examples.path", "tasks.retrieval.path"), str(judged))
    given = paths | {"examples.negatives": "uniform", "checkpoint_every": 4}
    return recipe("retriever:frozen", judged, init, **given | changes)


def ids(prepared: Prepared, prompt: str) -> list[int]:
    """The tokens before a text: of the folder's tokenizer, and of the prompt."""
    encoded = prepared.tokenizer.backend.encode(prompt, add_special_tokens=False)
    return [*prepared.tokenizer.prefix.tolist(), *encoded.ids]


def test_a_run_has_the_prompts_of_its_init(judged, init, tmp_path, caplog):
    with caplog.at_level("INFO", "docjax"):
        prepared = prepare(retriever(judged, init), tmp_path / "run")
    words.fit(prepared, judges.of_run(prepared))
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
    theirs = cosines(plain.encode(TEXTS))
    np.testing.assert_allclose(cosines(model.encode(TEXTS)), theirs, atol=1e-6)
    read = reading.with_vectors(prepared)
    data = RunData(read.model(params), read.documents, prepared=read)
    np.testing.assert_allclose(
        cosines(data.vectors(read.corpus.ids)), theirs, atol=1e-6
    )
    assert np.abs(theirs - cosines(plain.encode(TEXTS, prompt=""))).max() > 1e-5


def cosines(vectors: np.ndarray) -> np.ndarray:
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T


def test_a_trained_run_and_its_export_read_with_the_prompts(
    judged, init, tmp_path, caplog, no_report
):
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
    assert "is an export" not in caplog.text
    prepare(frozen(judged, tmp_path / "exported"), tmp_path / "of export")
    assert (
        f"init {tmp_path / 'exported'} is an export, of which a run takes the segment "
        "encoder only, without the document encoder and the word vectors: give the run"
    ) in caplog.text


def test_all_of_an_exported_segment_encoder_is_taken(judged, init, tmp_path, caplog):
    export(init, tmp_path / "exported")
    prepare(frozen(judged, tmp_path / "exported"), tmp_path / "run")
    assert "is an export" not in caplog.text


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
    prepared = prepare(frozen(judged, folder, **without), tmp_path / "run")
    assert prepared.config.prompts.by_name() == {}


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


def test_a_run_without_prompts_has_the_plain_vectors_without_reading(
    judged, tiny, tmp_path
):
    """Also one of an earlier docjax, whose prompts are None."""
    prepared = reading.with_vectors(prepare(frozen(judged, tiny), tmp_path / "run"))
    config = dataclasses.replace(prepared.config, prompts=Prompts())
    for each in (prepared, prepared.changed(config=config)):
        found = [data() for data in plain_data(each, local_mesh()).values()]
        assert found and all(isinstance(data, RunData) for data in found)


def test_a_begun_run_goes_on_with_its_prompts(judged, init, tmp_path):
    run = tmp_path / "run"
    begun = prepare(frozen(judged, init), run).config
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    assert prepare(frozen(judged, init), run).config == begun
    with pytest.raises(UserError, match="prompts differ"):
        prepare(frozen(judged, init, **{"prompts.query": "find: "}), run)


@pytest.mark.parametrize("folder_has", [True, False])
def test_the_report_reads_by_init_alone_with_its_prompts(
    folder_has, judged, init, tiny, tmp_path
):
    """A folder without prompts, such as that of E5, needs those of the config."""
    own = {"prompts.document": "passage: ", "prompts.query": "query: "}
    asked = frozen(judged, init if folder_has else tiny, **own)
    prepared = reading.with_vectors(prepare(asked, tmp_path / "run"))
    for data in plain_data(prepared, local_mesh()).values():
        model = data().model
        assert model.document_prompt == "passage: "
        assert model.query_prompt == "query: "


def test_masks_spare_the_prompts_of_all_kinds(judged, init, tmp_path):
    own = {"prompts.document": "", "prompts.query": "a long prompt of a query: "}
    prepared = prepare(retriever(judged, init, **own), tmp_path / "run")
    batches = training_batches(prepared, MaskedLM())
    assert len(batches.masking.frame.prefix) == len(prepared.frames[QUERY].prefix) > 5


KINDS = {
    "ModernBertConfig": dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2),
    "T5Config": dict(d_model=16, d_kv=8, d_ff=24, num_layers=2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_took_another_kind_from_its_init_goes_on(
    kind, judged, tiny, tmp_path
):
    folder, run = tmp_path / "init", tmp_path / "run"
    sizes = KINDS[kind] | {"vocab_size": 30522, "num_attention_heads": 2}
    config = getattr(transformers, kind)(**sizes)
    config.save_pretrained(folder)
    shutil.copy(tiny / "tokenizer.json", folder)
    begun = prepare(frozen(judged, folder), run).config
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    assert prepare(frozen(judged, folder), run).config == begun


def test_another_pooling_of_init_is_said(judged, tiny, tmp_path, caplog):
    folder = shutil.copytree(tiny, tmp_path / "init")
    (folder / "modules.json").write_text(json.dumps(MODULES))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "mean"}')
    found = frozen(judged, folder, **{"encoder.segment.pooling": "first"})
    with caplog.at_level("INFO", "docjax"):
        prepare(found, tmp_path / "run")
    assert "--config.encoder.segment.pooling=mean does so too" in caplog.text


UNKNOWN = "does not say how the vectors of tokens become one vector: docjax takes"


def test_an_init_that_does_not_say_its_pooling_is_warned_of(
    judged, tiny, tmp_path, caplog
):
    run = tmp_path / "run"
    docjax.train(frozen(judged, tiny), run)
    [line] = [each for each in caplog.messages if UNKNOWN in each]
    assert line.startswith(f"init {tiny} does")
    assert line.endswith("otherwise, set --config.encoder.segment.pooling=first")
    caplog.clear()
    docjax.load(run)
    export(run, tmp_path / "exported")
    docjax.load(tmp_path / "exported")
    prepare(frozen(judged, run), tmp_path / "of run")
    prepare(frozen(judged, tmp_path / "exported"), tmp_path / "of exported")
    for pooling in ("mean", "first"):
        found = frozen(judged, tiny, **{"encoder.segment.pooling": pooling})
        prepare(found, tmp_path / pooling)
    assert UNKNOWN not in caplog.text


@pytest.mark.parametrize("name", ["docsplit", "masked_lm", "simcse", "retriever"])
def test_a_config_that_chooses_the_pooling_is_not_warned_of(
    judged, tiny, tmp_path, caplog, name
):
    checked(fields.resolve(recipe(name, judged, tiny)), tmp_path / "run", None)
    assert "does not say" not in caplog.text and "does so too" not in caplog.text


def test_the_encoder_of_two_towers_is_named(judged, tiny, tmp_path, caplog):
    found = recipe("contrastive_tension", judged, tiny)
    found.batch = 8
    found.encoder.segment.encoder.pooling = None
    checked(fields.resolve(found), tmp_path / "run", None)
    assert "set --config.encoder.segment.encoder.pooling=first" in caplog.text


@pytest.mark.parametrize("units", ["WholeSections", "Sentences"])
def test_the_plain_vectors_are_pooled_as_the_config_says(
    judged, tiny, tmp_path, caplog, units
):
    found = frozen(judged, tiny, **{"encoder.segment.pooling": "first"})
    found.units = dict(fn=f"docjax.data.units.{units}")
    prepared = reading.with_vectors(prepare(found, tmp_path / "run"))
    pooled = load_transformer(tiny, "first").encode(TEXTS)
    for read in plain_data(prepared, local_mesh()).values():
        theirs = cosines(read().vectors(prepared.corpus.ids))
        np.testing.assert_allclose(theirs, cosines(pooled), atol=1e-6)
    assert UNKNOWN not in caplog.text


def test_an_init_of_another_pooling_is_one_line(judged, tiny, tmp_path):
    folder = tmp_path / "init"
    shutil.copytree(tiny, folder)
    (folder / "1_Pooling").mkdir()
    (folder / "modules.json").write_text(json.dumps(MODULES))
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(UserError, match="pooling max is not supported"):
        docjax.train(frozen(judged, folder), tmp_path / "run")
