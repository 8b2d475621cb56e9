"""The perceptron of a probe, and its training on the vectors of a frozen encoder."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from docjax.encoders.weight_decay import decays
from docjax.kernels import EXACT


class Perceptron(nn.Module):
    """Vectors to scores of classes (SimLTE and DocSplit, section 4: "an MLP").

    The papers do not give the layers: dropout and a linear layer, and before these
    `hidden_layers` times dropout, a linear layer of `width` numbers and tanh, as
    RoBERTa's classification head has them.
    """

    classes: int
    hidden_layers: int
    width: int
    dropout: float

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "b d"], train: bool = False
    ) -> Float[Array, "b {self.classes}"]:
        """`train` turns dropout on, which needs a key of the name "dropout"."""
        for _ in range(self.hidden_layers):
            dropped = nn.Dropout(self.dropout)(vectors, deterministic=not train)
            vectors = nn.tanh(nn.Dense(self.width, precision=EXACT)(dropped))
        vectors = nn.Dropout(self.dropout)(vectors, deterministic=not train)
        return nn.Dense(self.classes, precision=EXACT)(vectors)


@functools.partial(jax.jit, static_argnums=0)
def trained(
    model: Perceptron,
    learning_rate: Float[Array, ""],
    weight_decay: Float[Array, ""],
    vectors: Float[Array, "c d"],
    labels: Int[Array, " c"],
    held: Int[Array, " _"],
    order: Int[Array, "_ _ b"],
    key: jax.Array,
) -> Any:
    """The parameters after the best epoch, by the rows `held`; all are one program.

    `order` has the rows that each step of each epoch reads; -1 is none.
    """
    optimizer = optax.adamw(learning_rate, weight_decay=weight_decay, mask=decays)

    def step(state, rows):
        params, moments, key = state
        key, of_step = jax.random.split(key)
        gradient = jax.grad(_loss)(params, model, vectors, labels, rows, of_step)
        updates, moments = optimizer.update(gradient, moments, params)
        return (optax.apply_updates(params, updates), moments, key), None

    def epoch(carry, order):
        state, best, most = carry
        state, _ = jax.lax.scan(step, state, order)
        right = (predicted(model, state[0], vectors[held]) == labels[held]).sum()
        keep = lambda new, old: jnp.where(right >= most, new, old)
        best = jax.tree.map(keep, state[0], best)
        return (state, best, jnp.maximum(right, most)), None

    key, start = jax.random.split(key)
    params = model.init(start, vectors[:1])["params"]
    state = params, optimizer.init(params), key
    (_, best, _), _ = jax.lax.scan(epoch, (state, params, 0), order)
    return best


def _loss(params, model, vectors, labels, rows, key) -> Float[Array, ""]:
    """The mean cross-entropy of the documents at `rows`; -1 is none."""
    given = {"params": params}, vectors[rows]
    scores = model.apply(*given, train=True, rngs={"dropout": key})
    losses = optax.softmax_cross_entropy_with_integer_labels(scores, labels[rows])
    real = rows >= 0
    return jnp.where(real, losses, 0).sum() / real.sum()


@functools.partial(jax.jit, static_argnums=0)
def predicted(
    model: Perceptron, params: Any, vectors: Float[Array, "c d"]
) -> Int[Array, " c"]:
    """The class of the highest score."""
    return model.apply({"params": params}, vectors).argmax(-1)
