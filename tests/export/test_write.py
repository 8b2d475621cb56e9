"""Exported folders: the same vectors in three libraries, or no folder at all."""

import dataclasses
import errno
import json
import logging
import os
import shutil
import sys
import types
from pathlib import Path

import huggingface_hub
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
import torch
import transformers
from ml_collections import ConfigDict
from sentence_transformers import SentenceTransformer

import docjax
from configs import deca, graph_roberta
from docjax import cli, main
from docjax.data import graphs
from docjax.data.documents import parse
from docjax.data.records import full_text
from docjax.data.segments import Chunks, Joined, OneEach
from docjax.data.sources.pydocs import pydocs
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Passages, Sentences, Whole
from docjax.data.word_tokenizer import train_words
from docjax.encoders.bigbird import BigBird
from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.first_segments import FirstSegments
from docjax.encoders.from_mean import FromMean
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.pooling import Classifier, Mean, Predictor, TrainingHead
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.export import card, libraries
from docjax.export import write as export_lib
from docjax.export.write import MOST, export, export_run
from docjax.huggingface import docjax_json, weights
from docjax.huggingface.family import family_of
from docjax.model.document_model import DocumentModel
from docjax.run import report as run_report
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.storage import checkpoint, manifest
from docjax.types import ReadLimits

