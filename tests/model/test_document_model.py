"""`docjax.load` as a user's script calls it: runs and Hugging Face folders."""

import dataclasses
import functools
import json
import re
import shutil

import jax
import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import docjax
from configs import deca
from docjax.data import units
from docjax.data.documents import parse
from docjax.data.segments import Chunks
from docjax.encoders.document import fresh_params
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.inputs import as_list
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.storage import checkpoint

SENTENCE = "The gradient of every passage flows back through the graph. "
BEYOND = "segments_beyond_tables"
SECTIONS = [{"heading": "One", "text": SENTENCE}, {"heading": "Two", "text": SENTENCE}]


@pytest.fixture(scope="module")
def model(run) -> DocumentModel:
    return docjax.load(run)


def test_texts_dicts_and_documents_give_the_same_vectors_in_order(model):
    texts = [f"Text {count}. " + SENTENCE * count for count in (3, 1, 2, 4)]
    dicts = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    expected = model.encode(texts)
    assert expected.shape == (4, 32) and expected.dtype == np.float32
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    documents = [parse(one, "here") for one in dicts]
    for items in (dicts, documents, [texts[0], dicts[1], documents[2], texts[3]]):
        np.testing.assert_array_equal(model.encode(items), expected)
    alone = np.concatenate([model.encode([text], batch_size=1) for text in texts])
    np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_lengths_are_one_where_asked(model):
    for vectors in (
        model.encode([SENTENCE], normalize_embeddings=True),
        model.encode_queries([SENTENCE], normalize_embeddings=True),
    ):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_stats_count_what_was_read_and_what_the_cap_left_out(model):
    vectors, stats = model.encode([SENTENCE * 5, SENTENCE], return_stats=True)
    whole, cut = stats["tokens"], stats["tokens_cut"]
    assert len(vectors) == stats["documents"] == 2
    assert (stats["segments"], stats["segments_cut"]) == (4, 2)
    # A passage is a sentence here: four were read and two were not.
    assert whole == 2 * cut > 0


def test_a_stream_gives_the_same_vectors_and_reads_no_further_than_it_must(
    model, monkeypatch
):
    monkeypatch.setattr("docjax.model.reading.TEXTS_AT_ONCE", 2)
    monkeypatch.setattr("docjax.model.inference.WINDOW", 4)
    texts, read = [SENTENCE * (1 + i % 3) for i in range(40)], []
    given = (read.append(text) or text for text in texts)
    counts = {}
    stream = model.encode_stream(given, stats=counts)
    found = [next(stream)]
    assert len(read) < 8 and counts["documents"] < 8
    found += stream
    vectors, stats = model.encode(texts, return_stats=True)
    np.testing.assert_allclose(found, vectors, atol=1e-5)
    assert counts == stats and stats["documents"] == 40


def test_a_fingerprint_is_of_all_that_a_vector_depends_on(run, model, tmp_path):
    same = docjax.load(run)
    assert same.fingerprint() == model.fingerprint()
    config = json.loads((run / "config.json").read_text())
    others = [docjax.load(run, dtype="bfloat16")]
    for part, name, value in (
        ("units", "words", 13),
        ("segments", "fn", "docjax.data.segments.Chunks"),
        ("limits", "inference_segments", 4),
        ("graph", "fn", "docjax.data.graphs.section"),
    ):
        folder = tmp_path / part
        shutil.copytree(run, folder)
        changed = config | {part: config[part] | {name: value}}
        assert changed != config
        (folder / "config.json").write_text(json.dumps(changed))
        others.append(docjax.load(folder))
    params = jax.tree.map(lambda leaf: leaf, model.params)
    leaf = next(iter(jax.tree.leaves(params)))
    params = jax.tree.map(lambda x: x + 1e-3 if x is leaf else x, params)
    others.append(dataclasses.replace(model, params=params))
    assert len({one.fingerprint() for one in (model, *others)}) == 7


