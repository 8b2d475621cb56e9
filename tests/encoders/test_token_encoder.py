"""Longformer, ModernBERT and T5 against Hugging Face's torch models; their promises.

`test_transformer.py` has the same for BERT and RoBERTa. The oracle is a fresh model that
reads one row without padding.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flax.traverse_util import flatten_dict, unflatten_dict
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.encoders import attention, blocks
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.t5 import T5, buckets
from docjax.errors import UserError
from docjax.huggingface import names, weights
from docjax.huggingface.family import family_of_config

SIZES = dict(
    vocab_size=97,
    hidden_size=32,
    num_attention_heads=4,
    intermediate_size=48,
)
CONFIGS = {
    "longformer": lambda: transformers.LongformerConfig(
        **SIZES,
        num_hidden_layers=2,
        max_position_embeddings=4098,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        attention_window=[8, 16],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    ),
    "modernbert": lambda: transformers.ModernBertConfig(
        **SIZES,
        num_hidden_layers=3,  # the last layer has a window
        local_attention=16,
        **{f"{name}_token_id": 0 for name in ("pad", "bos", "eos", "cls", "sep")},
    ),
    "t5": lambda: transformers.T5Config(
        vocab_size=97,
        d_model=32,
        num_heads=3,  # no divisor of the width
        d_kv=6,
        d_ff=48,
        num_layers=2,
        relative_attention_max_distance=50,
        dropout_rate=0.0,
    ),
}
SMALL = dict(vocabulary=97, width=32, heads=4, hidden=48)
MODULES = {
    "longformer": Longformer(**SMALL, layers=2, window=(8, 16)),
    "modernbert": ModernBert(**SMALL, layers=3, window=16),
    "t5": T5(**SMALL | dict(heads=3), layers=2, head_width=6),
}
KINDS = tuple(CONFIGS)
WITH_HEADS = "longformer", "modernbert"
LENGTHS = [1, 7, 70, 32]
DROPS = dict(dropout=0.1, attention_dropout=0.1)


def torch_model(kind: str, cls=transformers.AutoModel):
    torch.manual_seed(0)
    make = transformers.T5EncoderModel if kind == "t5" else cls.from_config
    model = make(CONFIGS[kind]()).eval()
    for parameter in model.parameters():  # fresh biases are 0 and would hide mistakes
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model


def global_mask(kind: str, tokens) -> dict:
    """What makes transformers' Longformer look at all tokens from the first one."""
    if kind != "longformer":
        return {}
    mask = torch.zeros(tokens.shape, dtype=torch.long)
    mask[:, 0] = 1
    return {"global_attention_mask": mask}


def torch_states(kind, model, tokens):
    ids = torch.tensor(np.array(tokens, np.int64))
    seen = torch.ones_like(ids)
    return model(ids, attention_mask=seen, **global_mask(kind, ids)).last_hidden_state


def ours(model):
    """Our encoder and its parameters, from a torch model."""
    config = model.config.to_dict()
    family = family_of_config(config, "config")
    encoder = family.module(**family.to_keywords(config, "config"))
    state, table = model.state_dict(), family.table(encoder)
    params = {path: names.swap(path, state[n].numpy()) for path, n in table.items()}
    return encoder, {"params": unflatten_dict(params, sep="/")}, table


def rows(lengths=LENGTHS, t=None, padding=96, seed=0):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(5, 96, (len(lengths), t or max(lengths)))
    real = np.arange(tokens.shape[1]) < np.array(lengths)[:, None]
    tokens = np.where(real, tokens, padding)
    return jnp.asarray(tokens, jnp.int32), jnp.asarray(lengths, jnp.int32), real


def states(encoder, params, tokens, lengths):
    apply = functools.partial(encoder.apply, method="hidden_states")
    return jax.jit(apply)(params, tokens, lengths)


@functools.cache
def small(kind: str, **changes):
    """An encoder and its parameters, drawn without compiling its initialisation."""
    encoder = MODULES[kind].clone(**changes)
    shapes = jax.eval_shape(encoder.init, jax.random.key(0), *rows([5])[:2])
    generator = np.random.default_rng(1)

    def draw(path, leaf):
        begin = 1.0 if path[-1].key == "scale" else 0.0
        return jnp.float32(begin + 0.1 * generator.normal(size=leaf.shape))

    return encoder, jax.tree.map_with_path(draw, shapes)