pytestmark = pytest.mark.usefixtures("one_device")

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
WORDS = (1, 3, 40, 700, 20_000)
QUERIES = ["what is a gradient?", "optimizer state"]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Real texts of 1 to 20,000 words."""
    found = " ".join(full_text(one) for one in pydocs(("optax",))).split(" ")
    return [" ".join(found[10:][:count]) for count in WORDS]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """A run of each kind, passages with graph attention and words, of any parameters."""
    folder = tmp_path_factory.mktemp("runs")
    corpus = folder / "corpus.jsonl"
    documents = [
        {"id": one.id, "title": one.title, "text": full_text(one)[:600]}
        for one, _ in zip(pydocs(("optax",)), range(40))
    ]
    corpus.write_text("".join(json.dumps(one) + "\n" for one in documents))
    found, generator = {}, np.random.default_rng(0)
    noise = lambda leaf: leaf + generator.normal(0, 0.05, leaf.shape).astype("f4")
    for name, config in (
        ("graph_roberta", graph_roberta.get_config("smoke")),
        ("deca", deca.get_config("smoke")),
    ):
        config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
        config.limits.segment_tokens = 24  # few widths to compile
        found[name] = folder / name
        prepared = prepare(config, folder / name)
        params = initial_params(prepared.config, prepared.encoder)
        saved = checkpoint.Checkpointer(folder / name / "checkpoints")
        saved.save(1, jax.tree.map(noise, params), {"step": np.zeros(())}, {})
        saved.close()
    line = '{"step": 1, "eval/clustering/nmi": 0.25, "eval/few/x": 1.0}\n'
    (found["graph_roberta"] / "metrics.jsonl").write_text(line)
    (found["deca"] / "metrics.jsonl").write_text('{"step": 1, "train/loss": 2.0}\n')
    return found


@pytest.fixture(scope="module")
def folders(runs, texts, tmp_path_factory) -> dict[str, Path]:
    """Both runs, exported."""
    folder = tmp_path_factory.mktemp("exported")
    few = [parse({"id": "x", "text": text}, "x") for text in texts[:4]]
    return {
        "graph_roberta": export(runs["graph_roberta"], folder / "graph_roberta", few),
        "deca": export(runs["deca"], folder / "deca"),  # on its own documents
    }


@pytest.fixture(scope="module")
def long_documents(folders) -> SentenceTransformer:
    """graph-roberta in sentence-transformers."""
    folder = str(folders["graph_roberta"])
    return SentenceTransformer(folder, trust_remote_code=True, device="cpu")


def test_three_libraries_give_the_vectors_of_a_graph_model(
    runs, folders, texts, long_documents
):
    expected = docjax.load(runs["graph_roberta"]).encode(texts)
    assert expected.std() > 1e-2
    np.testing.assert_array_equal(
        docjax.load(folders["graph_roberta"]).encode(texts), expected
    )
    assert np.abs(long_documents.encode(texts) - expected).max() < MOST
    facts = json.loads((folders["graph_roberta"] / "docjax.json").read_text())
    found = facts["measured"]["differences"]
    peer = "sentence-transformers"
    assert set(found) == {"docjax", "transformers", peer, f"{peer}, queries"}
    assert max(found.values()) < MOST


def test_two_libraries_give_the_vectors_of_a_mean_of_words(runs, folders, texts):
    expected = docjax.load(runs["deca"]).encode(texts)
    assert np.abs(expected[-1]).max() > 1e-3
    model = SentenceTransformer(str(folders["deca"]), device="cpu")  # without code
    assert type(model[0]).__name__ == "StaticEmbedding" and len(model) == 1
    assert np.abs(model.encode(texts) - expected).max() < MOST
    np.testing.assert_array_equal(docjax.load(folders["deca"]).encode(texts), expected)
    assert (model.encode(["zzzz"]) == 0).all()  # no known word


@pytest.mark.parametrize("name", ["graph_roberta", "deca"])
def test_all_parameters_come_back(runs, folders, name):
    before, after = (docjax.load(x[name]) for x in (runs, folders))
    params = before.params
    if name == "deca":  # what training alone reads stays behind
        params = {"segment": {"words": params["segment"]["words"]}}
        assert not (folders[name] / "document.safetensors").exists()
    assert jax.tree.structure(params) == jax.tree.structure(after.params)
    assert jax.tree.all(jax.tree.map(np.array_equal, params, after.params))
    assert after.encoder == before.encoder and after.limits == before.limits
    assert after.tokenizer.sha256 == before.tokenizer.sha256


LONG_SIZES = dict(vocabulary=300, layers=3, width=16, heads=2, hidden=24)


@pytest.mark.parametrize("cutter", [Whole(), Passages(words=40)], ids=["one", "many"])
@pytest.mark.parametrize(
    "segment",
    [
        Longformer(**LONG_SIZES, positions=402, window=(16, 32, 16)),
        ModernBert(**LONG_SIZES, positions=400, window=16, pooling="mean"),
    ],
    ids=["longformer", "modernbert"],
)
def test_encoders_with_windows_have_the_same_vectors_in_every_library(
    segment, cutter, texts, tmp_path
):
    one = isinstance(cutter, Whole)
    limits = ReadLimits(400 if one else 100, 50, 1 if one else 3)
    encoder, generator = DocumentEncoder(segment, Mean()), np.random.default_rng(0)
    noise = lambda leaf: leaf + generator.normal(0, 0.1, leaf.shape).astype("f4")
    model = DocumentModel(
        encoder=encoder,
        params=jax.tree.map(noise, fresh_params(encoder, 0)),
        tokenizer=train_tokenizer(texts[:4], 300),
        units=cutter,
        segments=OneEach(),
        graph=None,
        limits=limits,
    )
    documents = [parse({"id": "x", "text": text}, "x") for text in texts[1:4]]
    folder = export(model, tmp_path / "out", documents)
    stock = one and isinstance(segment, ModernBert)
    assert libraries.is_stock(folder) == stock
    measured = json.loads((folder / "docjax.json").read_text())["measured"]
    assert {"docjax", "transformers", "sentence-transformers"} <= set(
        measured["differences"]
    )
    assert model.encode(documents).std() > 1e-2
    text = (folder / "README.md").read_text()
    assert ("global_attention_mask" in text) == isinstance(segment, Longformer)
    assert "add_pooling_layer" in text or isinstance(segment, ModernBert)
    # A plain folder: what transformers saves, docjax reads.
    plain = transformers.AutoModel.from_pretrained(folder)
    plain.save_pretrained(tmp_path / "plain")
    again = weights.load(tmp_path / "plain")
    assert again.family.module(**again.keywords, pooling=segment.pooling) == segment
    before, after = model.params["segment"], again.params
    assert jax.tree.all(jax.tree.map(np.array_equal, before, after))


@pytest.mark.parametrize("name", ["graph_roberta", "deca"])
def test_vectors_may_be_cut_in_every_library(runs, texts, tmp_path, name):
    """With our module, and with stock modules."""
    few = [parse({"id": "x", "text": texts[2]}, "x")]
    folder = export(runs[name], tmp_path / "cut", few, truncate_dim=5)
    expected = docjax.load(runs[name]).encode(texts[1:4])[:, :5]
    after = docjax.load(folder)
    np.testing.assert_array_equal(after.encode(texts[1:4]), expected)
    np.testing.assert_array_equal(
        docjax.load(folder, truncate_dim=3).encode(texts[1:4]), expected[:, :3]
    )
    peer = SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    assert np.abs(peer.encode(texts[1:4]) - expected).max() < MOST
    queries = peer.encode_query(QUERIES) - after.encode_queries(QUERIES)
    assert queries.shape == (2, 5) and np.abs(queries).max() < MOST
    assert peer.get_embedding_dimension() == after.width == 5
    written = (folder / "README.md").read_text()
    assert "Vectors of 5 numbers, the first ones of the trained model, for" in written
    again = export(folder, tmp_path / "again", few)  # stays cut
    assert docjax.load(again).fingerprint() == after.fingerprint()
    with pytest.raises(UserError, match="truncate_dim 9999: the vectors have"):
        export(runs[name], tmp_path / "wide", few, truncate_dim=9999)


def test_documents_with_sections_go_in_as_they_are(runs, long_documents):
    sections = [{"heading": f"Part {i}", "text": "Some text. " * 20} for i in range(3)]
    documents = [
        {"id": "a", "title": "A title", "sections": sections},
        {"title": "A title", "text": "A title\n\nRead once."},
    ]
    expected = docjax.load(runs["graph_roberta"]).encode(documents)
    assert np.abs(long_documents.encode(documents) - expected).max() < MOST
    assert np.abs(long_documents.encode(documents[0]) - expected[0]).max() < MOST


def test_queries_have_their_own_vectors(runs, long_documents):
    model = docjax.load(runs["graph_roberta"])
    found = long_documents.encode_query(QUERIES)
    assert np.abs(found - model.encode_queries(QUERIES)).max() < MOST
    assert np.abs(found - long_documents.encode(QUERIES)).max() > 1e-3
    with pytest.raises(ValueError, match=r"has \d+ tokens, the model reads \d+"):
        long_documents.encode_query(["a long question " * 40])


def test_what_the_cap_leaves_out_is_said_by_both(runs, texts, long_documents, caplog):
    model = docjax.load(runs["graph_roberta"])
    _, stats = model.encode(texts, return_stats=True)
    assert stats["segments_cut"] > 50 and not caplog.records
    with caplog.at_level(logging.WARNING):
        model.encode(texts)
        long_documents.encode(texts)
    counts = f"{stats['segments_cut']} segments ({stats['tokens_cut']} tokens)"
    assert [counts in record.getMessage() for record in caplog.records] == [True, True]


def test_transformers_loads_the_segment_encoder(folders):
    model, report = transformers.AutoModel.from_pretrained(
        folders["graph_roberta"], output_loading_info=True
    )
    assert type(model).__name__ == "RobertaModel"
    assert {name.split(".")[0] for name in report["missing_keys"]} == {"pooler"}
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["graph_roberta"])
    assert tokenizer.pad_token == "<pad>" and tokenizer.model_max_length == 24
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id) == (0, 2)


def test_code_of_the_folder_runs_only_where_it_is_trusted(folders):
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(folders["graph_roberta"]), device="cpu")


def test_a_model_that_sentence_transformers_saves_is_the_same(
    long_documents, texts, tmp_path
):
    long_documents.save(str(tmp_path / "saved"))
    again = SentenceTransformer(
        str(tmp_path / "saved"), trust_remote_code=True, device="cpu"
    )
    np.testing.assert_array_equal(
        again.encode(texts[:3]), long_documents.encode(texts[:3])
    )
    with pytest.raises(UserError, match="cannot be verified"):
        docjax.load(tmp_path / "saved")


def small(encoder, params=None, **keywords) -> DocumentModel:
    texts = ["Some words of a text. And a few more of it, in two sentences."]
    tokenizer = train_tokenizer(texts * 9, 270)
    if isinstance(encoder.segment, WordAverage):
        words = "text sentence word two few the".split()
        tokenizer = train_words([" ".join(words)] * 9, stop_words=False)
    generator = np.random.default_rng(0)
    draw = lambda leaf: generator.normal(0, 0.2, leaf.shape).astype(np.float32)
    shapes = jax.eval_shape(lambda: fresh_params(encoder, 0))
    own = dict(units=Passages(), segments=OneEach(), graph=None, limits=LIMITS)
    params = jax.tree.map(draw, shapes)
    return DocumentModel(encoder, params, tokenizer, **own | keywords)


TINY = dict(vocabulary=270, layers=1, width=8, heads=2, hidden=8, positions=30)
BERT = Transformer(**TINY, position_offset=0, types=2, pooling="mean", normalize=True)
ROBERTA = Transformer(**TINY, activation="gelu_new", dtype="bfloat16")
AVERAGE = WordAverage(vocabulary=7, width=6)
MASKED = Transformer(**TINY, masked_lm=True)
BIGBIRD = BigBird(**TINY | {"positions": 64}, block=4, random=1, pooling="mean")
PLACED = Transformer(**TINY, position_offset=0, types=2, sections=2, chunks=128)
LIMITS = ReadLimits(segment_tokens=24, query_tokens=20, inference_segments=None)
ONE = ReadLimits(segment_tokens=24, query_tokens=24, inference_segments=1)
LONG = ReadLimits(segment_tokens=60, query_tokens=20, inference_segments=None)
OTHERS = {
    "long segments of BigBird": lambda: small(
        DocumentEncoder(BIGBIRD, Mean()), units=Passages(25), limits=LONG
    ),
    "one segment that BigBird reads whole": lambda: small(
        DocumentEncoder(BIGBIRD, Mean()), units=Whole(), limits=ONE
    ),
    "a section graph": lambda: small(
        DocumentEncoder(
            ROBERTA,
            GraphAttention(
                width=6, layers=3, merge="mean", residual="linear", bias=False
            ),
            head=Classifier(3),
        ),
        graph=graphs.section,
        labels=("a", "b", "c"),
    ),
    "edges of the user's": lambda: small(
        DocumentEncoder(BERT, GraphAttention(width=8, sparse=True), head=Predictor(4)),
        units=Sentences(),
        graph=graphs.user_edges,
    ),
    "words in passages": lambda: small(
        DocumentEncoder(AVERAGE, GraphAttention(width=6)), graph=graphs.full
    ),
    "a mean of unit length": lambda: small(
        DocumentEncoder(BERT, Mean(normalize=True)), units=Whole()
    ),
    "several vectors": lambda: small(
        DocumentEncoder(BERT, FirstSegments(parts=3, projected=True)), units=Whole()
    ),
    "one segment": lambda: small(
        DocumentEncoder(ROBERTA, Mean()), units=Whole(), limits=ONE
    ),
    "one segment of unit length": lambda: small(
        DocumentEncoder(BERT, Mean(normalize=True)), units=Whole(), limits=ONE
    ),
    "joined sentences": lambda: small(
        DocumentEncoder(MASKED, Mean(), head=TrainingHead()),
        units=Sentences(),
        segments=Joined(),
    ),
    "joined sentences of each section": lambda: small(
        DocumentEncoder(AVERAGE, Mean()),
        units=Sentences(),
        segments=Joined(across_sections=False),
    ),
    "a segment that knows its place": lambda: small(
        DocumentEncoder(PLACED, Mean()), units=Whole(), limits=ONE
    ),
    "chunks that know their places": lambda: small(
        DocumentEncoder(PLACED, ChunkEncoder(width=6, heads=2, hidden=8)),
        units=Sentences(),
        segments=Chunks(),
    ),
    "the mean of chunks": lambda: small(
        DocumentEncoder(AVERAGE, ChunkEncoder(width=6, hidden=0, attention="none")),
        units=Sentences(),
        segments=Chunks(),
    ),
    "a graph beside the mean": lambda: small(
        DocumentEncoder(BERT, FromMean(GraphAttention(width=6), normalize=True)),
        graph=graphs.full,
    ),
    "attention between sections that the run may leave out": lambda: small(
        DocumentEncoder(
            BERT, FromMean(GraphAttention(width=6), nested=True, normalize=True)
        ),
        graph=graphs.section,
    ),
    "a BiLSTM beside the turned mean": lambda: small(
        DocumentEncoder(
            AVERAGE,
            FromMean(ChunkEncoder(width=6, heads=2, hidden=8), turn=True),
        ),
        units=Sentences(),
        segments=Chunks(),
    ),
    "words of unit length": lambda: small(
        DocumentEncoder(AVERAGE, Mean(normalize=True)), units=Whole()
    ),
}
STOCK = (
    *("one segment", "one segment of unit length", "words of unit length"),
    "one segment that BigBird reads whole",
)


@pytest.mark.parametrize("case", OTHERS)
def test_every_encoder_there_is_has_the_same_vectors(case, tmp_path):
    """Measured by `export` itself, on the two shortest docstrings in sections."""
    found = [one for one in pydocs(("optax",)) if len(one.sections) > 2]
    one, other, *_ = sorted(found, key=lambda one: len(full_text(one)))
    documents = [dataclasses.replace(one, edges=((0, 2),)), other]
    folder = export(OTHERS[case](), tmp_path / "out", documents)
    measured = json.loads((folder / "docjax.json").read_text())["measured"]
    differences = measured["differences"]
    assert max(differences.values()) < 1e-5 and measured["documents"] == 2
    modules = json.loads((folder / "modules.json").read_text())
    assert all("sentence_transformers." in m["type"] for m in modules) == (
        case in STOCK
    )
    assert (folder / "docjax_module.py").exists() == (case not in STOCK)
    card = (folder / "README.md").read_text()
    for words in ("does not warn about the rest", "sentence-transformers cuts it"):
        assert (words in card) == case.startswith("one segment")
    params = docjax.load(folder).params
    assert ("head" in params) == (case == "a section graph")
    predicts = case == "joined sentences"
    assert ("masked_lm" in params["segment"]) == predicts
    assert ("transformers, masked tokens" in differences) == predicts
    if "place" in case:  # transformers has no tables of places
        assert set(params["segment"]["embeddings"]) > {"sections", "chunks"}
        assert "AutoModel" not in card and "transformers" not in differences


PREDICTING = {
    "Bert": Transformer(
        **TINY, position_offset=0, types=2, activation="gelu_new", masked_lm=True
    ),
    "Roberta": MASKED,
    "BigBird": BIGBIRD.clone(masked_lm=True),
    "Longformer": Longformer(**LONG_SIZES, positions=42, window=8, masked_lm=True),
    "ModernBert": ModernBert(**LONG_SIZES, positions=40, window=8, masked_lm=True),
}


@pytest.mark.parametrize("kind", PREDICTING)
def test_transformers_predicts_masked_tokens_and_a_run_begins_with_the_head(
    kind, tmp_path
):
    """The logits at every token, and the parameters that `init` would give."""
    segment = PREDICTING[kind]
    model = small(DocumentEncoder(segment, Mean()), units=Whole())
    documents = [parse({"id": "x", "text": "Some words of a text. " * 5}, "x")]
    folder = export(model, tmp_path / "out", documents)
    predict, report = transformers.AutoModelForMaskedLM.from_pretrained(
        folder, output_loading_info=True
    )
    assert type(predict).__name__ == f"{kind}ForMaskedLM"
    missing = [name for name in report["missing_keys"] if "pooler" not in name]
    assert not missing and not report["unexpected_keys"]  # BigBird's head has a pooler
    [cut] = model.cut.documents(documents)
    for row in np.split(cut.tokens, cut.offsets[1:-1]):
        tokens, length = jnp.asarray(row[None]), jnp.array([len(row)], jnp.int32)
        given = tokens, length, None, jnp.arange(len(row))[None]
        params = {"params": model.params["segment"]}
        expected = segment.apply(params, *given, method="token_scores")
        ids = torch.tensor(row[None].astype(int))
        options = {"global_attention_mask": torch.eye(len(row))[:1].int()}
        with torch.no_grad():
            outputs = predict(ids, **options if kind == "Longformer" else {})
        found = outputs.logits[0].numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert np.asarray(expected).std() > 0.1
    config = types.SimpleNamespace(init=str(folder), seed=0)
    begun = initial_params(config, model.encoder)["segment"]
    assert jax.tree.all(jax.tree.map(np.array_equal, model.params["segment"], begun))


def test_scores_of_masked_tokens_that_differ_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(Transformer, "token_scores", _shifted(Transformer.token_scores))
    segment = Transformer(**TINY, masked_lm=True)
    model = small(DocumentEncoder(segment, Mean()), units=Whole())
    documents = [parse({"id": "x", "text": "Some words of a text."}, "x")]
    with pytest.raises(
        UserError, match="masked tokens': .* but at most 0.0001 is allow"
    ):
        export(model, tmp_path / "out", documents)
    assert not list(tmp_path.iterdir())


def _shifted(scores):
    return lambda *given, **keywords: scores(*given, **keywords) + 1e-3


def test_bigbird_reads_each_segment_as_if_it_were_alone(tmp_path):
    """In sentence-transformers, in batches of short and long segments, in any order."""
    model = small(
        DocumentEncoder(BIGBIRD, Mean()),
        units=Whole(),
        limits=LONG._replace(inference_segments=1),
    )
    words = "some words of a text and a few more of it in two sentences".split()
    texts = [" ".join(words[:count]) for count in (1, 13, 2, 9)] + ["a " * 300]
    expected = model.encode(texts)
    folder = export(
        model, tmp_path / "out", [parse({"id": "x", "text": texts[1]}, "x")]
    )
    peer = SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    lengths = [len(ids) for ids in model.tokenizer.encode(texts)]
    assert min(lengths) < 28 < sorted(lengths)[-2]  # dense and in blocks
    for size in (1, 5):
        assert np.abs(peer.encode(texts, batch_size=size) - expected).max() < MOST
    assert np.abs(peer.encode(texts[:2]) - expected[:2]).max() < MOST
    assert np.abs(docjax.load(folder).encode(texts) - expected).max() < 1e-5


def test_real_weights_go_out_and_come_in_again(minilm, tmp_path):
    before = docjax.load(minilm)
    short = [parse({"id": "x", "text": "A cat sat on the mat."}, "x")]
    after = docjax.load(export(before, tmp_path / "minilm", short))
    same = jax.tree.map(np.array_equal, before.params, after.params)
    assert jax.tree.all(same) and len(jax.tree.leaves(same)) == 5 + 6 * 16
    original = safetensors.numpy.load_file(minilm / "model.safetensors")
    written = safetensors.numpy.load_file(tmp_path / "minilm/model.safetensors")
    assert len(written) == 5 + 6 * 16
    for name, tensor in written.items():
        np.testing.assert_array_equal(tensor, original[name])


def test_a_vector_that_differs_leaves_nothing(tmp_path, monkeypatch):
    write = export_lib.exported.write_params

    def wrong(folder, encoder, params):
        write(folder, encoder, jax.tree.map(lambda leaf: leaf + 1e-2, params))

    monkeypatch.setattr(export_lib.exported, "write_params", wrong)
    with pytest.raises(
        UserError, match=r"differ from .* at most 0\.0001 is allowed"
    ) as error:
        export(OTHERS["words of unit length"](), tmp_path / "out")
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_queries_that_differ_leave_nothing(tmp_path, monkeypatch):
    write = libraries.write_code

    def wrong(folder):
        write(folder)
        code = folder / "docjax_module.py"
        text, query = code.read_text(), "embeddings = self.document.query(vectors)"
        assert query in text
        code.write_text(text.replace(query, f"{query} + 1"))

    monkeypatch.setattr(libraries, "write_code", wrong)
    with pytest.raises(
        UserError, match=r"e-\d\d, '.*, queries': (1\.0|0\.99)"
    ) as error:
        export(OTHERS["words in passages"](), tmp_path / "out")
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


class Longest(Mean):
    """A document encoder of a user's, which inherits from one of docjax."""

    def __call__(self, vectors, lengths, places=None, graphs=None):
        return vectors[..., 0, :]


