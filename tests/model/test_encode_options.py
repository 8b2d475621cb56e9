"""Arguments of sentence-transformers' `encode`: the same meaning, or one line."""

import inspect

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import quantization

import docjax
from docjax.errors import UserError
from docjax.model import encode_options

TEXTS = [f"The river number {i} carries sand to the sea." for i in range(3)]
# How docjax answers each argument that sentence-transformers has: a value that both
# take, and a value that docjax refuses with the line.
TAKEN = {
    "prompt_name": None,
    "prompt": "query: ",
    "batch_size": 4,
    "show_progress_bar": None,
    "output_value": "sentence_embedding",
    "precision": "ubinary",
    "convert_to_numpy": True,
    "convert_to_tensor": True,
    "device": "cpu",
    "normalize_embeddings": True,
    "truncate_dim": 16,
    "pool": None,
    "chunk_size": None,
}
REFUSED = {
    "inputs": (TEXTS, "inputs: encode calls its first argument documents"),
    "sentences": (TEXTS, "sentences: encode calls its first argument documents"),
    "prompt_name": ("query", "is not one of the model's prompts"),
    "prompt": (5, "prompt 5 is no text: give the words"),
    "batch_size": ("8", "give a whole number"),
    "output_value": ("token_embeddings", "model.segment_vectors"),
    "precision": ("int4", "precision 'int4' is none of float32, int8"),
    "device": ("cuda", "device 'cuda': JAX runs on cpu; .* JAX_PLATFORMS"),
    "truncate_dim": (400, "truncate_dim 400: the vectors have 384 numbers"),
    "pool": ({"processes": []}, "pool: docjax encodes on all devices"),
    "chunk_size": (5, "chunk_size: docjax encodes on all devices"),
    "normalise": (True, "encode has no argument normalise: it has batch_size,"),
}


@pytest.fixture(scope="module")
def ours(minilm):
    return docjax.load(minilm)


@pytest.fixture(scope="module")
def theirs(minilm):
    return SentenceTransformer(str(minilm), device="cpu")


@pytest.mark.parametrize("name", ["encode", "encode_query", "encode_document"])
def test_every_argument_has_the_same_meaning_or_one_line(ours, theirs, name):
    """A new argument of sentence-transformers fails this test until it has an answer."""
    parameters = inspect.signature(getattr(theirs, name)).parameters
    assert {*parameters} - {"self", "kwargs"} <= {*TAKEN, *REFUSED}
    for argument, value in TAKEN.items():
        found = getattr(ours, name)(TEXTS, **{argument: value})
        expected = getattr(theirs, name)(
            TEXTS, **{argument: value or parameters[argument].default}
        )
        assert type(found) is type(expected) and found.dtype == expected.dtype, argument
        differ = np.abs(np.asarray(found, float) - np.asarray(expected, float))
        assert differ.max() <= (1 if argument == "precision" else 1e-5), argument


@pytest.mark.parametrize("argument", REFUSED)
def test_what_docjax_has_not_is_one_line(ours, argument):
    value, line = REFUSED[argument]
    for ask in (ours.encode, ours.encode_queries):
        given = () if argument in ("inputs", "sentences") else (TEXTS,)
        with pytest.raises(UserError, match=line) as error:
            ask(*given, **{argument: value})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("precision", encode_options.PRECISIONS)
def test_vectors_of_few_bits_are_those_of_sentence_transformers(ours, precision):
    vectors = ours.encode(TEXTS)
    expected = quantization.quantize_embeddings(vectors, precision)
    found = ours.encode(TEXTS, precision=precision)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    cut = ours.encode(TEXTS, precision=precision, truncate_dim=20)
    parts = quantization.quantize_embeddings(vectors[:, :20], precision)
    np.testing.assert_array_equal(cut, parts)


def test_a_single_vector_has_no_steps(ours):
    with pytest.raises(
        UserError, match="a single vector does not have; encode several"
    ):
        ours.encode(TEXTS[0], precision="int8")
    assert ours.encode(TEXTS[0], precision="binary").shape == (48,)
    assert ours.encode([], precision="int8").shape == (0, 384)


def test_tensors_are_those_of_torch(ours, theirs):
    alone = ours.encode(TEXTS[0], convert_to_tensor=True)
    assert isinstance(alone, torch.Tensor) and alone.shape == (384,)
    alone += 1  # it may be changed
    several = ours.encode(TEXTS, convert_to_numpy=False)
    expected = theirs.encode(TEXTS, convert_to_numpy=False)
    assert type(several) is type(expected) is list
    assert torch.stack(several).allclose(torch.stack(expected), atol=1e-5)


def test_without_torch_a_tensor_is_one_line(ours, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(
        UserError, match="convert_to_tensor, .* needs torch: pip install"
    ):
        ours.encode(TEXTS, convert_to_tensor=True)


def test_a_cut_vector_has_length_1_if_asked(ours, theirs):
    options = dict(truncate_dim=20, normalize_embeddings=True)
    found = ours.encode(TEXTS, **options)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found, theirs.encode(TEXTS, **options), atol=1e-5)


def test_the_numbers_of_a_vector_are_told_without_encoding(ours, monkeypatch):
    monkeypatch.setattr("docjax.model.inference.Inference._read", None)
    assert ours._cut_to(7).width == 7
