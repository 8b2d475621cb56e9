"""MatchPyramid and Conv-KNRM: scores of pairs of a query and a document.

Both read word vectors with a mask that is True for real words, which come first.
Padding never changes a score. Axis letters: b pairs, q words of a query, t words of a
document, d width of a vector, g windows, x kernels.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

PADDING = 0  # no word has this id

Vectors = Float[Array, "b t d"]
Mask = Bool[Array, "b t"]


class MatchPyramid(nn.Module):
    """The score of Pang et al. (2016) for each pair of texts.

    The dot products of all words are a picture. A convolution finds patterns, dynamic
    pooling keeps the best pattern of each cell of a grid, and an MLP with one hidden
    layer scores them. One convolution of 3 x 3 with 32 filters and a grid of 3 x 10 are
    the sizes of wikIR's experiment, which graph-roberta's paper quotes.
    """

    filters: int = 32
    grid: tuple[int, int] = (3, 10)
    hidden: int = 64

    @nn.compact
    def __call__(
        self, query: Vectors, query_mask: Mask, document: Vectors, document_mask: Mask
    ) -> Float[Array, " b"]:
        real = query_mask[:, :, None] & document_mask[:, None, :]
        picture = jnp.einsum("bqd,btd->bqt", query, document)
        picture = jnp.where(real, picture, 0)[..., None]
        patterns = nn.relu(nn.Conv(self.filters, (3, 3))(picture))
        for axis, (mask, cells) in enumerate(
            zip((query_mask, document_mask), self.grid, strict=True), start=1
        ):
            patterns = pooled(patterns, axis, windows(mask, cells))
        flat = patterns.reshape(len(patterns), -1)
        return nn.Dense(1)(nn.relu(nn.Dense(self.hidden)(flat)))[:, 0]


def windows(mask: Mask, cells: int) -> Bool[Array, "b g t"]:
    """The words of each of `cells` parts of a text, in equal shares.

    In a text with fewer words than cells, several cells have the same word.
    """
    lengths = mask.sum(1)[:, None, None]
    word, cell = jnp.arange(mask.shape[1]), jnp.arange(cells)[:, None]
    return (word * cells < (cell + 1) * lengths) & ((word + 1) * cells > cell * lengths)


def pooled(
    patterns: Float[Array, "b ..."], axis: int, inside: Bool[Array, "b g t"]
) -> Float[Array, "b ..."]:
    """The maximum of each window along an axis; values are 0 or more, as of a ReLU."""
    shape = [len(patterns), *[1] * (patterns.ndim - 1)]
    shape[axis] = patterns.shape[axis]
    maxima = [
        jnp.where(inside[:, cell].reshape(shape), patterns, 0).max(axis)
        for cell in range(inside.shape[1])
    ]
    return jnp.stack(maxima, axis)


class ConvKNRM(nn.Module):
    """The score of Dai et al. (2018) for each pair of texts.

    Convolutions give each n-gram of 1 to 3 words a vector, the same ones for query and
    document. Kernels count the n-grams of the document whose cosine with an n-gram of
    the query is near the kernel's mean, for all 9 pairs of lengths. The score is
    tanh(w x features + b). An n-gram that reaches over the end of a text has zeros
    there, so that a text of one word has n-grams of all lengths. Unlike in the paper, w
    begins at zero: a small collection has too few steps to unlearn random weights.
    """

    filters: int = 128
    longest: int = 3

    @nn.compact
    def __call__(
        self, query: Vectors, query_mask: Mask, document: Vectors, document_mask: Mask
    ) -> Float[Array, " b"]:
        grams = [
            nn.Conv(self.filters, (n,), padding=[(0, n - 1)], name=f"grams{n}")
            for n in range(1, self.longest + 1)
        ]
        of_query, of_document = (
            [unit(nn.relu(gram(jnp.where(mask[..., None], text, 0)))) for gram in grams]
            for text, mask in ((query, query_mask), (document, document_mask))
        )
        features = [
            soft_counts(
                jnp.einsum("bqd,btd->bqt", left, right), query_mask, document_mask
            )
            for left in of_query
            for right in of_document
        ]
        last = nn.Dense(1, kernel_init=nn.initializers.zeros)
        return nn.tanh(last(jnp.concatenate(features, 1)))[:, 0]


def unit(vectors: Float[Array, "b t d"]) -> Float[Array, "b t d"]:
    """The vectors with length 1; zeros stay zeros."""
    return vectors * jax.lax.rsqrt((vectors**2).sum(-1, keepdims=True) + 1e-12)


def soft_counts(
    similarities: Float[Array, "b q t"], query_mask: Mask, document_mask: Mask
) -> Float[Array, "b x"]:
    """log soft-TF of each kernel: means -0.9, -0.7 ... 0.9 of width 0.1, and exact.

    The exact kernel has mean 1 and width 0.001. As in the authors' program, a count is
    at least 1e-10, and the logarithm is scaled by 0.01.
    """
    features = []
    for mean, width in [*((m / 10, 0.1) for m in range(-9, 10, 2)), (1.0, 1e-3)]:
        near = jnp.exp(-((similarities - mean) ** 2) / (2 * width**2))
        counts = jnp.where(document_mask[:, None, :], near, 0).sum(2)
        logs = 0.01 * jnp.log(jnp.maximum(counts, 1e-10))
        features.append(jnp.where(query_mask, logs, 0).sum(1))
    return jnp.stack(features, 1)


class Reranker(nn.Module):
    """A score for each pair of texts as word ids; `table` are the first vectors."""

    match: nn.Module
    table: Float[np.ndarray, "w d"]

    @nn.compact
    def __call__(
        self, queries: Int[Array, "b q"], documents: Int[Array, "b t"]
    ) -> Float[Array, " b"]:
        begin = lambda *_: jnp.asarray(self.table)
        words = nn.Embed(*self.table.shape, embedding_init=begin, name="words")
        return self.match(
            words(queries), queries != PADDING, words(documents), documents != PADDING
        )