class Sum(AVERAGE.__class__):
    """A segment encoder of a user's."""


def star(segments, sections, edges):
    """A graph of a user's."""
    return graphs.full(segments, sections, edges)


class Lines(Whole):
    """Units of a user's."""


class Halves(OneEach):
    """Segments of a user's."""


FOREIGN = {
    "encoder.document {}.Longest": lambda: small(DocumentEncoder(BERT, Longest())),
    "encoder.document {}.Longest ": lambda: small(
        DocumentEncoder(BERT, FromMean(Longest()))
    ),
    "encoder.segment {}.Sum": lambda: small(
        DocumentEncoder(Sum(vocabulary=7, width=6), Mean())
    ),
    "graph {}.star": lambda: small(
        DocumentEncoder(BERT, GraphAttention(width=6)), graph=star
    ),
    "units {}.Lines": lambda: small(DocumentEncoder(BERT, Mean()), units=Lines()),
    "segments {}.Halves": lambda: small(
        DocumentEncoder(BERT, Mean()), segments=Halves()
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_part_without_a_torch_form_leaves_nothing(case, tmp_path):
    model = FOREIGN[case]()
    assert model.encode(["a text"]).shape[0] == 1  # docjax itself reads it
    with pytest.raises(UserError) as error:
        export(model, tmp_path / "new" / "out")
    assert str(error.value) == (
        f"{case.strip().format(__name__)} has no torch form: sentence-transformers "
        "cannot read this model; `docjax encode` and `docjax.load` can"
    )
    assert not list(tmp_path.iterdir())


def test_a_folder_of_an_earlier_docjax_is_read(runs, folders, texts, tmp_path):
    """Its docjax.json has no "torch": the code in the folder read what docjax reads."""
    folder = shutil.copytree(folders["graph_roberta"], tmp_path / "earlier")
    facts = json.loads((folder / "docjax.json").read_text())
    assert facts.pop("torch")["document"]["fn"] == "GraphAttention"
    docjax_json.write(folder, facts)
    manifest.seal(folder)
    expected = docjax.load(runs["graph_roberta"]).encode(texts[:3])
    np.testing.assert_array_equal(docjax.load(folder).encode(texts[:3]), expected)


def test_a_folder_that_is_there_stays(tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="exists: remove it"):
        export(OTHERS["one segment"](), tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_a_folder_of_the_users_beside_it_stays(tmp_path):
    (tmp_path / "out.partial").mkdir()
    export(OTHERS["one segment"](), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "out.partial"}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(export_lib.exported, "write_params", full)
    with pytest.raises(UserError, match="out: cannot be written .*No space") as error:
        export(OTHERS["one segment"](), tmp_path / "out")
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_a_missing_library_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UserError, match=r"pip install 'docjax\[export\]'") as error:
        export(OTHERS["one segment"](), tmp_path / "out")
    assert "\n" not in str(error.value) and not list(tmp_path.iterdir())


def test_the_model_card_says_what_the_model_is(runs, folders, texts):
    card = huggingface_hub.ModelCard.load(folders["graph_roberta"] / "README.md")
    assert card.data.library_name == "sentence-transformers"
    (result,) = [one for one in card.data.eval_results if one.task_type == "clustering"]
    assert (result.metric_type, result.metric_value) == ("nmi", 0.25)
    assert result.dataset_name == "jsonl corpus.jsonl"
    counts = [len(text.split()) for text in (texts[0], texts[3])]
    for words in (
        "| clustering | nmi | 0.2500 |",
        "| documents | 40 |",
        '"temperature": 0.05',
        "at most 24 tokens",
        "the first 100 segments",
        "trust_remote_code=True",
        'AutoModel.from_pretrained("graph_roberta"',
        "| docjax | 0 |",
        "| sentence-transformers | ",
        "| sentence-transformers, queries | ",
        "over 4 documents of {} to {} words".format(*counts),
    ):
        assert words in card.text, words
    assert str(runs["graph_roberta"].parent) not in card.content
    words = huggingface_hub.ModelCard.load(folders["deca"] / "README.md")
    assert "AutoModel" not in words.text and "trust_remote_code" not in words.text
    assert "No task was evaluated." in words.text
    assert "over 9 documents" in words.text
    config = json.loads(
        (folders["deca"] / "config_sentence_transformers.json").read_text()
    )
    assert config["similarity_fn_name"] == "cosine"


def test_the_command_line_exports(runs, tmp_path, capsys):
    arguments = ["export", str(runs["deca"]), str(tmp_path / "out")]
    arguments += ["--truncate-dim", "6"]
    assert cli.main(arguments) == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0].startswith(
        f"exported to {tmp_path / 'out'}; vectors of 9"
    )
    assert [line[:32].strip() for line in out.splitlines()[1:]] == [
        "docjax",
        "sentence-transformers",
        "sentence-transformers, queries",
    ]
    assert docjax.load(tmp_path / "out").width == 6
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"docjax: {tmp_path / 'out'} exists")


