"""Optimizers that touch only the used rows of a table, and sums over groups of rows.

A gradient lists row numbers and the values of each row; a row may occur several times.
A dense optimizer would read and write the whole table for every block of words.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.data.word_blocks import Groups
from docjax.errors import UserError
from docjax.kernels import row_sums

Table = Float[Array, "n d"]


class Gradient(NamedTuple):
    """The gradient of a loss with respect to rows of a table."""

    rows: Int[Array, "*e"]  # a number beyond the table is ignored
    values: Float[Array, "*e d"]


@dataclasses.dataclass(frozen=True)
class Adagrad:
    """Adagrad with one statistic per row.

    The statistic is the sum over all earlier gradients of their mean square over the
    row. If a row occurs several times in a block, each gradient counts separately: the
    squares are summed, not the gradients.
    """

    learning_rate: float = 0.1
    epsilon: float = 1e-8
    adds_up = True

    def __post_init__(self) -> None:
        _check("adagrad", self.learning_rate)

    def init(self, table: Table) -> Any:
        return jnp.zeros(len(table), jnp.float32)

    def update(
        self,
        table: Table,
        squares: Any,
        gradients: Sequence[Gradient],
        decay: Float[Array, ""],
    ) -> tuple[Table, Any]:
        for rows, values in gradients:
            mean = row_sums(values**2) / values.shape[-1]
            squares = squares.at[rows].add(mean, mode="drop")
        rate = self.learning_rate * decay
        for rows, values in gradients:
            scale = rate * jax.lax.rsqrt(squares[rows] + self.epsilon)
            table = table.at[rows].add(-scale[..., None] * values, mode="drop")
        return table, squares


class Moments(NamedTuple):
    mean: Table
    square: Table
    counts: Float[Array, " n"]  # the number of updates of each row


@dataclasses.dataclass(frozen=True)
class Adam:
    """Adam whose moments and counts follow the updates of each row.

    A row that is not used keeps its moments.
    """

    adds_up = False  # moments cannot be added
    learning_rate: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        _check("adam", self.learning_rate)

    def init(self, table: Table) -> Any:
        zeros = jnp.zeros_like(table)
        return Moments(zeros, zeros, jnp.zeros(len(table), jnp.float32))

    def update(
        self,
        table: Table,
        moments: Any,
        gradients: Sequence[Gradient],
        decay: Float[Array, ""],
    ) -> tuple[Table, Any]:
        rows, values = merged(gradients, len(table))
        old = jax.tree.map(lambda array: array[rows], moments)
        mean = self.b1 * old.mean + (1 - self.b1) * values
        square = self.b2 * old.square + (1 - self.b2) * values**2
        counts = old.counts + 1
        unbiased = lambda moment, b: moment / (1 - b ** counts[:, None])
        root = jnp.sqrt(unbiased(square, self.b2))
        step = unbiased(mean, self.b1) / (root + self.epsilon)
        put = lambda array, new: array.at[rows].set(new, mode="drop")
        moments = jax.tree.map(put, moments, Moments(mean, square, counts))
        rate = self.learning_rate * decay
        return table.at[rows].add(-rate * step, mode="drop"), moments


def merged(gradients: Sequence[Gradient], size: int) -> Gradient:
    """The gradient with each row once, and the sum of the row's values.

    Unused places at the end hold row `size`, which is beyond the table: write the
    result with mode="drop".
    """
    flat = [(g.rows.ravel(), g.values.reshape(g.rows.size, -1)) for g in gradients]
    rows, values = map(jnp.concatenate, zip(*flat, strict=True))
    order = jnp.argsort(rows)
    rows, values = rows[order], values[order]
    first = jnp.concatenate([jnp.ones(1, bool), rows[1:] != rows[:-1]])
    place = jnp.cumsum(first) - 1
    sums = jax.ops.segment_sum(values, place, len(rows), indices_are_sorted=True)
    return Gradient(jnp.full_like(rows, size).at[place].set(rows), sums)


def group_sums(table: Table, views: Groups) -> Float[Array, "v b d"]:
    """The sum of the vectors of each document's words."""

    def add(i, sums):
        # Sum each group first: this is many times faster than adding single rows.
        of_groups = sum(table[words] for words in views.words[i].T)
        return sums.at[views.owners[i]].add(of_groups)

    sums = jnp.zeros((views.lengths.size + 1, table.shape[1]))
    sums = jax.lax.fori_loop(0, views.used, add, sums)
    return sums[:-1].reshape(*views.lengths.shape, table.shape[1])


def group_gradient(
    of_sums: Float[Array, "v b d"], views: Groups, size: int
) -> Gradient:
    """The gradient of a table of `size` rows from the gradient of the group sums.

    Each row occurs once. The sum fills an array as large as the table, once per step.
    """
    of_word = jnp.pad(of_sums.reshape(-1, of_sums.shape[-1]), ((0, 1), (0, 0)))

    def add(i, total):
        return total.at[views.words[i]].add(of_word[views.owners[i]][:, None])

    total = jnp.zeros((size, of_sums.shape[-1]), of_sums.dtype)
    total = jax.lax.fori_loop(0, views.used, add, total)
    in_use = jnp.zeros(size, bool).at[views.words].set(True)
    return Gradient(jnp.where(in_use, jnp.arange(size), size), total)


def _check(name: str, learning_rate: float) -> None:
    if learning_rate <= 0:
        raise UserError(
            f"{name} has learning_rate {learning_rate}: give a number above 0"
        )