def test_vectors_are_compared_as_the_objective_did(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    config = json.loads((run / "config.json").read_text())
    for similarity in ("dot", "cosine"):
        changed = json.dumps(config | {"similarity": similarity})
        (tmp_path / "run" / "config.json").write_text(changed)
        assert docjax.load(tmp_path / "run").similarity_fn_name == similarity


def test_a_query_that_would_be_cut_is_refused(model):
    with pytest.raises(UserError, match=r"has \d+ tokens, the model reads 64: shorten"):
        model.encode_queries(["what is this?", SENTENCE * 9])


def test_a_model_without_classes_has_none_to_give(model):
    with pytest.raises(UserError, match="has no classes: train one with"):
        model.classify([SENTENCE])


def test_a_batch_of_less_than_one_segment_is_refused(model):
    with pytest.raises(UserError, match="batch_size -1: give at least 1"):
        model.encode([SENTENCE], batch_size=-1)


def test_texts_of_many_characters_are_tokenised_apart(model, monkeypatch):
    expected, parts = model.encode([SENTENCE] * 5), []
    monkeypatch.setattr("docjax.model.reading.CHARACTERS_AT_ONCE", 2 * len(SENTENCE))
    tokenize = units.tokenize
    monkeypatch.setattr(
        "docjax.data.units.tokenize",
        lambda some, *rest: parts.append(len(some)) or tokenize(some, *rest),
    )
    np.testing.assert_array_equal(model.encode([SENTENCE] * 5), expected)
    assert parts == [2, 2, 1]


@pytest.mark.parametrize("empty", ["", "  \n", {"id": "x", "text": ""}])
def test_a_document_without_text_is_named(model, empty):
    with pytest.raises(UserError, match="document 1"):
        model.encode([SENTENCE, empty])


@pytest.mark.parametrize("ask", ["encode", "encode_queries"])
def test_nothing_gives_no_vectors_of_the_models_width(model, ask):
    none, some = getattr(model, ask)([]), model.encode([SENTENCE])
    assert none.shape == (0, some.shape[1]) == (0, model.width)
    assert model.similarity(none, some).shape == (0, 1)


@pytest.mark.parametrize(
    "ask", ["encode", "encode_document", "encode_queries", "encode_query"]
)
def test_one_text_gives_one_vector_and_a_list_gives_rows(model, ask):
    rows = getattr(model, ask)([SENTENCE, "river"])
    assert rows.shape == (2, model.width)
    alone = getattr(model, ask)("river")
    assert alone.shape == (model.width,) and alone.dtype == np.float32
    np.testing.assert_allclose(alone, rows[1], atol=1e-5)


def test_one_dict_or_document_gives_one_vector_and_its_counts(model):
    item = {"id": "x", "title": "T", "sections": SECTIONS}
    expected = model.encode([item])[0]
    vector, stats = model.encode(item, return_stats=True, normalize_embeddings=True)
    np.testing.assert_allclose(vector * np.linalg.norm(expected), expected, atol=1e-5)
    assert stats["documents"] == 1
    np.testing.assert_array_equal(model.encode(parse(item, "here")), expected)


def test_a_table_is_no_list_of_documents():
    with pytest.raises(UserError, match="a ndarray is no list of documents"):
        as_list(np.array([[SENTENCE, SENTENCE]]))


def test_one_text_is_no_list_where_a_list_comes_back(model):
    with pytest.raises(UserError, match="a str is no list of documents: put one"):
        model.segment_vectors("river")


def test_segment_vectors_are_what_documents_are_made_of(model, caplog):
    texts = [SENTENCE, SENTENCE * 5]
    first, second = model.segment_vectors(texts)
    # A passage is a sentence here, and the model reads three of a document.
    assert "2 segments (96 tokens) are not read" in caplog.text
    assert [len(first.texts), len(second.texts)] == [1, 3]
    assert second.texts == [SENTENCE.strip()] * 3
    assert second.vectors.shape == (3, 32) and second.vectors.dtype == np.float32
    assert np.abs(first.vectors[0] - second.vectors[2]).max() < 1e-5
    assert model.segment_vectors([]) == []


def test_segment_vectors_of_a_plain_transformer_average_to_the_document(tiny):
    model = docjax.load(tiny)
    (found,) = model.segment_vectors([SENTENCE * 20])
    assert len(found.texts) == len(found.vectors) > 2
    assert "".join(found.texts) == SENTENCE * 20
    (read,) = model.read([SENTENCE * 20], {})
    expected = np.average(found.vectors, axis=0, weights=read.lengths)
    np.testing.assert_allclose(model.encode(SENTENCE * 20), expected, atol=1e-5)


def test_similarity_compares_as_training_did(model):
    a, b = np.eye(2, dtype=np.float32), np.array([[3.0, 4.0]], np.float32)
    for name, expected in (("cosine", [[0.6], [0.8]]), ("dot", [[3], [4]])):
        other = dataclasses.replace(model, similarity_fn_name=name)
        np.testing.assert_allclose(other.similarity(a, b), expected, rtol=1e-6)


def test_attention_is_explained_with_texts_and_headings(model):
    found = model.explain({"id": "x", "title": "T", "sections": SECTIONS})
    assert found.weights.shape == (2, 2, 3, 3)
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)
    assert found.headings == ["One", "Two"] and found.segments_cut == 0
    texts = [piece.text for piece in found.segments]
    assert texts == [f"{head} {SENTENCE}".strip() for head in ("T One", "Two")]


