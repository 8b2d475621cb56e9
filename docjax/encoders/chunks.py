"""Chunk vectors to one document vector: attention between sections, then a BiLSTM.

CoLDE, section 3.3. In training every view is a section and sees the next one; a whole
document is read without attention, as one sequence of chunks.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from docjax.encoders.dropout import dropout
from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.types import Graphs

ATTENTIONS = ("literal", "cyclic", "none")
DROPOUT_SITE = 1


class ChunkEncoder(nn.Module):
    """The direction of the last states of a BiLSTM over a document's chunks.

    attention: of the chunks of a view to those of the next view. "literal" leaves the
    last view as it is, as the paper prints it; "cyclic" lets it see the first one;
    "none" leaves the attention out. hidden: of the LSTM, both directions together.
    """

    width: int = 256
    heads: int = 4
    hidden: int = 512
    attention: str = "literal"
    dropout: float = 0.1

    sparse = False
    attends = False

    def setup(self) -> None:
        if self.attention not in ATTENTIONS:
            raise UserError(
                f"attention {self.attention!r} is none of {', '.join(ATTENTIONS)}"
            )
        if self.hidden % 2:
            raise UserError(
                f"hidden {self.hidden} is not even: two directions share it"
            )
        if self.attention != "none":
            self.attend = ChunkAttention(self.heads, name="attend")
        cell = lambda name: nn.OptimizedLSTMCell(self.hidden // 2, name=name)
        self.run_forwards = nn.RNN(cell("forwards"), return_carry=True)
        self.run_backwards = nn.RNN(
            cell("backwards"), return_carry=True, reverse=True, keep_order=True
        )
        self.project = nn.Dense(self.width, precision=EXACT, name="project")

    def __call__(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        places: Int[Array, "*s p 2"] | None = None,
        graphs: Graphs | None = None,
    ) -> Float[Array, "*s f"]:
        """Document vectors without attention; segments of length 0 are not there."""
        del places, graphs
        return self._aggregated(vectors, lengths > 0, None)

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s f"]:
        """Query vectors: a query is a document of one chunk."""
        real = jnp.ones((*vectors.shape[:-1], 1), bool)
        return self._aggregated(vectors[..., None, :], real, None)

    def views(
        self,
        vectors: Float[Array, "v b p d"],
        lengths: Int[Array, "v b p"],
        places: Int[Array, "v b p 2"],
        graphs: Graphs,
        keys: Key[Array, " b"] | None = None,
    ) -> Float[Array, "v b f"]:
        """The vectors of the sections of a document, each with a look at the next."""
        del places, graphs
        real = lengths > 0
        vectors = jnp.where(real[..., None], vectors, 0)
        if self.attention != "none":
            taken = self.attend(vectors, _next(vectors), _next(real))
            if self.attention == "literal" and len(vectors) > 1:
                taken = taken.at[-1].set(0)
            vectors = vectors + taken * (len(vectors) > 1)
        return self._aggregated(vectors, real, keys)

    def _aggregated(
        self,
        vectors: Float[Array, "*s p d"],
        real: Bool[Array, "*s p"],
        keys: Key[Array, " b"] | None,
    ) -> Float[Array, "*s f"]:
        shape, (p, d) = vectors.shape[:-2], vectors.shape[-2:]
        rows, counts = vectors.reshape(-1, p, d), real.reshape(-1, p).sum(-1)
        read = dict(seq_lengths=jnp.maximum(counts, 1))
        with jax.default_matmul_precision("highest"):  # the cells take no precision
            (_, last), _ = self.run_forwards(rows, **read)
            (_, first), _ = self.run_backwards(rows, **read)
        states = jnp.concatenate([last, first], axis=-1)
        states = jnp.where(counts[:, None] > 0, states, 0).reshape(*shape, -1)
        if keys is not None:  # [v b f]: a key is one example's
            by_example = jnp.moveaxis(states, 0, 1)
            by_example = dropout(by_example, keys, DROPOUT_SITE, self.dropout)
            states = jnp.moveaxis(by_example, 1, 0)
        return unit(self.project(states))


class ChunkAttention(nn.Module):
    """Multi-head attention of the chunks of one section to those of another."""

    heads: int

    @nn.compact
    def __call__(
        self,
        asking: Float[Array, "v b p d"],
        seen: Float[Array, "v b p d"],
        real: Bool[Array, "v b p"],
    ) -> Float[Array, "v b p d"]:
        d = asking.shape[-1]
        if d % self.heads:
            raise UserError(
                f"chunks of width {d} do not divide over {self.heads} heads"
            )
        split = lambda x: x.reshape(*x.shape[:-1], self.heads, d // self.heads)
        dense = lambda name: nn.Dense(d, use_bias=False, precision=EXACT, name=name)
        q, k, v = (
            split(dense(name)(x))
            for name, x in (("query", asking), ("key", seen), ("value", seen))
        )
        scores = (
            jnp.einsum("vbphk,vbqhk->vbhpq", q, k, precision=EXACT)
            / (d // self.heads) ** 0.5
        )
        mask = real[:, :, None, None]
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
        weights = jnp.where(mask, weights, 0)  # of a section without chunks: nothing
        out = jnp.einsum("vbhpq,vbqhk->vbphk", weights, v, precision=EXACT)
        return dense("output")(out.reshape(asking.shape))


def _next(views: Array) -> Array:
    """The next view in each view's place, the first in that of the last."""
    return jnp.roll(views, -1, axis=0)
