"""Doc2vecC: predict a word from those around it and from words of its document.

Chen, "Efficient Vector Representation for Documents through Corruption", 2017; DECA,
Eq. 1 to 3 and 6. How rows of the tables are updated is in `training/rows.py`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from docjax.errors import UserError
from docjax.kernels import EXACT, materialize, row_sums

CONTEXTS = ("left", "shrunk", "full")
DRAWS = 4


class Rows(NamedTuple):
    """Rows of the two tables that one block reads.

    A block lies in columns: its word t is at place t % i of column t // i. So a shift
    by one word is a shift of whole rows of memory.
    """

    words: Float[Array, "i n d"]  # of U, zero for padding
    drawn: Float[Array, "p s d"]  # of U
    targets: Float[Array, "i n d"]  # of V
    noise: Float[Array, "i k d"]  # of V


@dataclasses.dataclass(frozen=True)
class NegativeSampling:
    """The loss of a word: -log s(v . u) - sum over k noise words of log s(-v_n . u).

    u is made of the vectors of the word's context and of the mean of `sample` words of
    its document: an unbiased estimate of the mean over the kept words (corruption).
    Noise words are drawn from the word counts to the power 0.75. `data/word_blocks.py`
    makes all draws.

    Attributes:
      window: words on one side.
      negatives: k; those of a word are shared by the words at the same place of the
        other columns, which are far from it.
      sample: words of the document in one estimate. DRAWS times as many are drawn from
        a document for each block; `sample` of them in a circle are one estimate, and
        every word takes one at random: close to a draw for every word. They are drawn
        from the words that `subsample` leaves in.
      context: "full": all words within the window; "shrunk": within a window drawn
        from 1..window, as in Word2Vec; "left": as the authors' code has it, the words
        from t - window + b to t - b with b drawn from 0..window - 1, so that some words
        are predicted from their document alone. The draw is one for a block.
      combine: "mean" of the context's words and the estimate, or "sum" as in Eq. 2.
      subsample: t of Word2Vec. A word that is the share f of all words is read, each
        time, with probability sqrt(t / f) + t / f; otherwise the document is trained on
        as if it were not there. Frequent words stay shorter vectors for it, and weigh
        less in a document. The contrastive loss reads all words. 0 leaves none out.
      contrastive: `infonce` or `simsiam` over the vectors of the documents and of
        their paraphrases, or nothing; the views give the paraphrases.
      weight: lambda, of the contrastive loss; 0 is Doc2vecC.
      head_learning_rate: of Adam, for a predictor.
      replicas: of the tables. Each reads its part of the documents of a step, those of
        different devices (GPUs, or cores of a CPU) at the same time; then their changes
        are added up. What is learnt depends on their number, not on that of the devices,
        which must divide it; 8 with 512 documents each do not learn.
    """

    window: int = 5
    negatives: int = 5
    sample: int = 5
    context: str = "left"
    combine: str = "mean"
    subsample: float = 1e-3
    contrastive: Callable | None = None
    weight: float = 0.25
    head_learning_rate: float = 1e-3
    replicas: int = 1

    def __post_init__(self) -> None:
        if self.context not in CONTEXTS or self.combine not in ("mean", "sum"):
            raise UserError(
                f"negative_sampling has context {', '.join(map(repr, CONTEXTS))}, not "
                f"{self.context!r}, and combine 'mean' or 'sum', not {self.combine!r}"
            )
        counts = ("window", "negatives", "sample", "replicas")
        sizes = {name: getattr(self, name) for name in counts}
        whole = all(isinstance(size, int) and size > 0 for size in sizes.values())
        if not whole or min(self.weight, self.subsample) < 0:
            raise UserError(
                f"negative_sampling has {sizes}, weight {self.weight} and subsample "
                f"{self.subsample}: counts must be at least 1 and whole, the others at least 0"
            )
        if self.head_learning_rate <= 0:
            raise UserError(
                f"negative_sampling has head_learning_rate {self.head_learning_rate}: "
                "give one above 0"
            )

    @property
    def drawn(self) -> int:
        """Words drawn from each document of a block."""
        return DRAWS * self.sample

    def chances(self, counts: Int[np.ndarray, " w"]) -> Float[np.ndarray, " w"]:
        """Of each word to be read, 1 at most, by its occurrences."""
        ratio = self.subsample * counts.sum() / np.maximum(counts, 1)
        return np.minimum(np.sqrt(ratio) + ratio, 1.0)

    def gradient(
        self,
        rows: Rows,
        words: Int[Array, "i n"],
        estimates: Int[Array, "i n"],
        noise: Int[Array, "i k"],
        window: Int[Array, ""],
    ) -> tuple[Float[Array, ""], Rows]:
        """The sum of the losses of a block's words, and its gradient.

        Written out: what jax.grad makes of the windows and draws takes far longer.

        words: ids, 0 for padding; estimates: which of the p * s that `drawn` gives each
        word takes; noise: ids of the noise words, which are no noise for themselves;
        window: number of one of `windows`.
        """
        real = (words > 0).astype(jnp.float32)
        context, counts = self._context(rows.words, real, window)
        means = self._estimates(rows.drawn)
        share = 1 / (counts + 1) if self.combine == "mean" else jnp.ones_like(counts)
        u = materialize((context + means[estimates]) * share[..., None])

        weights = (words[:, None] != noise[..., None]) * real[:, None]
        loss, of_right, of_wrong = _scores(u, rows, real, weights)
        # The factors of both products lie as they are multiplied fastest.
        turned = materialize(of_wrong.swapaxes(1, 2))
        of_u = jnp.einsum("ink,ikd->ind", turned, rows.noise, precision=EXACT)
        of_u = materialize(
            (of_u + of_right[..., None] * rows.targets) * share[..., None]
        )
        found = Rows(
            words=self._spread(of_u, window) * real[..., None],
            drawn=self._return(of_u, estimates, rows.drawn.shape),
            targets=of_right[..., None] * u,
            noise=jnp.einsum("ikn,ind->ikd", of_wrong, u, precision=EXACT),
        )
        return loss, found

    @property
    def windows(self) -> list[tuple[int, int]]:
        """First and last place of each window that is drawn, counted from the word."""
        w = self.window
        if self.context == "full":
            return [(-w, w)]
        if self.context == "shrunk":
            return [(-reach, reach) for reach in range(1, w + 1)]
        return [(b - w, -b) for b in range(w)]

    def _context(
        self,
        words: Float[Array, "i n d"],
        real: Float[Array, "i n"],
        window: Int[Array, ""],
    ) -> tuple[Float[Array, "i n d"], Float[Array, "i n"]]:
        """The sum of the vectors in each word's window, and how many they are."""
        sums = [
            lambda pair, ends=ends: tuple(_around(one, *ends) for one in pair)
            for ends in self.windows
        ]
        context, counts = jax.lax.switch(window, sums, (words, real[..., None]))
        return context, counts[..., 0]

    def _spread(
        self, gradient: Float[Array, "i n d"], window: Int[Array, ""]
    ) -> Float[Array, "i n d"]:
        """The gradient of the words from that of the contexts they are in."""
        sums = [
            lambda one, first=first, last=last: _around(one, -last, -first)
            for first, last in self.windows
        ]
        return jax.lax.switch(window, sums, gradient)

    def _estimates(self, drawn: Float[Array, "p s d"]) -> Float[Array, "_ d"]:
        """Means of `sample` of the words drawn from a document.

        One for every place in the circle of its draws: of those from there on.
        """
        p, s, d = drawn.shape
        circle = jnp.concatenate([drawn, drawn[:, : self.sample - 1]], axis=1)
        return self._sums(circle, s).reshape(p * s, d) / self.sample

    def _return(
        self,
        gradient: Float[Array, "i n d"],
        estimates: Int[Array, "i n"],
        shape: tuple[int, int, int],
    ) -> Float[Array, "p s d"]:
        """The gradient of the words drawn from that of the estimates."""
        p, s, d = shape
        flat = gradient.reshape(-1, d)
        sums = jax.ops.segment_sum(flat, estimates.ravel(), p * s).reshape(shape)
        circle = jnp.concatenate([sums[:, s - self.sample + 1 :], sums], axis=1)
        return self._sums(circle, s) / self.sample

    def _sums(self, circle: Float[Array, "p l d"], s: int) -> Float[Array, "p {s} d"]:
        """Of `sample` rows from each of the first `s` on."""
        return sum(circle[:, k : k + s] for k in range(self.sample))