@pytest.fixture
def short_blocks(monkeypatch):
    """So that rows of a few tokens are read in several blocks."""
    monkeypatch.setattr(attention, "LONG", 16)
    monkeypatch.setattr(blocks, "BLOCK", 16)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_states_equal_those_of_torch_at_every_length(kind):
    model = torch_model(kind)
    encoder, params, _ = ours(model)
    longest = {"longformer": 4096, "modernbert": 8192, "t5": 512}[kind]
    for length in (1, 130, longest):
        tokens, lengths, _ = rows([length])
        got = states(encoder, params, tokens, lengths)
        with torch.no_grad():
            expected = torch_states(kind, model, tokens).numpy()
        assert np.abs(got - expected).max() < 1e-5, length
    with pytest.raises(UserError, match=f"{longest + 1} tokens.*room for {longest}"):
        states(encoder, params, *rows([longest + 1])[:2])


@pytest.mark.parametrize("kind", KINDS)
def test_the_vector_is_the_pooled_hidden_states_of_torch(kind, short_blocks):
    model = torch_model(kind)
    encoder, params, _ = ours(model)
    tokens, lengths, _ = rows()
    for pooling in ("first", "mean"):
        apply = jax.jit(encoder.clone(pooling=pooling).apply)
        got = apply(params, tokens, lengths)
        for row, length in enumerate(LENGTHS):
            with torch.no_grad():
                alone = torch_states(kind, model, tokens[row : row + 1, :length])[0]
            expected = alone[0] if pooling == "first" else alone.mean(0)
            assert np.abs(got[row] - expected.numpy()).max() < 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_those_of_torch(kind, short_blocks):
    model = torch_model(kind)
    encoder, params, table = ours(model)
    tokens, lengths, _ = rows([70])
    weigh = np.random.default_rng(1).normal(size=(1, 70, 32)).astype(np.float32)

    def loss(params):
        found = encoder.apply(params, tokens, lengths, method="hidden_states")
        return (found * weigh).sum()

    grads = flatten_dict(jax.jit(jax.grad(loss))(params)["params"], sep="/")
    (torch_states(kind, model, tokens) * torch.tensor(weigh)).sum().backward()
    theirs = dict(model.named_parameters())
    assert set(grads) == set(table)
    for path, name in table.items():
        expected = names.swap(path, theirs[name].grad.numpy())
        error = np.abs(np.array(grads[path]) - expected).max()
        assert error < 1e-4 * max(1, np.abs(expected).max()), path


@pytest.mark.parametrize("kind", WITH_HEADS)
def test_the_token_loss_and_the_right_tokens_are_those_of_torch(kind, tmp_path):
    model = torch_model(kind, transformers.AutoModelForMaskedLM)
    model.save_pretrained(tmp_path)
    checkpoint = weights.load(tmp_path, masked_lm=True)
    encoder = checkpoint.family.module(**checkpoint.keywords, masked_lm=True)
    assert set(checkpoint.params["masked_lm"]) == {"dense", "norm", "bias"}
    tokens, lengths, _ = rows([70])
    ids = torch.tensor(np.array(tokens, np.int64))
    given = dict(attention_mask=torch.ones_like(ids), **global_mask(kind, ids))
    with torch.no_grad():
        logits = model(ids, **given).logits
        best = logits.argmax(-1)[0, 3].item()
        labels = torch.full((1, 70), -100)
        labels[0, [3, 69, 0]] = torch.tensor([best, 8, 9])
        expected = model(ids, **given, labels=labels).loss.item()
    positions, answers = jnp.array([[3, 69, 0, 9]]), jnp.array([[best, 8, 9, -1]])
    read = tokens, lengths, None, positions, answers
    token_loss = jax.jit(functools.partial(encoder.apply, method="token_loss"))
    loss, right = token_loss({"params": checkpoint.params}, *read)
    np.testing.assert_allclose(loss / 3, expected, rtol=1e-5)
    assert right == (logits.argmax(-1) == labels).sum().item() >= 1