def test_a_run_is_exported_into_itself_and_its_report_says_so(runs, monkeypatch):
    run = runs["deca"]
    config = ConfigDict(json.loads((run / "config.json").read_text()))
    metrics = main.run(config, run, "export")
    assert metrics["step"] == 1
    assert docjax.load(run / "export").encode(["a gradient"]).shape == (1, 16)
    page = (run / "report" / "index.html").read_text()
    assert '<section id="export">' in page and f'docjax.load("{run}/export' in page
    made = (run / "export/docjax.json").stat().st_ino
    main.run(config, run, "export")
    assert (run / "export/docjax.json").stat().st_ino == made  # once is enough
    facts = json.loads((run / "export/docjax.json").read_text())
    docjax_json.write(run / "export", facts | {"fingerprint": "of other parameters"})
    manifest.seal(run / "export")
    of_run = types.SimpleNamespace(allow=())
    prepared = types.SimpleNamespace(run=run, config=of_run)
    assert run_report._export(prepared, None) is None
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sentence_transformers", None)
        with pytest.raises(UserError, match="pip install"):
            main.run(config, run, "export")
    assert (run / "export/docjax.json").stat().st_ino  # the old one is still there
    main.run(config, run, "export")
    again = json.loads((run / "export/docjax.json").read_text())
    assert again["fingerprint"] == facts["fingerprint"]
    assert "sentence-transformers" in page and "AutoModel" not in page
    for damage in (
        lambda: (run / "export/docjax.json").write_text("{}"),
        lambda: docjax_json.write(run / "export", facts | {"format": 1}),
    ):
        damage()
        export_run(run)
        assert docjax_json.read(run / "export")["fingerprint"] == facts["fingerprint"]


def test_the_card_shows_no_folder_and_keeps_its_tables(folders):
    commit = "org/model@" + "0" * 40
    assert card._public({"path": "/home/me/a.jsonl", "init": commit}) == {
        "path": "a.jsonl",
        "init": commit,
    }
    assert card._public({"encoder": {"frozen": "segment/"}})["encoder"] == {
        "frozen": "segment/"
    }
    folder = folders["deca"]
    facts = docjax_json.read(folder) | {"width": 64}
    family = family_of(docjax.load(folder).encoder.segment)

    def written(**config) -> str:
        config = {"source": {"fn": "x.jsonl"}} | config
        run = {"config": config, "corpus": {"labels": {"a|b\nc": 3}}}
        return card.card("m", facts, folder, family, run)

    halves = written(encoder={"document": {"components": True}})
    assert "components of its documents first." in halves
    assert "truncate_dim=32" in halves
    cut = written(objective={"widths": [32, 64, 128]})
    assert "trained for 32, 64 numbers." in cut and "truncate_dim=64" in cut
    assert "| labels | a\\|b c: 3 |" in cut
    assert "truncate_dim" not in written(objective={})
