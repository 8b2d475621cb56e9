"""The loss of masked tokens: token by token, on any devices, and what is refused."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from scipy.special import log_softmax

from docjax.data.masking import Masking
from docjax.data.microbatches import Group
from docjax.data.segments import OneEach
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Whole
from docjax.data.word_tokenizer import train_words
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.layers import MaskedTokens
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.inference import Inference
from docjax.model.inputs import as_document
from docjax.model.reading import COUNTS
from docjax.model.task_data import FileData
from docjax.types import Document, ReadLimits

TEXTS = [f"The {word} river floods the valley. " * 7 for word in ("old", "wide", "red")]
TEXTS += ["A planet."]


def make(devices: int = 1, masked_lm: bool = True) -> DocumentModel:
    tokenizer = train_tokenizer(TEXTS, 280)
    segment = Transformer(
        vocabulary=tokenizer.vocabulary,
        layers=1,
        width=16,
        heads=2,
        hidden=16,
        positions=34,
        masked_lm=masked_lm,
    )
    encoder = DocumentEncoder(segment, Mean())
    params = jax.tree.map(lambda leaf: 3 * leaf, fresh_params(encoder, 0))
    return DocumentModel(
        encoder=encoder,
        params=params,
        tokenizer=tokenizer,
        units=Whole(),
        segments=OneEach(),
        graph=None,
        limits=ReadLimits(32, 32, None),
        mesh=Mesh(jax.devices()[:devices], ("data",)),
    )


def documents() -> list[Document]:
    read = (as_document(text, number) for number, text in enumerate(TEXTS))
    return [dataclasses.replace(document, split="test") for document in read]


def token_loss(model: DocumentModel, seed: int = 5) -> tuple[float, float, int]:
    """As a task asks for it."""
    source = lambda: iter(documents())
    return FileData(model, source).masked_tokens("test", 0.3, seed)


def test_the_loss_is_the_sum_over_the_masked_tokens_one_by_one():
    """Every segment alone, and the head written in NumPy."""
    model, segment = make(), make().encoder.segment
    masking = Masking.of(model.tokenizer, model.tokenizer.frame(32), 0.3)
    read = list(model.read(documents(), dict.fromkeys(COUNTS, 0)))
    lengths = np.concatenate([each.lengths for each in read])
    groups = [Group(np.array([i]), 1, int(size)) for i, size in enumerate(lengths)]
    params, loss, right, count = model.params["segment"], 0.0, 0, 0
    table = jnp.asarray(params["embeddings"]["tokens"]["embedding"])
    read_segment = jax.jit(functools.partial(segment.apply, method="hidden_states"))
    head = jax.jit(MaskedTokens(segment.vocabulary, segment.epsilon).apply)
    for masked in masking(read, groups, np.random.default_rng((5, 0))):
        tokens, real, places = map(jnp.asarray, masked.microbatch)
        states = read_segment({"params": params}, tokens, real, places)[0]
        for at, answer in zip(masked.positions[0], masked.answers[0]):
            if answer < 0:
                continue
            given = {"params": params["masked_lm"]}, states[at][None], table
            scores = np.asarray(head(*given))[0]
            loss -= log_softmax(scores.astype(np.float64))[answer]
            right += int(scores.argmax() == answer)
            count += 1
    found = token_loss(model)
    np.testing.assert_allclose(found[0], loss, rtol=1e-5)
    assert found[1:] == (right, count) and count > 30


def test_devices_and_rows_of_a_call_do_not_matter(monkeypatch):
    expected = token_loss(make())
    np.testing.assert_allclose(token_loss(make(8)), expected, rtol=1e-5)
    monkeypatch.setattr(Inference, "height", lambda *_: 2)
    np.testing.assert_allclose(token_loss(make()), expected, rtol=1e-5)
    assert token_loss(make(), 6) != expected


def test_a_model_that_cannot_predict_is_refused():
    with pytest.raises(UserError, match="this model predicts no tokens: train it with"):
        token_loss(make(masked_lm=False))


def test_a_tokenizer_without_a_mask_token_is_refused():
    words = train_words(TEXTS, least_count=1, stop_words=False)
    model = dataclasses.replace(make(), tokenizer=words)
    with pytest.raises(UserError, match=r"the tokenizer has none of \[MASK\], <mask>"):
        token_loss(model)