POPEN = dict(fn="subprocess.Popen", args=["touch", "touched"])
HOSTILE = {  # field of config.json -> value, and what is said of it
    "units": (POPEN, "subprocess.Popen"),
    "segments": (POPEN, "subprocess.Popen"),
    "encoder.head": (POPEN, "subprocess.Popen"),
    "encoder.segment.width": (2**40, "encoder.segment.width is 1099511627776, not"),
    "encoder.segment.vocabulary": (2**30, "parameters do not fit the encoder"),
    "encoder.segment.layers": (10**9, "encoder.segment.layers is 1000000000, not"),
    "encoder.document": ("none", "document 'none' is not a part"),
    "encoder": (dict(fn="docjax.encoders.pooling.Mean"), "not a DocumentEncoder"),
    "graph": (dict(fn="docjax.config.load"), "is not under docjax.data.graphs."),
    "limits.segment_tokens": (2**40, "limits.segment_tokens 1099511627776 is no"),
    "units.words": ("100", "words '100' is not a whole number"),
    "segments.across_sections": (True, "OneEach has no keyword 'across_sections'"),
    "similarity": ("euclid", "similarity 'euclid' is none of cosine, dot"),
    "limits": (None, "limits.segment_tokens 0 is not a whole number"),
}


@pytest.mark.parametrize("field", HOSTILE)
def test_a_hostile_config_of_a_run_is_refused(field, run, tmp_path, monkeypatch):
    value, words = HOSTILE[field]
    config = json.loads((run / "config.json").read_text())
    *path, last = field.split(".")
    functools.reduce(dict.__getitem__, path, config)[last] = value
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=words) as error:
        docjax.load(tmp_path / "run")
    assert "\n" not in str(error.value) and not (tmp_path / "touched").exists()


def test_a_config_of_a_run_that_is_none_is_refused(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    for text, words in (
        ("[" * 10**6, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "has no encoder"),
    ):
        (tmp_path / "run/config.json").write_text(text)
        with pytest.raises(UserError, match=words) as error:
            docjax.load(tmp_path / "run")
        assert "\n" not in str(error.value)


def test_a_dtype_is_how_segments_are_encoded_and_no_more(run, model):
    other = docjax.load(run, dtype="bfloat16")
    vectors, expected = other.encode([SENTENCE * 2]), model.encode([SENTENCE * 2])
    assert vectors.dtype == np.float32
    error = np.abs(vectors - expected).max() / np.abs(expected).max()
    assert 0 < error < 0.05
    kinds = {str(leaf.dtype) for leaf in jax.tree.leaves(other.params)}
    assert kinds == {"float32"}
    with pytest.raises(UserError, match="float16"):
        docjax.load(run, dtype="float16")


def test_a_hugging_face_folder_reads_whole_documents(minilm):
    """A short text as sentence-transformers has it, a long one piece by piece."""
    model, peer = docjax.load(minilm), SentenceTransformer(str(minilm), device="cpu")
    short = ["A cat sat.", SENTENCE * 3]
    vectors = model.encode(short)
    assert np.abs(vectors - peer.encode(short)).max() < 1e-4
    long = SENTENCE * 60
    vectors, stats = model.encode([long], return_stats=True)
    assert stats["segments"] == 3 and stats["tokens_cut"] == 0
    assert np.abs(vectors - peer.encode([long])).max() > 1e-3


def test_a_tokenizer_of_another_model_is_refused(minilm, run, tmp_path):
    """Its ids beyond the word table would be read as the last row."""
    shutil.copytree(minilm, tmp_path / "plain")
    shutil.copytree(run, tmp_path / "run")
    shutil.copy(minilm / "tokenizer.json", tmp_path / "run")
    plain = json.loads((minilm / "tokenizer.json").read_text())
    plain["model"]["vocab"]["river"] = 40000
    (tmp_path / "plain/tokenizer.json").write_text(json.dumps(plain))
    for name in ("plain", "run"):
        with pytest.raises(UserError, match="they are not of one model"):
            docjax.load(tmp_path / name)


def test_no_model_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match=re.escape(str(tmp_path))) as error:
        docjax.load(tmp_path)
    assert "\n" not in str(error.value)


