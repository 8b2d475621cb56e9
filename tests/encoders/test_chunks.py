"""The chunk encoder: attention against NumPy, the BiLSTM against PyTorch."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.lstm import last_states
from docjax.errors import UserError
from docjax.types import Graphs

V, B, P, D, HEADS, HIDDEN, WIDTH = 3, 4, 5, 8, 2, 12, 6
COUNTS = np.array(
    [[5, 1, 2, 4], [3, 5, 1, 0], [1, 2, 5, 3]]
)  # chunks; one view has none
SMALL = dict(width=WIDTH, heads=HEADS, hidden=HIDDEN)
GATES = "ifgo"  # in the order in which PyTorch stacks them


def given(views: int = V) -> tuple:
    """Chunk vectors with noise behind the last chunk, and lengths."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(views, B, P, D)).astype(np.float32)
    lengths = np.where(np.arange(P) < COUNTS[:views, :, None], 7, 0)
    return jnp.asarray(vectors), jnp.asarray(lengths)


def placed(vectors, lengths) -> tuple:
    """With the places of the chunks, which this encoder does not look at."""
    return vectors, lengths, jnp.zeros((*lengths.shape, 2), int)


@functools.cache
def params(attention: str = "literal"):
    """Parameters of ordinary size, biases too."""
    module = ChunkEncoder(**SMALL, attention=attention)
    init = functools.partial(module.init, method="views")
    shapes = jax.eval_shape(init, jax.random.key(0), *placed(*given()), Graphs())
    generator = np.random.default_rng(1)
    draw = lambda leaf: generator.normal(0, 0.5, leaf.shape).astype(np.float32)
    return jax.tree.map(draw, shapes["params"])


def views(attention, vectors, lengths, keys=None, own=None, **changes):
    module = ChunkEncoder(**SMALL | changes, attention=attention)
    variables = {"params": own or params(attention)}
    read = *placed(vectors, lengths), Graphs(), keys
    return module.apply(variables, *read, method="views")


def documents(vectors, lengths):
    read = jax.jit(ChunkEncoder(**SMALL).apply)
    return read({"params": params()}, vectors, lengths)


def attended(asking, seen):
    """What the chunks of one view take from those of another, head by head."""
    own = jax.tree.map(lambda a: a.astype(np.float64), params()["attend"])
    q = asking @ own["query"]["kernel"]
    k, v = (seen @ own[name]["kernel"] for name in ("key", "value"))
    taken, wide = np.zeros((len(asking), D)), D // HEADS
    for head in range(HEADS):
        part = slice(head * wide, (head + 1) * wide)
        for i in range(len(asking)):
            scores = [q[i, part] @ row[part] / wide**0.5 for row in k]
            weights = np.exp(scores) / np.exp(scores).sum()
            taken[i, part] = sum(w * row[part] for w, row in zip(weights, v))
    return taken @ own["output"]["kernel"]


