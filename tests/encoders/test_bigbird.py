"""BigBird against fresh Hugging Face models that read one text without padding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flax.traverse_util import unflatten_dict

from docjax.encoders.bigbird import BigBird
from docjax.errors import UserError
from docjax.huggingface import names
from docjax.huggingface.families.bigbird import FAMILY

SIZES = dict(
    vocab_size=97,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=4096,
)
BLOCKS = dict(block_size=4, num_random_blocks=1)  # dense up to 28 tokens
SMALL = dict(vocabulary=97, layers=2, width=32, heads=2, hidden=48, positions=64)
SMALL |= dict(block=4, random=1, pooling="mean")
LENGTHS = (61, 3, 28, 29, 33, 64)


def torch_model(**changes):
    """A fresh model: one that has read a short text would stay dense."""
    torch.manual_seed(0)
    config = transformers.BigBirdConfig(**SIZES | changes)
    model = transformers.BigBirdModel(config, add_pooling_layer=False)
    for parameter in model.parameters():  # fresh biases are 0 and would hide mistakes
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def torch_states(ids, **changes):
    with torch.no_grad():
        return torch_model(**changes)(torch.tensor(ids)).last_hidden_state.numpy()


def ours(**changes):
    model = torch_model(**changes)
    config, state = model.config.to_dict(), model.state_dict()
    keywords = FAMILY.to_keywords(config, "config")
    table = FAMILY.table(BigBird(**keywords))
    params = {p: names.swap(p, state[n].numpy()) for p, n in table.items()}
    return BigBird(**keywords), {"params": unflatten_dict(params, sep="/")}


def states(encoder, params, ids, lengths):
    apply = functools.partial(encoder.apply, method="hidden_states")
    return jax.jit(apply)(params, jnp.asarray(ids, jnp.int32), jnp.asarray(lengths))


def draw(lengths, t=None, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(5, 97, (len(lengths), t or max(lengths)))


@functools.cache
def first(encoder):
    """Its first parameters."""
    given = jnp.ones((1, 4), jnp.int32), jnp.array([4])
    return jax.jit(encoder.init)(jax.random.key(0), *given)


@pytest.mark.parametrize("length", [1, 704, 705, 1500, 4096])
def test_hidden_states_equal_those_of_torch(length):
    encoder, params = ours()
    ids = draw([length], seed=length)
    got = states(encoder, params, ids, [length])
    assert np.abs(got - torch_states(ids)).max() < 1e-4


def test_every_row_of_a_batch_equals_torch_on_the_row_alone():
    encoder, params = ours(**BLOCKS)
    ids = draw(LENGTHS, t=70)
    got = np.asarray(states(encoder, params, ids, LENGTHS))
    for row, length in enumerate(LENGTHS):
        expected = torch_states(ids[row : row + 1, :length], **BLOCKS)[0]
        assert np.abs(got[row, :length] - expected).max() < 1e-5
        assert (got[row, length:] == 0).all()
    # The oracle sees blocks: with all pairs, the states would be others.
    whole = BigBird(**{f: getattr(encoder, f) for f in SMALL} | {"block": 64})
    assert np.abs(states(whole, params, ids, LENGTHS) - got)[0].max() > 1e-3


def test_the_vector_of_the_first_token_is_its_state():
    keywords = SMALL | dict(pooling="first")
    encoder, ids = BigBird(**keywords), jnp.asarray(draw(LENGTHS), jnp.int32)
    lengths = jnp.asarray(LENGTHS)
    params = first(encoder)
    vectors = jax.jit(encoder.apply)(params, ids, lengths)
    full = states(encoder, params, ids, LENGTHS)
    np.testing.assert_allclose(vectors, full[:, 0], atol=1e-5)


def test_padding_and_neighbours_do_not_change_a_vector():
    """With dropout; without it torch says so of every row of a batch above."""
    encoder = BigBird(**SMALL, attention_dropout=0.1)
    ids, lengths = jnp.asarray(draw(LENGTHS), jnp.int32), jnp.asarray(LENGTHS)
    params = first(encoder)
    keys = jax.random.split(jax.random.key(3), len(LENGTHS))
    together = jax.jit(encoder.apply)(params, ids, lengths, None, keys)
    for row, length in enumerate(LENGTHS[:4]):
        given = ids[row : row + 1, :length], lengths[row : row + 1], None
        got = jax.jit(encoder.apply)(params, *given, keys[row : row + 1])
        assert np.abs(got[0] - together[row]).max() < 1e-5


@jax.jit
def slope(params, ids, lengths):
    def loss(params):
        return (
            BigBird(**SMALL).apply(params, ids, lengths)[0] * jnp.arange(32.0)
        ).sum()

    return jax.grad(loss)(params)


@pytest.mark.parametrize("length", [20, 45])
def test_padding_has_no_gradient(length):
    encoder, t = BigBird(**SMALL), 60
    ids = jnp.asarray(draw([length, t]), jnp.int32).at[0, length:].set(96)
    ids = jnp.where((ids == 96) & (jnp.arange(t) < length), 5, ids).at[1].set(7)
    lengths = jnp.array([length, t])
    gradient = slope(first(encoder), ids, lengths)["params"]["embeddings"]
    assert (gradient["tokens"]["embedding"][96] == 0).all()
    assert (gradient["positions"]["embedding"][length:] == 0).all()
    assert (gradient["positions"]["embedding"][:length] != 0).any(1).all()


def test_gradients_equal_those_of_torch():
    encoder, params = ours(**BLOCKS)
    ids = draw([50])
    weights = np.random.default_rng(1).normal(size=(1, 50, 32)).astype(np.float32)
    model = torch_model(**BLOCKS)
    out = model(torch.tensor(ids)).last_hidden_state
    (out * torch.tensor(weights)).sum().backward()
    table = FAMILY.table(encoder)
    expected = {p: dict(model.named_parameters())[n].grad for p, n in table.items()}

    def loss(params):
        inputs = jnp.asarray(ids, jnp.int32), jnp.array([50])
        return (encoder.apply(params, *inputs, method="hidden_states") * weights).sum()

    gradient = jax.jit(jax.grad(loss))(params)["params"]
    for path, tensor in expected.items():
        got = functools.reduce(dict.__getitem__, path.split("/"), gradient)
        want = names.swap(path, tensor.numpy())
        assert np.abs(got - want).max() < 1e-3 * max(np.abs(want).max(), 0.1), path


def test_the_head_for_masked_tokens_has_the_activation_of_the_encoder():
    torch.manual_seed(0)
    config = transformers.BigBirdConfig(**SIZES | BLOCKS)
    model = transformers.BigBirdForMaskedLM(config).eval()
    state = model.state_dict()
    for name in ("cls.predictions.transform.dense.weight", "cls.predictions.bias"):
        state[name].add_(torch.randn_like(state[name]))
    keywords = FAMILY.to_keywords(config.to_dict(), "config")
    encoder = BigBird(**keywords, masked_lm=True)
    table = FAMILY.table(encoder)
    table = {path: f"bert.{name}" for path, name in table.items()}
    table |= FAMILY.names.masked_lm
    params = {p: names.swap(p, state[n].numpy()) for p, n in table.items()}
    params = {"params": unflatten_dict(params, sep="/")}
    ids, places = draw([40]), np.array([[3, 17, 39]])
    answers = np.array([[5, 6, 7]])
    with torch.no_grad():
        scores = model(torch.tensor(ids)).logits[0, places[0]]
        expected = torch.nn.functional.cross_entropy(
            scores, torch.tensor(answers[0]), reduction="sum"
        )
    inputs = [jnp.asarray(x, jnp.int32) for x in (ids, [40], places, answers)]
    token_loss = jax.jit(functools.partial(encoder.apply, method="token_loss"))
    loss, _ = token_loss(params, inputs[0], inputs[1], None, *inputs[2:])
    assert float(loss) == pytest.approx(float(expected), abs=1e-4)


def test_bfloat16_stays_close():
    ids, lengths = jnp.asarray(draw(LENGTHS), jnp.int32), jnp.asarray(LENGTHS)
    exact, rounded = BigBird(**SMALL), BigBird(**SMALL, dtype="bfloat16")
    params = first(exact)
    a, b = (jax.jit(x.apply)(params, ids, lengths) for x in (exact, rounded))
    assert b.dtype == jnp.float32 and 1e-6 < np.abs(a - b).max() < 0.05


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(block=0), "block 0 and random 1: a block has at least 1 token"),
        (dict(random=-1), "random -1: .* at least 0 random blocks are seen"),
        (dict(positions=60), "64 tokens.*room for 60: lower limits.segment_tokens"),
        (dict(activation="relu"), "relu.*gelu"),
    ],
)
def test_a_wrong_keyword_or_length_is_a_user_error(changes, words):
    ids, lengths = jnp.asarray(draw(LENGTHS), jnp.int32), jnp.asarray(LENGTHS)
    with pytest.raises(UserError, match=words):
        jax.jit(BigBird(**SMALL | changes).init)(jax.random.key(0), ids, lengths)


@pytest.mark.parametrize(
    "field, value, words",
    [
        ("attention_type", "original_full", "'original_full' is not supported"),
        ("use_bias", False, "use_bias False is not supported; only True is"),
        ("rescale_embeddings", True, "rescale_embeddings True is not supported"),
        ("block_size", 0, "block_size is 0, but must be a whole number from 1"),
        ("num_random_blocks", "3", "num_random_blocks is '3', but must be"),
        ("is_decoder", True, "decoders are not supported"),
    ],
)
def test_a_config_that_we_do_not_have_is_one_line(field, value, words):
    config = transformers.BigBirdConfig(**SIZES).to_dict() | {field: value}
    with pytest.raises(UserError, match=f"config.json: .*{words}") as caught:
        FAMILY.to_keywords(config, "config.json")
    assert "\n" not in str(caught.value)