@pytest.mark.parametrize("kind", KINDS)
def test_padding_and_neighbours_do_not_change_a_vector(kind, short_blocks):
    """With dropout; without it torch says so of the pooled hidden states above."""
    encoder, params = small(kind, pooling="mean", **DROPS)
    tokens, lengths, _ = rows()
    keys = jax.random.split(jax.random.key(3), 4)
    apply = jax.jit(encoder.apply)
    together = apply(params, tokens, lengths, None, keys)
    for i, t in ((0, 33), (1, 7), (3, 33)):
        length = LENGTHS[i]
        alone = jnp.full((1, t), 11).at[0, :length].set(tokens[i, :length])
        got = apply(params, alone, lengths[i : i + 1], None, keys[i : i + 1])
        assert np.abs(got[0] - together[i]).max() < 1e-5
    assert np.abs(together[0] - together[1]).max() > 1e-2


@pytest.mark.parametrize("pooling, dropout", [("first", False), ("mean", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_leaks_through_padding(kind, pooling, dropout, short_blocks):
    """A token that occurs only as padding, and positions only padding has, get none."""
    encoder, params = small(kind, pooling=pooling, **DROPS)
    tokens, lengths, _ = rows([1, 7, 40, 0], t=60)
    keys = jax.random.split(jax.random.key(3), 4) if dropout else None

    @jax.jit
    def gradient(params, lengths):
        def loss(params):
            vectors = encoder.apply(params, tokens, lengths, None, keys)
            return jnp.square(vectors + 1).sum(), vectors

        return jax.grad(loss, has_aux=True)(params)

    grads = gradient(params, lengths)[0]["params"]["embeddings"]
    assert (grads["tokens"]["embedding"][96] == 0).all()
    assert (grads["tokens"]["embedding"][tokens[2, 39]] != 0).any()
    if kind == "longformer":
        assert (grads["positions"]["embedding"][42:] == 0).all()
        assert (grads["positions"]["embedding"][2:42] != 0).any(1).all()
    grads, vectors = gradient(params, jnp.zeros_like(lengths))  # no row is used
    assert (vectors == 0).all()
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("kind", KINDS)
def test_an_unused_row_gives_zero_and_no_gradient(kind):
    """Without blocks; in blocks the test above says so."""
    encoder, params = small(kind, pooling="mean")
    tokens, lengths = rows([40])[0], jnp.zeros(1, jnp.int32)

    def loss(params):
        vectors = encoder.apply(params, tokens, lengths)
        return (vectors * jnp.arange(1.0, 33.0)).sum(), vectors

    grads, vectors = jax.jit(jax.grad(loss, has_aux=True))(params)
    assert (vectors == 0).all()
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("rates", [(0.05, 0.0), (0.0, 0.2)])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_dropout_follows_the_key(kind, rates):
    drops = dict(zip(("dropout", "attention_dropout"), rates))
    encoder, params = small(kind, pooling="mean", **drops)
    tokens, lengths, _ = rows([33] * 4)
    tokens = jnp.broadcast_to(tokens[:1], tokens.shape)
    keys = jax.random.split(jax.random.key(0), 4)
    vectors = jax.jit(encoder.apply)(params, tokens, lengths, None, keys)
    assert (np.abs(vectors[0] - vectors[1:]).max(1) > 1e-3).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_stays_close_and_keeps_float32_outside(kind):
    exact, params = small(kind)
    rounded = exact.clone(dtype="bfloat16")
    tokens, lengths, _ = rows()
    a, b = (jax.jit(m.apply)(params, tokens, lengths) for m in (exact, rounded))
    assert b.dtype == jnp.float32
    assert 1e-6 < np.abs(a - b).max() < 0.1
    made = jax.eval_shape(rounded.init, jax.random.key(0), tokens, lengths)
    assert {leaf.dtype for leaf in jax.tree.leaves(made)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("kind", KINDS)
def test_word_vectors_follow_the_vector(kind):
    encoder, params = small(kind, words=3)
    tokens, lengths, _ = rows([9])
    found = jax.jit(encoder.apply)(params, tokens, lengths)
    alone = jax.jit(encoder.clone(words=0).apply)(params, tokens, lengths)
    assert found.shape == (1, 35)
    np.testing.assert_array_equal(found[:, :32], alone)


@pytest.mark.parametrize(
    "kind, changes, words",
    [
        ("longformer", dict(window=7), "window 7 is not an even number"),
        ("longformer", dict(window=(8,)), "1 numbers for 2 layers"),
        ("longformer", dict(window=(8, 16, 8)), "3 numbers for 2 layers"),
        ("longformer", dict(attention="flash"), "flash.*auto"),
        ("longformer", dict(positions=20), "33 tokens.*18"),
        ("modernbert", dict(window=0), "window 0 is below 1"),
        ("modernbert", dict(global_every=0), "global_every 0 is below 1"),
        ("modernbert", dict(heads=32), "odd width of a head"),
        ("modernbert", dict(positions=20), "33 tokens.*20"),
        ("modernbert", dict(attention_dropout=1.0), "attention_dropout 1.0"),
        ("modernbert", dict(projection_activation="relu"), "relu.*identity, tanh"),
        ("t5", dict(positions=20), "33 tokens.*20"),
        ("t5", dict(masked_lm=True), "no head for masked tokens"),
        ("t5", dict(activation="gelu"), "gelu.*relu"),
        ("t5", dict(buckets=2), "2 buckets for distances up to 128: give a multiple"),
        ("t5", dict(farthest=8), "32 buckets for distances up to 8: give"),
    ],
)
def test_a_wrong_keyword_or_length_is_a_user_error(kind, changes, words):
    with pytest.raises(UserError, match=words):
        encoder = MODULES[kind].clone(**changes)
        jax.eval_shape(encoder.init, jax.random.key(0), *rows([33])[:2])


@pytest.mark.parametrize(
    "kind, count, some",
    [
        ("longformer", 49, {"layer_1/attention/first/key/kernel": (32, 32)}),
        ("modernbert", 20, {"layer_2/attention/qkv/kernel": (32, 96)}),
        ("t5", 19, {"layer_1/attention/query/kernel": (32, 18)}),
    ],
)
def test_parameter_paths_and_shapes_are_frozen(kind, count, some):
    tree = jax.eval_shape(MODULES[kind].init, jax.random.key(0), *rows([9])[:2])
    shapes = {p: x.shape for p, x in flatten_dict(tree["params"], sep="/").items()}
    assert some.items() <= shapes.items() and len(shapes) == count
    assert "layer_0/attention/norm/scale" not in shapes or kind != "modernbert"


@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_a_dense_layer_follows_the_pooling_and_leaves_unused_rows_zero(activation):
    encoder, params = small("t5", projection=5, projection_activation=activation)
    tokens, lengths, _ = rows([9, 0])
    found = jax.jit(encoder.apply)(params, tokens, lengths)
    pooled = jax.jit(encoder.clone(projection=0).apply)(params, tokens, lengths)
    layer = params["params"]["projection"]
    expected = pooled[0] @ layer["kernel"] + layer["bias"]
    expected = np.tanh(expected) if activation == "tanh" else expected
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert (found[1] == 0).all() and (np.abs(layer["bias"]) > 0).all()


@pytest.mark.parametrize("count, farthest", [(32, 128), (128, 50), (8, 20), (4, 2)])
def test_the_buckets_of_t5_are_those_of_torch(count, farthest):
    distance = torch.arange(90) - torch.arange(90)[:, None]
    expected = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket(
        distance, num_buckets=count, max_distance=farthest
    )
    np.testing.assert_array_equal(buckets(90, count, farthest), expected.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_devices_share_the_rows_and_send_each_other_nothing(kind, short_blocks):
    """As inference calls the encoder: XLA divides the loop over blocks by rows."""
    encoder, params = small(kind, pooling="mean")
    tokens, lengths, _ = rows([40, 1, 7, 33, 0, 20, 40, 9])
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    by_rows = lambda x: jax.device_put(x, NamedSharding(mesh, P("data")))
    given = by_rows(tokens), by_rows(lengths)
    whole = jax.device_put(params, NamedSharding(mesh, P()))
    program = jax.jit(encoder.apply).lower(whole, *given).compile()
    collectives = "all-gather|all-reduce|all-to-all|collective-permute"
    assert not re.search(collectives, program.as_text())
    expected = jax.jit(encoder.apply)(params, tokens, lengths)
    np.testing.assert_allclose(program(whole, *given), expected, atol=1e-5)