def direction(name, chunks):
    """The last state of an LSTM over the chunks in this order."""
    own = {
        part: {key: np.asarray(a, np.float64) for key, a in leaf.items()}
        for part, leaf in params()[name].items()
    }
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    cell = state = np.zeros(HIDDEN // 2)
    for chunk in chunks:
        i, f, g, o = (
            chunk @ own[f"i{gate}"]["kernel"]
            + state @ own[f"h{gate}"]["kernel"]
            + own[f"h{gate}"]["bias"]
            for gate in GATES
        )
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
    return state


def by_hand(chunks):
    """The vector of one view from its chunks as they are after attention."""
    project = params()["project"]
    states = [direction("forwards", chunks), direction("backwards", chunks[::-1])]
    out = np.concatenate(states) @ project["kernel"] + project["bias"]
    return out / np.linalg.norm(out)


@pytest.mark.parametrize("attention", ["literal", "cyclic"])
@pytest.mark.parametrize("count", [2, 3])
def test_a_view_takes_from_the_next_one_as_the_paper_says(attention, count):
    vectors, lengths = given(count)
    found = jax.jit(functools.partial(views, attention))(vectors, lengths)
    for b in range(B):
        chunks = [np.asarray(vectors[v, b, : COUNTS[v, b]]) for v in range(count)]
        for v, own in enumerate(chunks):
            seen = chunks[(v + 1) % count]
            last = v + 1 == count and attention == "literal"
            if len(seen) and not last:
                own = own + attended(own, seen)
            np.testing.assert_allclose(found[v, b], by_hand(own), atol=2e-6)


def test_with_full_attention_a_view_takes_from_all_views():
    vectors, lengths = given()
    found = jax.jit(functools.partial(views, "full"))(vectors, lengths)
    for b in range(B):
        chunks = [np.asarray(vectors[v, b, : COUNTS[v, b]]) for v in range(V)]
        seen = np.concatenate(chunks)
        for v, own in enumerate(chunks):
            if len(own):
                expected = by_hand(own + attended(own, seen))
                np.testing.assert_allclose(found[v, b], expected, atol=2e-6)


def test_attention_between_two_sections_gives_chunks_and_weights():
    vectors, _ = given()
    asking, seen = np.asarray(vectors[0, 0]), np.asarray(vectors[1, 0, :3])
    module = ChunkEncoder(**SMALL)
    cross = jax.jit(functools.partial(module.apply, method="cross_attention"))
    chunks, weights = cross({"params": params()}, asking, seen, np.ones(3, bool))
    np.testing.assert_allclose(chunks, asking + attended(asking, seen), atol=1e-5)
    assert weights.shape == (P, 3)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)
    # A chunk that is seen twice gets half of the weight each time.
    twice = np.repeat(seen, 2, axis=0)
    _, twice = cross({"params": params()}, asking, twice, np.ones(6, bool))
    np.testing.assert_allclose(twice[:, ::2] + twice[:, 1::2], weights, atol=1e-6)


def test_without_states_a_view_is_the_mean_of_its_chunks():
    vectors, lengths = given()
    module = ChunkEncoder(width=WIDTH, hidden=0, attention="none")
    read = *placed(vectors, lengths), Graphs()
    init = jax.jit(functools.partial(module.init, method="views"))
    own = init(jax.random.key(0), *read)["params"]
    assert set(own) == {"project"}
    found = module.apply({"params": own}, *read, method="views")
    mean = np.asarray(vectors)[2, 0, :1].mean(0) @ own["project"]["kernel"]
    np.testing.assert_allclose(found[2, 0], mean / np.linalg.norm(mean), atol=1e-6)
    mean = np.asarray(vectors)[0, 3, :4].mean(0) @ own["project"]["kernel"]
    np.testing.assert_allclose(found[0, 3], mean / np.linalg.norm(mean), atol=1e-6)


def test_without_attention_and_for_a_single_view_a_view_is_a_document():
    vectors, lengths = given()
    bare = {name: part for name, part in params().items() if name != "attend"}
    read = jax.jit(views, static_argnums=0)
    found = read("none", vectors, lengths, own=bare)
    expected = documents(vectors, lengths)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    for attention in ("literal", "cyclic"):
        alone = read(attention, vectors[:1], lengths[:1], own=params())
        np.testing.assert_allclose(alone, expected[:1], atol=1e-6)


def test_states_and_gradients_are_those_of_torchs_bidirectional_lstm():
    torch = pytest.importorskip("torch")
    lstm = torch.nn.LSTM(D, HIDDEN // 2, batch_first=True, bidirectional=True)
    own = {name: params()[name] for name in ("forwards", "backwards")}
    gates = lambda of, letter, what: np.concatenate(
        [of[letter + gate][what].T for gate in GATES]
    )
    places = {  # where torch has what a cell names by letter and what
        f"{kind}_l0{suffix}": (name, letter, what)
        for name, suffix in (("forwards", ""), ("backwards", "_reverse"))
        for kind, letter, what in (
            ("weight_ih", "i", "kernel"),
            ("weight_hh", "h", "kernel"),
            ("bias_hh", "h", "bias"),
        )
    }
    with torch.no_grad():
        for place, (name, *of_gates) in places.items():
            getattr(lstm, place).copy_(torch.tensor(gates(own[name], *of_gates)))
        lstm.bias_ih_l0.zero_()  # torch has two biases that it adds
        lstm.bias_ih_l0_reverse.zero_()
    vectors, lengths = (array[0] for array in given(1))
    weigh = np.random.default_rng(7).normal(size=(B, HIDDEN)).astype(np.float32)
    theirs = torch.tensor(np.asarray(vectors), requires_grad=True)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        theirs, torch.tensor(COUNTS[0]), True, enforce_sorted=False
    )
    _, (last, _) = lstm(packed)
    states = torch.cat([last[0], last[1]], -1)
    (states * torch.tensor(weigh)).sum().backward()

    def loss(cells, rows):
        both = cells["forwards"], cells["backwards"]
        found = last_states(rows, lengths > 0, both)
        return (found * weigh).sum(), found

    compute = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))
    (of_cells, of_rows), found = compute(own, vectors)
    np.testing.assert_allclose(found, states.detach(), atol=2e-6)
    np.testing.assert_allclose(of_rows, theirs.grad, atol=5e-6)
    for place, (name, *of_gates) in places.items():
        gradient = gates(jax.tree.map(np.asarray, of_cells[name]), *of_gates)
        np.testing.assert_allclose(gradient, getattr(lstm, place).grad, atol=1e-5)


