"""The first token's attention against Hugging Face's eager attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import docjax
from docjax.encoders.first_token import first_token_attention
from docjax.encoders.transformer import Transformer
from docjax.model.task_data import FileData

attended = jax.jit(first_token_attention, static_argnums=0)
SIZES = dict(vocabulary=50, layers=2, width=16, heads=2, hidden=32, positions=40)


@pytest.fixture(scope="module", params=["first", "mean"])
def encoder(request):
    encoder = Transformer(**SIZES, pooling=request.param, position_offset=0, types=2)
    tokens = jnp.ones((1, 8), jnp.int32)
    return encoder, jax.jit(encoder.init)(jax.random.key(0), tokens, jnp.array([8]))[
        "params"
    ]


def test_weights_are_those_of_hugging_face(minilm):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model = docjax.load(minilm)
    other = transformers.AutoModel.from_pretrained(minilm, attn_implementation="eager")
    text = "The cat sat on the mat, and the dogs were running after it."
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        layers = other(**inputs, output_attentions=True).attentions
    tokens = inputs["input_ids"].numpy().astype(np.int32)
    padded = jnp.asarray(np.pad(tokens, ((0, 0), (0, 9))))
    found = attended(
        model.encoder.segment,
        model.params["segment"],
        padded,
        jnp.array([tokens.shape[1]]),
    )
    expected = layers[-1][:, :, 0].numpy()
    np.testing.assert_allclose(found[:, :, : tokens.shape[1]], expected, atol=1e-5)
    assert not found[:, :, tokens.shape[1] :].any()
    read = FileData(model, lambda: iter(())).token_attention()(text)
    np.testing.assert_allclose(read.weights, expected[0].mean(0)[1:-1], atol=1e-5)
    assert [text[a:b] for a, b in read.spans[:3]] == ["The", "cat", "sat"]


def test_padding_and_neighbours_change_nothing(encoder):
    encoder, params = encoder
    tokens = jnp.asarray(np.random.default_rng(0).integers(50, size=(2, 12)))
    together = attended(encoder, params, tokens, jnp.array([7, 12]))
    alone = attended(encoder, params, tokens[:1, :7], jnp.array([7]))
    np.testing.assert_allclose(together[:1, :, :7], alone, atol=1e-6)
    np.testing.assert_allclose(together.sum(-1), 1, atol=1e-5)


def test_the_gradient_of_padding_is_exactly_zero(encoder):
    encoder, params = encoder
    tokens = jnp.array([[3, 4, 5, 9, 9]])

    def loss(params):
        weights = attended(encoder, params, tokens, jnp.array([3]))
        return (weights * jnp.arange(5)).sum()

    table = jax.jit(jax.grad(loss))(params)["embeddings"]["tokens"]["embedding"]
    assert not table[9].any() and table[5].any()


def test_a_row_without_tokens_is_finite(encoder):
    encoder, params = encoder
    found = attended(encoder, params, jnp.zeros((1, 4), jnp.int32), jnp.array([0]))
    assert not found.any()