def _scores(
    u: Float[Array, "i n d"],
    rows: Rows,
    real: Float[Array, "i n"],
    weights: Float[Array, "i k n"],
) -> tuple[Float[Array, ""], Float[Array, "i n"], Float[Array, "i k n"]]:
    """The loss, and its gradient of the products of u with targets and with noise."""
    right = row_sums(u * rows.targets)
    wrong = jnp.einsum("ikd,ind->ikn", rows.noise, u, precision=EXACT)
    loss = (jax.nn.softplus(-right) * real).sum()
    loss += (jax.nn.softplus(wrong) * weights).sum()
    return loss, -jax.nn.sigmoid(-right) * real, jax.nn.sigmoid(wrong) * weights


def _around(
    vectors: Float[Array, "i n d"], first: int, last: int
) -> Float[Array, "i n d"]:
    """For each word the sum of those from `first` to `last` around it, but itself."""
    if last < first:
        return jnp.zeros_like(vectors)
    i, n, d = vectors.shape
    before, after = max(-first, 0), max(last, 0)
    # Every column with the words around it; a block's end is padding, so that its
    # first word may have it before.
    places = np.arange(-before, i + after)[:, None] + i * np.arange(n)
    places = places % (i * n)
    wide = vectors.reshape(i * n, d)[places % i * n + places // i]
    parts = [wide[before + place :][:i] for place in range(first, last + 1) if place]
    return functools.reduce(jnp.add, parts)
