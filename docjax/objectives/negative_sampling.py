"""Doc2vecC: predict a word from the words around it and from words of its document.

Chen, "Efficient Vector Representation for Documents through Corruption", 2017; DECA,
Eq. 1 to 3 and 6. `training/rows.py` updates the rows of the tables.
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
    """The rows of the two tables U and V that one block reads.

    Columns hold the words of a block: word t is at place t % i of column t // i. So a
    shift by one word moves whole rows of memory.
    """

    words: Float[Array, "i n d"]  # from U, zero for padding
    drawn: Float[Array, "p s d"]  # from U
    targets: Float[Array, "i n d"]  # from V
    noise: Float[Array, "i k d"]  # from V


@dataclasses.dataclass(frozen=True)
class NegativeSampling:
    """The loss of a word: -log s(v . u) - sum over k noise words of log s(-v_n . u).

    u combines the vectors of the word's context with the mean of `sample` words of the
    document: an unbiased estimate of the mean over the kept words (corruption). Noise
    words are drawn in proportion to the word counts to the power 0.75.
    `data/word_blocks.py` makes all draws.

    Attributes:
      window: words on one side.
      negatives: k. Words at the same place of different columns share their noise
        words; these words are far apart in the text.
      sample: words of the document in one estimate. Each block draws DRAWS * `sample`
        words from a document, among the words that `subsample` keeps, and lays them in
        a circle. `sample` neighbours in the circle are one estimate. Every word takes a
        random estimate, which comes close to a draw for every word.
      context: "full": all words within the window; "shrunk": within a window drawn
        from 1..window, as in Word2Vec; "left": as in the authors' code, the words from
        t - window + b to t - b with b drawn from 0..window - 1, so that some words are
        predicted from their document alone. Each block draws once.
      combine: "mean" of the context's words and the estimate, or "sum" as in Eq. 2.
      subsample: t of Word2Vec. An occurrence of a word with share f of all words is
        kept with probability sqrt(t / f) + t / f; training ignores other occurrences.
        So frequent words get shorter vectors and weigh less in a document. The
        contrastive loss reads all words. 0 keeps all words.
      contrastive: `infonce` or `simsiam` over the vectors of the documents and of
        their paraphrases, or None; the views give the paraphrases.
      weight: lambda, of the contrastive loss; 0 is Doc2vecC.
      head_learning_rate: of Adam, for a predictor.
      replicas: copies of the tables. Each copy reads a part of a step's documents;
        devices (GPUs, or cores of a CPU) work at the same time, then all changes are
        added up. The result depends on `replicas`, not on the number of devices, which
        must divide `replicas`. 8 replicas with 512 documents each do not learn.
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
                "negative_sampling takes context "
                f"{', '.join(map(repr, CONTEXTS))}, not {self.context!r}, and combine "
                f"'mean' or 'sum', not {self.combine!r}"
            )
        names = ("window", "negatives", "sample", "replicas")
        sizes = {name: getattr(self, name) for name in names}
        whole = all(isinstance(size, int) and size > 0 for size in sizes.values())
        if not whole or min(self.weight, self.subsample) < 0:
            raise UserError(
                f"negative_sampling has {sizes}, weight {self.weight} and subsample "
                f"{self.subsample}: counts must be at least 1 and whole; weight and "
                "subsample must be at least 0"
            )
        if self.head_learning_rate <= 0:
            raise UserError(
                f"negative_sampling has head_learning_rate {self.head_learning_rate}: "
                "give a number above 0"
            )

    @property
    def drawn(self) -> int:
        """The number of words drawn from each document of a block."""
        return DRAWS * self.sample

    def chances(self, counts: Int[np.ndarray, " w"]) -> Float[np.ndarray, " w"]:
        """The probability that an occurrence of each word is kept, from the counts."""
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
        """The summed loss of a block's words, and its gradient.

        The gradient is written by hand: jax.grad of windows and draws is far slower.

        words: ids, 0 for padding; estimates: for each word, the number of its estimate
        among the p * s estimates of `drawn`; noise: ids of the noise words, which do
        not count as noise for themselves; window: an index into `windows`.
        """
        real = (words > 0).astype(jnp.float32)
        context, counts = self._context(rows.words, real, window)
        means = self._estimates(rows.drawn)
        share = 1 / (counts + 1) if self.combine == "mean" else jnp.ones_like(counts)
        u = materialize((context + means[estimates]) * share[..., None])

        weights = (words[:, None] != noise[..., None]) * real[:, None]
        loss, of_right, of_wrong = _scores(u, rows, real, weights)
        # This layout of the factors makes both products fastest.
        turned = materialize(of_wrong.swapaxes(1, 2))
        of_u = jnp.einsum("ink,ikd->ind", turned, rows.noise, precision=EXACT)
        of_u = (of_u + of_right[..., None] * rows.targets) * share[..., None]
        of_u = materialize(of_u)
        gradient = Rows(
            words=self._spread(of_u, window) * real[..., None],
            drawn=self._return(of_u, estimates, rows.drawn.shape),
            targets=of_right[..., None] * u,
            noise=jnp.einsum("ikn,ind->ikd", of_wrong, u, precision=EXACT),
        )
        return loss, gradient

    @property
    def windows(self) -> list[tuple[int, int]]:
        """First and last place of each possible window, relative to the word."""
        w = self.window
        if self.context == "full":
            return [(-w, w)]
        if self.context == "shrunk":
            return [(-reach, reach) for reach in range(1, w + 1)]
        return [(b - w, -b) for b in range(w)]

    def _context(self, words, real, window):
        """The sum [i n d] of the vectors in each word's window, and their number."""
        sums = [
            lambda pair, ends=ends: tuple(_around(array, *ends) for array in pair)
            for ends in self.windows
        ]
        context, counts = jax.lax.switch(window, sums, (words, real[..., None]))
        return context, counts[..., 0]

    def _spread(self, gradient, window):
        """The gradient of words from the gradient of the contexts that hold them."""
        sums = [
            lambda array, first=first, last=last: _around(array, -last, -first)
            for first, last in self.windows
        ]
        return jax.lax.switch(window, sums, gradient)

    def _estimates(self, drawn: Float[Array, "p s d"]) -> Float[Array, "_ d"]:
        """The means of `sample` neighbours in the circle of a document's drawn words.

        Each place of the circle begins one estimate.
        """
        p, s, d = drawn.shape
        circle = jnp.concatenate([drawn, drawn[:, : self.sample - 1]], axis=1)
        return self._sums(circle, s).reshape(p * s, d) / self.sample

    def _return(self, gradient, estimates, shape):
        """The gradient of the drawn words [p s d] from that of the estimates."""
        p, s, d = shape
        flat = gradient.reshape(-1, d)
        sums = jax.ops.segment_sum(flat, estimates.ravel(), p * s).reshape(shape)
        circle = jnp.concatenate([sums[:, s - self.sample + 1 :], sums], axis=1)
        return self._sums(circle, s) / self.sample

    def _sums(self, circle: Float[Array, "p l d"], s: int) -> Float[Array, "p {s} d"]:
        """The sums of `sample` consecutive rows, from each of the first `s` rows."""
        return sum(circle[:, k : k + s] for k in range(self.sample))


def _scores(u, rows: Rows, real, weights):
    """The loss, and its gradients for the products of u with targets and noise."""
    right = row_sums(u * rows.targets)
    wrong = jnp.einsum("ikd,ind->ikn", rows.noise, u, precision=EXACT)
    loss = (jax.nn.softplus(-right) * real).sum()
    loss += (jax.nn.softplus(wrong) * weights).sum()
    return loss, -jax.nn.sigmoid(-right) * real, jax.nn.sigmoid(wrong) * weights


def _around(
    vectors: Float[Array, "i n d"], first: int, last: int
) -> Float[Array, "i n d"]:
    """For each word, the sum of the words at `first` to `last` without the word."""
    if last < first:
        return jnp.zeros_like(vectors)
    i, n, d = vectors.shape
    before, after = max(-first, 0), max(last, 0)
    # Each column gets the words around it. The places wrap around: the block ends with
    # padding, so the first word sees padding before it.
    places = np.arange(-before, i + after)[:, None] + i * np.arange(n)
    places = places % (i * n)
    wide = vectors.reshape(i * n, d)[places % i * n + places // i]
    shifted = [wide[before + place :][:i] for place in range(first, last + 1) if place]
    return functools.reduce(jnp.add, shifted)
