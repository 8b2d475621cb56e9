"""The probe learns what a linear one cannot, keeps its best epoch, and repeats itself."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.sparse

from docjax.encoders import perceptron
from docjax.encoders.perceptron import Perceptron
from docjax.errors import UserError
from docjax.parts.named import build
from docjax.tasks.classification import Linear
from docjax.tasks.probe import Probe
from docjax.types import Embeddings


def corners(count: int, seed: int) -> Embeddings:
    """Exclusive or: the label is whether two signs differ."""
    generator = np.random.default_rng(seed)
    signs = generator.choice([-1.0, 1.0], (count, 2))
    vectors = signs + 0.1 * generator.normal(size=(count, 2))
    labels = np.where(signs.prod(1) < 0, "differ", "same")
    return Embeddings(vectors.astype(np.float32), labels.tolist())


def test_a_hidden_layer_learns_what_a_linear_probe_cannot():
    train, test = corners(400, 0), corners(200, 1)
    options = dict(width=32, learning_rate=0.01, epochs=20)
    assert Probe(**options).score(train, test) == {"accuracy": 1.0, "macro_f1": 1.0}
    assert Probe(hidden_layers=0, **options).score(train, test)["accuracy"] < 0.8
    assert Linear().score(train, test)["accuracy"] < 0.8


def test_an_epoch_is_the_steps_of_optax_one_by_one():
    """A weight decay that is large enough to see: kernels have it, biases do not."""
    train = corners(10, 0)
    sizes = dict(width=3, batch=4, epochs=2)
    task = Probe(**sizes, dropout=0.0, weight_decay=100.0, held_out=0.0)
    model = Perceptron(2, 1, 3, 0.0)
    labels = np.array([name == "same" for name in train.labels], np.int32)
    found = task._fit(model, train.vectors, labels)
    vectors = jnp.asarray(train.vectors)
    generator = np.random.default_rng(0)
    rows = generator.permutation(10)
    _, start = jax.random.split(jax.random.key(0))
    params = model.init(start, vectors[:1])["params"]
    kernels = {f"Dense_{i}": {"kernel": True, "bias": False} for i in range(2)}
    optimizer = optax.adamw(3e-4, weight_decay=100.0, mask=kernels)
    moments = optimizer.init(params)

    def loss(params, rows):
        scores = jax.jit(model.apply)({"params": params}, vectors[rows])
        one_hot = jnp.asarray(labels)[rows][:, None] == jnp.arange(2)
        return -(jax.nn.log_softmax(scores) * one_hot).sum(1).mean()

    @jax.jit
    def step(params, moments, rows):
        gradient = jax.jit(jax.grad(loss))(params, rows)
        updates, moments = optimizer.update(gradient, moments, params)
        return optax.apply_updates(params, updates), moments

    for _ in range(2):
        order = generator.permutation(rows)
        for part in (order[:4], order[4:8], order[8:]):  # the last has two rows
            params, moments = step(params, moments, part)
    for mine, expected in zip(*map(jax.tree.leaves, (found, params)), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-6)


def test_the_epoch_with_the_most_right_held_out_predictions_is_kept():
    """With a rate that grows worse, later epochs lose what the first one had."""
    train, test = corners(300, 0), corners(200, 1)
    options = dict(width=32, learning_rate=2.0, dropout=0.5, batch=4, seed=3)
    chosen = Probe(epochs=12, held_out=0.3, **options).score(train, test)
    last = Probe(epochs=12, held_out=0.0, **options).score(train, test)
    assert chosen["accuracy"] > last["accuracy"] + 0.05


def test_a_document_is_left_to_train_on(monkeypatch):
    orders = []
    monkeypatch.setattr(perceptron, "trained", lambda *given: orders.append(given[6]))
    Probe(held_out=0.99)._fit(
        Perceptron(2, 0, 1, 0.0), np.zeros((8, 2), "f"), np.zeros(8, np.int32)
    )
    assert (orders[0] >= 0).sum() == 10  # one document in each of ten epochs


def test_the_seed_decides():
    train, test = corners(60, 0), corners(200, 1)
    scores = [Probe(epochs=2, seed=seed).score(train, test) for seed in (0, 0, 1)]
    assert scores[0] == scores[1] != scores[2]


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(hidden_layers=3), "hidden_layers=3: give 0, 1 or 2"),
        (dict(batch=0), "batch=0: give at least 1"),
        (dict(held_out=1.0), r"held_out=1.0 is not in \[0, 1\)"),
        (dict(learning_rate=0.0), "learning_rate=0.0: give more than 0"),
        (dict(weight_decay=-1.0), "weight_decay=-1.0: give 0 or more"),
    ],
)
def test_impossible_keywords_are_refused(keywords, message):
    with pytest.raises(UserError, match=message):
        build({"fn": "docjax.tasks.probe.Probe"} | keywords)


def test_vectors_that_cannot_be_read_are_refused():
    train = corners(10, 0)
    sparse = train._replace(vectors=scipy.sparse.csr_matrix(train.vectors))
    with pytest.raises(UserError, match="2 sparse numbers"):
        Probe().score(sparse, sparse)
    with pytest.raises(UserError, match="label 'x'"):
        Probe().score(train._replace(labels=["x"] * 10), train)
    broken = train._replace(vectors=np.full_like(train.vectors, np.nan))
    with pytest.raises(UserError, match="not finite"):
        Probe().score(train, broken)
