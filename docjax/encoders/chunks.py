"""Chunk vectors to one document vector: attention between sections, then a BiLSTM.

CoLDE, section 3.3. In training every view is a section and attends to the next section.
A whole document is encoded without attention, as one sequence of chunks.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from docjax.encoders.document_defaults import DocumentDefaults
from docjax.encoders.dropout import dropout
from docjax.encoders.lstm import Cell, last_states
from docjax.errors import UserError
from docjax.kernels import EXACT, unit

ATTENTIONS = ("literal", "cyclic", "full", "none")
DROPOUT_SITE = 1


class ChunkEncoder(DocumentDefaults):
    """The last states of a BiLSTM over a document's chunks, projected to length 1.

    attention: how the chunks of a view attend to the next view. "literal" leaves the
    last view unchanged, as the paper prints it; "cyclic" lets the last view attend to
    the first; "full" lets every view attend to the chunks of all views; "none" turns
    attention off. hidden: the size of both states together; 0: the mean of the chunks
    in place of a BiLSTM.
    """

    width: int = 256
    heads: int = 4
    hidden: int = 512
    attention: str = "literal"
    dropout: float = 0.1

    exported_as = "ChunkEncoder"

    @property
    def joins_views(self) -> bool:
        return self.attention != "none"

    def setup(self) -> None:
        if self.attention not in ATTENTIONS:
            raise UserError(
                f"encoder.document.attention {self.attention!r} is not one of "
                f"{', '.join(ATTENTIONS)}"
            )
        if self.hidden % 2:
            raise UserError(
                f"hidden {self.hidden} is not even, but two directions share it: set "
                f"encoder.document.hidden to {self.hidden + 1}"
            )
        if self.joins_views:
            self.attend = ChunkAttention(self.heads, name="attend")
        if self.hidden:
            self.forwards = nn.OptimizedLSTMCell(self.hidden // 2)
            self.backwards = nn.OptimizedLSTMCell(self.hidden // 2)
        self.project = nn.Dense(self.width, precision=EXACT, name="project")

    def __call__(
        self, vectors: Float[Array, "*s p d"], lengths: Int[Array, "*s p"], *unused: Any
    ) -> Float[Array, "*s f"]:
        """Document vectors without attention; segments of length 0 are ignored."""
        return self._aggregated(vectors, lengths > 0, None)

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s f"]:
        """Query vectors: a query is a document of one chunk."""
        real = jnp.ones((*vectors.shape[:-1], 1), bool)
        return self._aggregated(vectors[..., None, :], real, None)

    def views(self, vectors, lengths, places, graphs, keys=None):
        del places, graphs
        real = lengths > 0
        vectors = jnp.where(real[..., None], vectors, 0)
        if self.joins_views:
            vectors = vectors + self._taken(vectors, real) * (len(vectors) > 1)
        return self._aggregated(vectors, real, keys)

    def cross_attention(
        self,
        queries: Float[Array, "p d"],
        keys: Float[Array, "q d"],
        real: Bool[Array, " q"],
    ) -> tuple[Float[Array, "p d"], Float[Array, "p q"]]:
        """The chunks of one section after attention to those of another section, and
        the weights of that attention, the mean over the heads.

        `real` says which keys are chunks. `docjax compare` shows both for two documents.
        """
        taken, weights = self.attend(*(x[None, None] for x in (queries, keys, real)))
        return queries + taken[0, 0], weights[0, 0]

    def _taken(self, vectors, real) -> Float[Array, "v b p d"]:
        """What the chunks of each view take from the chunks that they attend to."""
        if self.attention == "literal" and len(vectors) > 1:
            taken, _ = self.attend(vectors[:-1], vectors[1:], real[1:])
            return jnp.concatenate([taken, jnp.zeros_like(vectors[-1:])])
        seen = _all if self.attention == "full" else _next
        return self.attend(vectors, seen(vectors), seen(real))[0]

    def _aggregated(self, vectors, real, keys) -> Float[Array, "*s f"]:
        states = self._states(vectors, real) if self.hidden else _mean(vectors, real)
        if keys is not None:  # states are [v b f], with one key per example
            by_example = jnp.moveaxis(states, 0, 1)
            by_example = dropout(by_example, keys, DROPOUT_SITE, self.dropout)
            states = jnp.moveaxis(by_example, 1, 0)
        return unit(self.project(states))

    def _states(self, vectors, real) -> Float[Array, "*s f"]:
        """The last state forwards beside the last state backwards; 0 without chunks."""
        *shape, p, d = vectors.shape
        cells = self._own(self.forwards, d), self._own(self.backwards, d)
        states = last_states(vectors.reshape(-1, p, d), real.reshape(-1, p), cells)
        return states.reshape(*shape, -1)

    def _own(self, cell: nn.OptimizedLSTMCell, width: int) -> Cell:
        """The parameters of a cell, which are made at its first call."""
        if self.is_initializing():
            state = jnp.zeros((1, self.hidden // 2))
            cell((state, state), jnp.zeros((1, width)))
        return cell.variables["params"]


class ChunkAttention(nn.Module):
    """Multi-head attention of the chunks of one section to those of another.

    Gives what each chunk takes, and the weights as the mean over the heads.
    """

    heads: int

    @nn.compact
    def __call__(
        self,
        asking: Float[Array, "v b p d"],
        seen: Float[Array, "v b q d"],
        real: Bool[Array, "v b q"],
    ) -> tuple[Float[Array, "v b p d"], Float[Array, "v b p q"]]:
        d = asking.shape[-1]
        if d % self.heads:
            raise UserError(
                f"chunks of width {d} do not divide over {self.heads} heads: set "
                f"encoder.document.heads to a divisor of {d}"
            )
        split = lambda x: x.reshape(*x.shape[:-1], self.heads, d // self.heads)
        dense = lambda name: nn.Dense(d, use_bias=False, precision=EXACT, name=name)
        q, k = split(dense("query")(asking)), split(dense("key")(seen))
        v = split(dense("value")(seen))
        scores = jnp.einsum("vbphk,vbqhk->vbhpq", q, k, precision=EXACT)
        scores = scores / (d // self.heads) ** 0.5
        mask = real[:, :, None, None]
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
        weights = jnp.where(mask, weights, 0)  # a section without chunks adds zero
        out = jnp.einsum("vbhpq,vbqhk->vbphk", weights, v, precision=EXACT)
        return dense("output")(out.reshape(asking.shape)), weights.mean(2)


def _next(views: Array) -> Array:
    """Each view replaced by the next view, and the last view by the first."""
    return jnp.roll(views, -1, axis=0)


def _all(views: Array) -> Array:
    """For each view, the chunks of all views side by side."""
    joined = jnp.concatenate(list(views), axis=1)
    return jnp.broadcast_to(joined, (len(views), *joined.shape))


def _mean(vectors, real) -> Float[Array, "*s d"]:
    """The mean of the real chunks; 0 without chunks."""
    total = jnp.where(real[..., None], vectors, 0).sum(-2)
    return total / jnp.maximum(real.sum(-1, keepdims=True), 1)