@pytest.mark.parametrize("attention", ["literal", "cyclic", "full", "none"])
def test_padding_never_changes_a_vector_and_gets_exactly_no_gradient(attention):
    vectors, lengths = given()
    read = jax.jit(functools.partial(views, attention))
    padded = np.asarray(lengths == 0)
    noise = 100 * np.random.default_rng(5).normal(size=vectors.shape)
    noisy = jnp.where(padded[..., None], noise, vectors).astype(jnp.float32)
    np.testing.assert_array_equal(read(vectors, lengths), read(noisy, lengths))
    wide = np.pad(vectors, [(0, 0)] * 2 + [(0, 3), (0, 0)])
    more = read(jnp.asarray(wide), jnp.pad(lengths, [(0, 0)] * 2 + [(0, 3)]))
    np.testing.assert_allclose(more, read(vectors, lengths), atol=1e-6)

    weigh = np.random.default_rng(6).normal(size=(V, B, WIDTH))
    loss = lambda v: (read(v, lengths) * weigh).sum()
    gradient = jax.jit(jax.grad(loss))(noisy)
    assert (gradient[padded] == 0).all()
    assert (np.abs(gradient[~padded]).max(-1) > 0).all()


def test_a_document_with_a_single_chunk_and_without_any():
    vectors, lengths = given()
    one = documents(vectors[0, :, :1], lengths[0, :, :1])
    for b in range(B):
        expected = by_hand(np.asarray(vectors[0, b, :1]))
        np.testing.assert_allclose(one[b], expected, atol=2e-6)
    module = ChunkEncoder(**SMALL)
    query = module.apply({"params": params()}, vectors[0, :, 0], method="query")
    np.testing.assert_allclose(query, one, atol=1e-6)
    none = lambda v: documents(v, jnp.zeros_like(lengths[0]))
    assert np.isfinite(none(vectors[0])).all()
    gradient = jax.jit(jax.grad(lambda v: none(v).sum()))(vectors[0])
    assert (gradient == 0).all()


def test_dropout_is_of_an_example_and_follows_its_key():
    vectors, lengths = given()
    keys = jax.random.split(jax.random.key(0), B)
    read = jax.jit(functools.partial(views, "literal", dropout=0.5))
    dropped, plain = read(vectors, lengths, keys), read(vectors, lengths)
    np.testing.assert_array_equal(dropped, read(vectors, lengths, keys))
    assert ((np.abs(dropped - plain).max(-1) > 1e-3) == (COUNTS[:V] > 0)).all()
    order = np.array([2, 0, 3, 1])
    other = read(vectors[:, order], lengths[:, order], keys[order])
    np.testing.assert_allclose(other, dropped[:, order], atol=1e-6)


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(attention="next"), "attention 'next' is not one of literal, cyclic"),
        (dict(hidden=7), "hidden 7 is not even"),
        (dict(heads=3), "width 8 do not divide over 3 heads"),
    ],
)
def test_a_wrong_keyword_is_a_user_error(keywords, message):
    module = ChunkEncoder(**SMALL | keywords)
    read = *placed(*given()), Graphs()
    with pytest.raises(UserError, match=message):
        module.init(jax.random.key(0), *read, method="views")
