"""Doc2vecC: predict a word from those around it and from words of its document.

Chen, "Efficient Vector Representation for Documents through Corruption", 2017; DECA,
Eq. 1 to 3 and 6. How rows of the tables are updated is in `training/rows.py`.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from docjax.config import UserError

CONTEXTS = ("left", "shrunk", "full")
CHUNK = 32  # words whose contexts are one product of matrices


class Rows(NamedTuple):
    """Rows of the two tables that one block reads."""

    words: Float[Array, "w d"]  # of U, zero for padding
    drawn: Float[Array, "p s d"]  # of U
    targets: Float[Array, "w d"]  # of V
    noise: Float[Array, "k d"]  # of V


@dataclasses.dataclass(frozen=True)
class NegativeSampling:
    """The loss of a word: -log s(v . u) - sum over k noise words of log s(-v_n . u).

    u is made of the vectors of the word's context and of the mean of `sample` words of
    its document, drawn anew for every word: an unbiased estimate of the document's
    mean (corruption). Noise words are drawn from the word counts to the power 0.75.

    Attributes:
      window: words on one side.
      negatives: k.
      sample: words of the document in one estimate.
      context: "full": all words within the window; "shrunk": within a window drawn
        from 1..window for each word, as in Word2Vec; "left": as the authors' code has
        it, the words from t - window + b to t - b with b drawn from 0..window - 1, so
        that some words are predicted from their document alone.
      combine: "mean" of the context's words and the estimate, or "sum" as in Eq. 2.
      pool: words drawn from a document of a block, of which estimates are made.
      shared: noise words drawn for all words of a block; each counts k / shared.
      contrastive: `infonce` or `simsiam` over the vectors of the documents and of
        their paraphrases, or nothing; the views give the paraphrases.
      weight: lambda, of the contrastive loss; 0 is Doc2vecC.
    """

    window: int = 5
    negatives: int = 5
    sample: int = 5
    context: str = "left"
    combine: str = "mean"
    pool: int = 16
    shared: int = 16
    contrastive: Callable | None = None
    weight: float = 0.5

    def __post_init__(self) -> None:
        if self.context not in CONTEXTS or self.combine not in ("mean", "sum"):
            raise UserError(
                f"negative_sampling has context {', '.join(map(repr, CONTEXTS))}, not "
                f"{self.context!r}, and combine 'mean' or 'sum', not {self.combine!r}"
            )
        sizes = {n: getattr(self, n) for n in ("window", "negatives", "shared", "pool")}
        if min(*sizes.values(), self.weight + 1) < 1 or not 1 <= self.sample:
            raise UserError(
                f"negative_sampling has {sizes}, sample {self.sample} and weight "
                f"{self.weight}: counts must be at least 1, the weight 0"
            )

    @property
    def drawn(self) -> int:
        """Words drawn from each document of a block."""
        return max(self.pool, self.sample)

    def loss(
        self,
        rows: Rows,
        words: Int[Array, " w"],
        pieces: Int[Array, " w"],
        noise: Int[Array, " k"],
        key: jax.Array,
    ) -> Float[Array, ""]:
        """The sum of the losses of a block's words.

        words: ids, 0 for padding; pieces: which document of the block each is of;
        noise: ids of the noise words, which are no noise for themselves.
        """
        real = words > 0
        draws, shrink = jax.random.split(key)
        context, counts = self._context(rows.words, real, shrink)
        u = self._estimates(rows.drawn, pieces, draws) + context
        if self.combine == "mean":
            u = u / (counts + 1)[:, None]
        found = jax.nn.softplus(-(u * rows.targets).sum(-1))
        wrong = jax.nn.softplus(u @ rows.noise.T) * (words[:, None] != noise)
        return ((found + wrong.sum(-1) * (self.negatives / len(noise))) * real).sum()

    def _estimates(
        self,
        drawn: Float[Array, "p s d"],
        pieces: Int[Array, " w"],
        key: jax.Array,
    ) -> Float[Array, "w d"]:
        """For each word the mean of `sample` of the words drawn from its document:
        those from a random one on, in a circle."""
        p, s, _ = drawn.shape
        ahead = (jnp.arange(s) - jnp.arange(s)[:, None]) % s
        circle = (ahead < self.sample) / self.sample
        means = jnp.einsum("ij,pjd->pid", circle, drawn).reshape(p * s, -1)
        return means[pieces * s + jax.random.randint(key, pieces.shape, 0, s)]

    def _context(
        self, words: Float[Array, "w d"], real: Bool[Array, " w"], key: jax.Array
    ) -> tuple[Float[Array, "w d"], Float[Array, " w"]]:
        """The sum of the vectors in each word's window, and how many they are.

        A product with a band matrix, in chunks, each with the words around it.
        """
        w, d = words.shape
        chunk = max(CHUNK, self.window)
        n = -(-w // chunk)
        within = self._band((n, chunk), key)
        flat = jnp.concatenate([words, real[:, None].astype(words.dtype)], axis=1)
        flat = jnp.pad(flat, ((0, n * chunk - w), (0, 0))).reshape(n, chunk, d + 1)
        edge = jnp.zeros_like(flat[:1])
        before = jnp.concatenate([edge, flat[:-1]])[:, chunk - self.window :]
        after = jnp.concatenate([flat[1:], edge])[:, : self.window]
        around = flat if self.context == "left" else jnp.concatenate([flat, after], 1)
        around = jnp.concatenate([before, around], 1)
        found = jnp.einsum("nij,njd->nid", within, around).reshape(n * chunk, d + 1)[:w]
        return found[:, :d], found[:, d]

    def _band(self, shape: tuple[int, int], key: jax.Array) -> Float[Array, "n i j"]:
        """1 where word j, counted from `window` before a chunk, is in the window of
        word i of the chunk."""
        chunk, full = shape[1], self.context != "left"
        distance = jnp.arange(chunk + self.window * (1 + full)) - self.window
        distance = distance - jnp.arange(chunk)[:, None]
        drawn = jax.random.randint(key, (*shape, 1), 0, self.window)
        if self.context == "left":
            near = (distance >= drawn - self.window) & (distance <= -drawn)
        else:
            reach = self.window - (drawn if self.context == "shrunk" else 0)
            near = jnp.abs(distance) <= reach
        near = near & (distance != 0)
        return jnp.broadcast_to(near, (*shape, distance.shape[1])).astype(jnp.float32)
