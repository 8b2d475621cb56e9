"""Two documents compared: the numbers are cosines of what the model encodes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sentence_transformers.util import cos_sim

import docjax
from docjax.data import graphs
from docjax.data.segments import Chunks, Joined, OneEach
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Passages, Sentences, Whole
from docjax.data.word_tokenizer import CLEANINGS, word_tokenizer
from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.model import compare as comparison
from docjax.model import sides
from docjax.model.document_model import DocumentModel
from docjax.model.inputs import as_document
from docjax.model.reading import COUNTS
from docjax.types import Document, ReadLimits

RIVER = "Rivers carry sand to the sea. The sea carries it away."
WIND = "Who has seen the wind? Neither you nor me. Leaves hang trembling."
A = {
    "id": "a",
    "title": "Water",
    "sections": [{"heading": "One", "text": RIVER}, {"heading": "Two", "text": WIND}],
}
B = {
    "id": "b",
    "sections": [
        {"heading": "", "text": WIND},
        {"heading": "", "text": ""},
        {"heading": "Last", "text": RIVER + " " + WIND},
    ],
}


@pytest.fixture(scope="module")
def model() -> DocumentModel:
    """Passages of 8 words, of at most 24 tokens, in a full graph; 6 are read."""
    tokenizer = train_tokenizer([RIVER, WIND], 300)
    segment = Transformer(
        vocabulary=300,
        layers=1,
        width=16,
        heads=2,
        hidden=16,
        positions=26,
        pooling="mean",
    )
    encoder = DocumentEncoder(segment, GraphAttention(width=8, layers=1, heads=2))
    generator = np.random.default_rng(0)  # other than the first parameters, whose
    draw = lambda leaf: generator.normal(0, 1, leaf.shape).astype(np.float32)
    return DocumentModel(  # vectors are all alike
        encoder=encoder,
        params=jax.tree.map(draw, fresh_params(encoder, 0)),
        tokenizer=tokenizer,
        units=Passages(8),
        segments=OneEach(),
        graph=graphs.full,
        limits=ReadLimits(24, 24, 6),
    )


@pytest.fixture(scope="module")
def words() -> DocumentModel:
    """Averages of random word vectors, of the whole text."""
    known = sorted(set((RIVER + " " + WIND).lower().replace(".", " ").split()))
    tokenizer = word_tokenizer(known, CLEANINGS["letters"])
    encoder = DocumentEncoder(WordAverage(tokenizer.vocabulary, 8), Mean())
    params = jax.tree.map(np.asarray, fresh_params(encoder, 0))
    limits = ReadLimits(512, 512, None)
    parts = Whole(), OneEach(), None, limits
    return DocumentModel(encoder, params, tokenizer, *parts)


@pytest.fixture(scope="module")
def roberta(model) -> DocumentModel:
    """The segment encoder alone, on the whole text in pieces of 24 tokens."""
    return dataclasses.replace(
        model,
        encoder=DocumentEncoder(model.encoder.segment, Mean()),
        params={"segment": model.params["segment"]},
        units=Whole(),
        graph=None,
    )


def cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_similarity_is_what_sentence_transformers_calls_so(model):
    generator = np.random.default_rng(0)
    a, b = (generator.normal(size=(n, 5)).astype(np.float32) for n in (3, 4))
    np.testing.assert_allclose(model.similarity(a, b), cos_sim(a, b), atol=1e-6)
    assert model.similarity(a[0], b).shape == (1, 4)
    assert not model.similarity(np.zeros((1, 5), np.float32), b).any()


@pytest.mark.parametrize("name", ["model", "roberta", "words"])
def test_the_documents_number_is_the_cosine_of_what_encode_gives(name, request):
    model = request.getfixturevalue(name)
    found = model.compare(A, RIVER)
    assert abs(found.similarity - cosine(*model.encode([A, RIVER]))) < 1e-6
    assert 0 < abs(found.similarity) < 0.999


def test_segments_and_sections_are_cosines_of_the_models_segments(model):
    found = model.compare(A, B)
    read = list(model.read([A, B], dict.fromkeys(COUNTS, 0)))
    vectors = model.inference().segments(model.params, read)
    assert found.segments.shape == tuple(map(len, read))
    for i, a in enumerate(vectors[0]):
        for j, b in enumerate(vectors[1]):
            assert abs(found.segments[i, j] - cosine(a, b)) < 1e-5
    first = read[0].sections == 0
    section = np.average(vectors[0][first], axis=0, weights=read[0].lengths[first])
    other = np.average(
        vectors[1], axis=0, weights=read[1].lengths * (read[1].sections == 2)
    )
    assert abs(found.sections[0, 1] - cosine(section, other)) < 1e-5


def test_texts_and_headings_stand_at_their_rows(model):
    found = model.compare(A, B)
    assert found.a.title == "Water" and found.b.title == "b"
    assert found.a.headings == ["One", "Two"]
    assert found.b.headings == ["", "Last"]  # a section without text has no row
    assert found.sections.shape == (2, 2)
    whole = "".join(segment.text for segment in found.a.segments)
    expected = f"Water One {RIVER} Two {WIND}"  # a segment may end in a word
    assert whole.replace(" ", "") == expected.replace(" ", "")
    assert {segment.section for segment in found.b.segments} == {0, 1}


def test_a_document_is_most_similar_to_itself(model):
    found = model.compare(A, A)
    assert abs(found.similarity - 1) < 1e-6 and found.similarity <= 1
    np.testing.assert_allclose(found.segments.diagonal(), 1, atol=1e-6)
    np.testing.assert_allclose(found.segments, found.segments.T, atol=1e-6)


def test_what_the_cap_leaves_out_is_counted(model):
    long = {"id": "long", "text": " ".join([RIVER, WIND] * 4)}
    found = model.compare(long, A)
    _, stats = model.encode([long], return_stats=True)
    assert len(found.a.segments) == len(found.segments) == 6
    assert found.a.segments_cut == stats["segments_cut"] > 0
    assert found.a.tokens_cut == stats["tokens_cut"] > 0
    assert (found.b.segments_cut, found.b.tokens_cut) == (0, 0)


def test_a_model_that_reads_whole_texts_compares_sentences(words):
    found = words.compare(A, B)
    assert [s.text for s in found.a.segments] == [
        *("Rivers carry sand to the sea.", "The sea carries it away."),
        *("Who has seen the wind?", "Neither you nor me.", "Leaves hang trembling."),
    ]
    assert found.segments.shape == (5, 8)
    for i, j in ((0, 3), (2, 0), (4, 7)):  # the same sentences
        assert abs(found.segments[i, j] - 1) < 1e-5
    one = words.encode([found.a.segments[0].text, found.b.segments[0].text])
    assert abs(found.segments[0, 0] - cosine(*one)) < 1e-6


def test_a_model_of_joined_sentences_compares_them_apart(roberta):
    joined = dataclasses.replace(roberta, units=Sentences(), segments=Joined())
    found = joined.compare(A, B)
    assert found.a.whole is not found.a.tokens
    assert len(found.a.segments) == len(found.a.tokens) == 5
    assert found.a.segments[3].text == "Neither you nor me."
    assert abs(found.similarity - cosine(*joined.encode([A, B]))) < 1e-6


def test_long_texts_are_compared_by_passages(words):
    found = words.compare(" ".join([RIVER] * 300), {"text": RIVER + " " + WIND})
    lengths = [len(segment.text.split()) for segment in found.a.segments]
    assert sum(lengths) == 300 * len(RIVER.split())
    assert 80 < min(lengths[:-1]) and max(lengths) <= sides.WORDS
    assert len(found.b.segments) == 5


def test_a_document_of_a_title_alone_and_one_without_known_words(words):
    found = words.compare(
        {"id": "t", "title": RIVER, "text": ""}, Document("d", (), WIND)
    )
    assert found.segments.shape == (1, 1)
    found = words.compare("xyzzy plugh.", RIVER)
    assert found.similarity == 0 and not found.segments.any()


def test_more_pairs_than_memory_holds_are_refused(model, monkeypatch):
    monkeypatch.setattr("docjax.model.compare.PAIRS", 3)
    long = "One sentence. " * 30
    with pytest.raises(UserError, match=r"passages: at most 3 pairs are compared"):
        model.compare(long, long)


def test_empty_documents_are_named(model):
    with pytest.raises(UserError, match="document 1: empty text"):
        model.compare("a", " ")


def test_real_weights_find_the_related_sentence(minilm):
    model = docjax.load(minilm)
    a = "The river floods each spring. A pianist played Chopin."
    b = "Interest rates rose again. Every March the valley is under water."
    found = model.compare(a, b)
    assert found.segments.argmax() == 1  # floods, under water
    read = sides.read(as_document(a, 0), model.cut, None)
    assert len(read.whole) == 1 and len(read.tokens) == 2


def of_chunks(plain: DocumentModel, **places: int) -> DocumentModel:
    """The segment encoder with a BiLSTM over the segments, at random; `places` are the
    rows of tables that embed the places of segments."""
    encoder = plain.encoder.clone(
        segment=plain.encoder.segment.clone(**places),
        document=ChunkEncoder(width=8, heads=2, hidden=8),
    )
    params = fresh_params(encoder, 0)
    tables = {name: params["segment"]["embeddings"][name] for name in places}
    segment = dict(plain.params["segment"])
    segment["embeddings"] = dict(segment["embeddings"]) | tables
    params = {"segment": segment, "document": params["document"]}
    return dataclasses.replace(plain, encoder=encoder, params=params)


CUTS = {
    "passages": ({}, Passages(8), OneEach()),
    "chunks that know their places": (
        {"sections": 3, "chunks": 2},
        Sentences(),
        Chunks(),
    ),
}


@pytest.mark.parametrize("case", CUTS)
def test_a_section_has_the_vector_of_a_document_with_this_section(case, tiny):
    places, units, segments = CUTS[case]
    model = of_chunks(docjax.load(tiny), **places)
    model = dataclasses.replace(model, units=units, segments=segments)
    long = as_document(B | {"sections": [*A["sections"], *B["sections"]]}, 0)
    short = as_document(A | {"title": ""}, 1)  # a title belongs to the first section
    found = model.similarities([long, short]).sections
    alone = [
        dataclasses.replace(document, sections=(section,))
        for document in (long, short)
        for section in document.sections
        if section.text
    ]
    vectors = model.encode(alone)
    np.testing.assert_allclose(found, comparison.cosines(vectors, vectors), atol=1e-5)
    assert found.min() < 0.995


def test_chunk_attention_inside_a_document_is_explained(tiny):
    model = of_chunks(docjax.load(tiny))
    found = model.explain("one two three. " * 60)
    count = len(found.segments)
    assert count > 1 and found.weights.shape == (1, 1, count + 1, count + 1)
    np.testing.assert_allclose(found.weights[0, 0, 1:].sum(-1), 1, atol=1e-6)
    assert not found.weights[0, 0, 0].any() and not found.weights[..., 0].any()
    twice = model.compare(*["one two three. " * 60] * 2).chunks.weights
    np.testing.assert_allclose(found.weights[0, 0, 1:, 1:], twice, atol=1e-6)


def test_chunk_attention_is_that_of_the_encoder(tiny):
    plain = docjax.load(tiny)
    model = of_chunks(plain)
    document, fresh = model.encoder.document, model.params["document"]
    texts = ["one two three. " * 60, "four five six. " * 90]
    chunks = model.compare(*texts).chunks
    a, b = (jnp.asarray(s.vectors) for s in model.segment_vectors(texts))
    assert chunks.weights.shape == (len(a), len(b)) and len(a) > 1
    cross = lambda queries, keys: document.apply(
        {"params": fresh},
        queries,
        keys,
        jnp.ones(len(keys), bool),
        method="cross_attention",
    )
    (of_a, weights), (of_b, _) = cross(a, b), cross(b, a)
    np.testing.assert_allclose(chunks.weights, weights, atol=1e-6)
    expected = comparison.cosines(np.asarray(of_a), np.asarray(of_b))
    np.testing.assert_allclose(chunks.cosines, expected, atol=1e-5)
    np.testing.assert_allclose(chunks.weighted, chunks.weights * chunks.cosines)
    assert plain.compare(*texts).chunks is None