def test_word_vectors_are_read_in_float32_alone(tmp_path):
    prepared = prepare(deca.get_config("smoke"), tmp_path)
    saved = checkpoint.Checkpointer(tmp_path / "checkpoints")
    saved.save(
        1, initial_params(prepared.config, prepared.encoder), {"step": np.zeros(())}, {}
    )
    saved.close()
    with pytest.raises(UserError, match="WordAverage has float32 only"):
        docjax.load(tmp_path, dtype="bfloat16")
    assert docjax.load(tmp_path, dtype="float32").encode(["a value"]).shape == (1, 16)


def test_vectors_may_be_cut(tiny):
    """Documents, queries and passages; the fingerprint tells the models apart."""
    whole, cut = docjax.load(tiny), docjax.load(tiny, truncate_dim=5)
    texts = ["a river", "the doctor " * 60]
    np.testing.assert_array_equal(cut.encode(texts), whole.encode(texts)[:, :5])
    queries = whole.encode_queries(texts[:1])[:, :5]
    np.testing.assert_array_equal(cut.encode_queries(texts[:1]), queries)
    for vector, passages in cut.encode_with_passages(texts, {}):
        assert vector.shape == (5,) and passages.shape[1] == 5
    assert cut.width == 5 and cut.fingerprint() != whole.fingerprint()
    with pytest.raises(UserError, match="truncate_dim 17: the vectors have 16 numbers"):
        docjax.load(tiny, truncate_dim=17).encode(texts)
    with pytest.raises(UserError, match="truncate_dim 0: give at least 1"):
        docjax.load(tiny, truncate_dim=0)


def test_segments_whose_place_has_no_row_of_its_own_are_counted(tiny, caplog):
    plain = docjax.load(tiny)
    assert plain.encode([SENTENCE * 40], return_stats=True)[1][BEYOND] == 0
    segment = plain.encoder.segment.clone(sections=2, chunks=3)
    encoder = plain.encoder.clone(segment=segment)
    cut = dict(units=units.Sentences(), segments=Chunks())
    fresh = fresh_params(encoder, 0)
    model = dataclasses.replace(plain, encoder=encoder, params=fresh, **cut)
    sections = [{"heading": "", "text": SENTENCE * n} for n in (40, 1, 1, 1)]
    _, stats = model.encode([{"id": "a", "sections": sections}], return_stats=True)
    of_first = stats["segments"] - 3
    assert of_first > 3
    # Numbers 3 and above of the first section, and sections 2 and 3.
    assert stats[BEYOND] == of_first - 3 + 2
    sections = [{"heading": str(n), "text": SENTENCE} for n in range(500)]
    vectors, stats = model.encode(
        [{"id": "b", "sections": sections}], return_stats=True
    )
    assert np.isfinite(vectors).all() and stats["segments_cut"] == 0
    assert (stats["segments"], stats[BEYOND]) == (500, 498)
    caplog.clear()
    with caplog.at_level("INFO"):
        model.warn(stats)
    assert "498 of 500 segments have a section or a number that" in caplog.text
