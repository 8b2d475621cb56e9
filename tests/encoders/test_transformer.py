"""The transformer against Hugging Face's torch models, and its promises on padding."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.huggingface import names, weights
from docjax.huggingface.families import bert
from docjax.huggingface.family import family_of_config

SIZES = dict(
    vocab_size=97,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=66,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
SMALL = dict(
    vocabulary=97,
    layers=2,
    width=32,
    heads=4,
    hidden=64,
    positions=40,
    epsilon=1e-5,
    attention_dropout=0.1,
)
LENGTHS = [1, 7, 33, 16]


def torch_model(kind: str, **changes):
    torch.manual_seed(0)
    if kind == "bert":
        config = transformers.BertConfig(**SIZES | changes)
        model = transformers.BertModel(config, add_pooling_layer=False)
    else:
        sizes = SIZES | {"pad_token_id": 1, "type_vocab_size": 1} | changes
        config = transformers.RobertaConfig(**sizes)
        model = transformers.RobertaModel(config, add_pooling_layer=False)
    for parameter in model.parameters():  # fresh biases are 0 and would hide mistakes
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def ours(model, **changes):
    """Our transformer and its parameters, from a torch model."""
    config = model.config.to_dict()
    family = family_of_config(config, "config")
    keywords = family.to_keywords(config, "config") | changes
    state = model.state_dict()
    table = family.names.table(keywords["layers"])
    params = {p: names.swap(p, state[n].numpy()) for p, n in table.items()}
    return Transformer(**keywords), {"params": unflatten_dict(params, sep="/")}


def rows(lengths=LENGTHS, vocabulary=97, t=None, padding=0, seed=0):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(5, vocabulary, (len(lengths), t or max(lengths)))
    real = np.arange(tokens.shape[1]) < np.array(lengths)[:, None]
    return (
        jnp.asarray(np.where(real, tokens, padding), jnp.int32),
        jnp.asarray(lengths, jnp.int32),
        real,
    )


def states(transformer, params, tokens, lengths):
    apply = functools.partial(transformer.apply, method="hidden_states")
    return jax.jit(apply)(params, tokens, lengths)


def torch_states(model, tokens, real):
    with torch.no_grad():
        out = model(
            torch.tensor(np.array(tokens, np.int64)), attention_mask=torch.tensor(real)
        )
    return out.last_hidden_state.numpy()


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_hidden_states_equal_those_of_torch(kind, activation):
    model = torch_model(kind, hidden_act=activation)
    transformer, params = ours(model)
    tokens, lengths, real = rows(padding=model.config.pad_token_id)
    got = states(transformer, params, tokens, lengths)
    expected = torch_states(model, tokens, real)
    assert np.abs(np.where(real[..., None], got - expected, 0)).max() < 1e-5
    assert (np.asarray(got)[~real] == 0).all()


@pytest.mark.parametrize("pooling", ["first", "mean"])
def test_the_vector_is_the_pooled_hidden_states_of_torch(pooling):
    model = torch_model("roberta")
    transformer, params = ours(model, pooling=pooling)
    tokens, lengths, real = rows(padding=1)
    states = torch_states(model, tokens, real)
    mean = (states * real[..., None]).sum(1) / real.sum(1, keepdims=True)
    expected = states[:, 0] if pooling == "first" else mean
    got = jax.jit(transformer.apply)(params, tokens, lengths)
    assert got.shape == (4, 32)
    assert np.abs(got - expected).max() < 1e-5


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_gradients_equal_those_of_torch(kind):
    model = torch_model(kind)
    transformer, params = ours(model)
    tokens, lengths, real = rows(padding=model.config.pad_token_id)
    weights = np.random.default_rng(1).normal(size=(*tokens.shape, 32))
    weights = (weights * real[..., None]).astype(np.float32)

    def loss(params):
        states = transformer.apply(params, tokens, lengths, method="hidden_states")
        return (states * weights).sum()

    grads = flatten_dict(jax.jit(jax.grad(loss))(params)["params"], sep="/")
    out = model(
        torch.tensor(np.array(tokens, np.int64)), attention_mask=torch.tensor(real)
    )
    (out.last_hidden_state * torch.tensor(weights)).sum().backward()
    found = dict(model.named_parameters())
    for path, name in bert.NAMES.table(3).items():
        expected = names.swap(path, found[name].grad.numpy())
        got = np.array(grads[path])
        if "embeddings" in name:  # torch leaves out the gradient of its padding row
            got[expected == 0] = 0
        error = np.abs(got - expected).max()
        assert error < 1e-4 * max(1, np.abs(expected).max()), path


def masked_model(folder, kind: str):
    """A torch model that predicts masked tokens, and ours with its weights."""
    torch.manual_seed(0)
    if kind == "bert":
        model = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
    else:
        sizes = SIZES | {"pad_token_id": 1, "type_vocab_size": 1}
        model = transformers.RobertaForMaskedLM(transformers.RobertaConfig(**sizes))
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder)
    checkpoint = weights.load(folder, masked_lm=True)
    transformer = Transformer(**checkpoint.keywords | {"masked_lm": True})
    return model.eval(), transformer, {"params": checkpoint.params}


def test_what_all_texts_share_begins_small():
    encoder = Transformer(
        vocabulary=500, layers=1, width=64, heads=2, hidden=8, chunks=99
    )
    tokens = jnp.ones((1, 4), jnp.int32)
    args = tokens, jnp.array([4]), jnp.zeros((1, 2), jnp.int32)
    params = jax.jit(encoder.init)(jax.random.key(0), *args)["params"]["embeddings"]
    spread = lambda name: np.std(params[name]["embedding"])
    assert spread("tokens") == pytest.approx(0.02, rel=0.05)
    assert spread("chunks") == pytest.approx(0.02, rel=0.05)
    assert spread("positions") == pytest.approx(0.002, rel=0.05)
    assert spread("types") == 0


def questions(lengths=LENGTHS) -> tuple[np.ndarray, np.ndarray]:
    """Positions of up to 3 tokens of each row, and the answers; -1 behind the last."""
    generator = np.random.default_rng(4)
    positions = np.zeros((len(lengths), 3), np.int32)
    answers = np.full((len(lengths), 3), -1, np.int32)
    for row, length in enumerate(lengths):
        count = min(row, length, 3)  # none of row 0
        positions[row, :count] = generator.choice(length, count, replace=False)
        answers[row, :count] = generator.integers(5, 97, count)
    return positions, answers


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_token_loss_and_its_gradient_are_those_of_torch(kind, tmp_path):
    model, transformer, params = masked_model(tmp_path, kind)
    tokens, lengths, real = rows(padding=model.config.pad_token_id)
    positions, answers = questions()
    labels = np.full(tokens.shape, -100)
    for row, place in zip(*np.nonzero(answers >= 0)):
        labels[row, positions[row, place]] = answers[row, place]
    out = model(
        torch.tensor(np.array(tokens, np.int64)),
        attention_mask=torch.tensor(real),
        labels=torch.tensor(labels),
    )
    out.loss.backward()

    def loss(params):
        read = tokens, lengths, None, *map(jnp.asarray, (positions, answers))
        return transformer.apply(params, *read, method="token_loss")

    (found, right), vjp = jax.vjp(jax.jit(loss), params)
    count = (answers >= 0).sum()
    assert count == 6
    np.testing.assert_allclose(found / count, out.loss.item(), rtol=1e-5)
    best = out.logits.detach().numpy().argmax(-1)
    assert right == (best == labels)[labels >= 0].sum()

    grads = flatten_dict(vjp((1 / count, 0.0))[0]["params"], sep="/")
    theirs, family = (
        dict(model.named_parameters()),
        family_of_config(model.config.to_dict(), "config"),
    )
    prefix = {"bert": "bert.", "roberta": "roberta."}[kind]
    table = {p: prefix + n for p, n in family.names.table(3).items()}
    for path, name in (table | dict(family.names.masked_lm)).items():
        name = name if name in theirs else "cls.predictions.bias"
        expected = names.swap(path, theirs[name].grad.numpy())
        error = np.abs(np.array(grads[path]) - expected).max()
        assert error < 1e-5 * max(1, np.abs(expected).max()), path


def test_the_token_loss_neither_sees_padding_nor_unused_places():
    transformer = Transformer(**SMALL, masked_lm=True, dropout=0.0)
    lengths = jnp.asarray([0, 7, 20, 16], jnp.int32)
    tokens, _, real = rows(lengths=lengths.tolist(), t=30)
    positions, answers = questions(lengths.tolist())
    made = jax.jit(transformer.init)(jax.random.key(0), tokens, lengths)
    assert set(made["params"]) == {"embeddings", "layer_0", "layer_1", "masked_lm"}

    @jax.jit
    def loss(params, tokens, positions, answers):
        read = tokens, lengths, None, positions, answers
        return transformer.apply(params, *read, method="token_loss")

    expected = loss(made, tokens, positions, answers)
    noisy = jnp.where(real, tokens, 96)
    elsewhere = np.where(answers < 0, 5, positions)
    np.testing.assert_allclose(loss(made, noisy, elsewhere, answers), expected, 1e-6)
    nothing = np.full_like(answers, -1)
    assert loss(made, tokens, positions, nothing) == (0, 0)
    slope = jax.jit(
        jax.grad(lambda params: loss(params, tokens, positions, nothing)[0])
    )(made)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(slope))


def test_a_segment_is_told_by_its_section_and_its_number_inside_it():
    transformer, params = small(sections=2, chunks=3, pooling="mean")
    tokens, lengths, _ = rows(lengths=[7] * 6)
    tokens = jnp.broadcast_to(tokens[:1], tokens.shape)
    places = jnp.asarray([[0, 0], [1, 0], [0, 2], [1, 2], [9, 0], [1, 7]])
    found = jax.jit(transformer.apply)(params, tokens, lengths, places)
    distinct = np.asarray(found[:4])
    for i in range(4):
        for j in range(i):
            assert np.abs(distinct[i] - distinct[j]).max() > 1e-2
    # Numbers beyond a table take its last row.
    np.testing.assert_array_equal(found[4:], found[jnp.array([1, 3])])


def test_tables_of_places_are_left_out_unless_asked_for():
    transformer, params = small()
    assert set(params["params"]["embeddings"]) == {
        *("tokens", "positions", "types", "norm")
    }
    _, placed = small(sections=2, chunks=3)
    shapes = {
        name: placed["params"]["embeddings"][name]["embedding"].shape
        for name in ("sections", "chunks")
    }
    assert shapes == {"sections": (2, 32), "chunks": (3, 32)}
    tokens, lengths, _ = rows()
    places = jnp.full((4, 2), 3)
    apply = jax.jit(transformer.apply)
    np.testing.assert_array_equal(
        apply(params, tokens, lengths, places), apply(params, tokens, lengths)
    )


@functools.cache
def small(**changes):
    """A transformer and its parameters, drawn without compiling its initialisation."""
    transformer = Transformer(**SMALL | changes)
    tokens, lengths, _ = rows()
    read = tokens, lengths, jnp.zeros((len(lengths), 2), int)
    shapes = jax.eval_shape(transformer.init, jax.random.key(0), *read)
    generator = np.random.default_rng(1)

    def draw(path, leaf):
        begin = 1.0 if path[-1].key == "scale" else 0.0
        return jnp.float32(begin + 0.1 * generator.normal(size=leaf.shape))

    return transformer, jax.tree.map_with_path(draw, shapes)


@pytest.mark.parametrize("pooling, dropout", [("first", False), ("mean", True)])
def test_no_gradient_leaks_through_padding(pooling, dropout):
    """A token that occurs only as padding, and positions only padding has, get none.

    A batch without a token has vectors of zeros, and no gradient at all.
    """
    transformer, params = small(pooling=pooling)
    tokens, lengths, real = rows(lengths=[1, 7, 20, 0], t=36, padding=96)
    tokens = jnp.where(real & (tokens == 96), 5, tokens)
    keys = jax.random.split(jax.random.key(3), 4) if dropout else None

    @jax.jit
    def gradient(params, lengths):
        def loss(params):
            vectors = transformer.apply(params, tokens, lengths, None, keys)
            return jnp.square(vectors + 1).sum(), vectors

        return jax.grad(loss, has_aux=True)(params)

    grads = gradient(params, lengths)[0]["params"]["embeddings"]
    assert (grads["tokens"]["embedding"][96] == 0).all()
    assert (grads["positions"]["embedding"][22:] == 0).all()
    assert (grads["positions"]["embedding"][:2] == 0).all()
    assert (grads["positions"]["embedding"][2:22] != 0).any(1).all()
    grads, vectors = gradient(params, jnp.zeros_like(lengths))
    assert (vectors == 0).all()
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(grads))


def test_padding_and_neighbours_do_not_change_a_vector():
    """With dropout; without it torch says so of the pooled hidden states above."""
    transformer, params = small(pooling="mean")
    tokens, lengths, _ = rows()
    keys = jax.random.split(jax.random.key(3), 4)
    apply = jax.jit(transformer.apply)
    together = apply(params, tokens, lengths, None, keys)
    for i, t in ((0, 1), (0, 10), (1, 10)):
        length = LENGTHS[i]
        alone = jnp.full((1, t), 11).at[0, :length].set(tokens[i, :length])
        got = apply(params, alone, lengths[i : i + 1], None, keys[i : i + 1])
        assert np.abs(got[0] - together[i]).max() < 1e-5
    assert np.abs(together[0] - together[1]).max() > 1e-2


@pytest.mark.parametrize("rates", [(0.05, 0.0), (0.0, 0.2)])
def test_each_kind_of_dropout_follows_the_key(rates):
    rates = dict(zip(("dropout", "attention_dropout"), rates))
    transformer, params = small(pooling="mean", **rates)
    tokens, lengths, _ = rows(lengths=[33] * 4)
    tokens = jnp.broadcast_to(tokens[:1], tokens.shape)
    keys = jax.random.split(jax.random.key(0), 4)
    apply = jax.jit(transformer.apply)
    vectors = apply(params, tokens, lengths, None, keys)
    assert (np.abs(vectors[0] - vectors[1:]).max(1) > 1e-3).all()
    again = apply(params, tokens, lengths, None, keys)
    assert (vectors == again).all()


def test_bfloat16_stays_close_and_keeps_float32_outside():
    exact, params = small()
    rounded = Transformer(**SMALL, dtype="bfloat16")
    tokens, lengths, _ = rows()
    a, b = (jax.jit(m.apply)(params, tokens, lengths) for m in (exact, rounded))
    assert b.dtype == jnp.float32
    assert 1e-6 < np.abs(a - b).max() < 0.05
    made = jax.eval_shape(rounded.init, jax.random.key(0), tokens, lengths)
    assert {leaf.dtype for leaf in jax.tree.leaves(made)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(activation="relu"), "relu.*gelu"),
        (dict(pooling="max"), "max.*first, mean"),
        (dict(dtype="float16"), "float16.*bfloat16"),
        (dict(width=30), "30.*4"),
        (dict(dropout=1.0), r"^dropout 1.0 is not in"),
        (dict(attention_dropout=-0.1), r"attention_dropout -0.1 is not in"),
        (dict(attention="flash"), "flash.*auto"),
        (dict(positions=20), "33 tokens.*18"),
    ],
)
def test_a_wrong_keyword_or_length_is_a_user_error(changes, words):
    tokens, lengths, _ = rows()
    with pytest.raises(UserError, match=words):
        jax.jit(Transformer(**SMALL | changes).init)(jax.random.key(0), tokens, lengths)


def test_parameter_paths_and_shapes_are_frozen():
    transformer = Transformer(**SMALL | {"layers": 1})
    tokens, lengths, _ = rows()
    tree = jax.eval_shape(transformer.init, jax.random.key(0), tokens, lengths)
    assert set(tree) == {"params"}
    flat = flatten_dict(tree["params"], sep="/")
    shapes = {path: leaf.shape for path, leaf in flat.items()}
    assert shapes == {
        "embeddings/tokens/embedding": (97, 32),
        "embeddings/positions/embedding": (40, 32),
        "embeddings/types/embedding": (1, 32),
        "embeddings/norm/scale": (32,),
        "embeddings/norm/bias": (32,),
        "layer_0/attention/query/kernel": (32, 32),
        "layer_0/attention/query/bias": (32,),
        "layer_0/attention/key/kernel": (32, 32),
        "layer_0/attention/key/bias": (32,),
        "layer_0/attention/value/kernel": (32, 32),
        "layer_0/attention/value/bias": (32,),
        "layer_0/attention/output/kernel": (32, 32),
        "layer_0/attention/output/bias": (32,),
        "layer_0/attention/norm/scale": (32,),
        "layer_0/attention/norm/bias": (32,),
        "layer_0/feed_forward/inner/kernel": (32, 64),
        "layer_0/feed_forward/inner/bias": (64,),
        "layer_0/feed_forward/outer/kernel": (64, 32),
        "layer_0/feed_forward/outer/bias": (32,),
        "layer_0/feed_forward/norm/scale": (32,),
        "layer_0/feed_forward/norm/bias": (32,),
    }
