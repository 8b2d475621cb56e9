"""BigBird's segment encoder: BERT's layers with block-sparse attention.

Weights and results equal those of Hugging Face's model, read as a fresh model reads a
single text without padding. A Hugging Face model that reads a padded batch gives other
states: its last block is that of the longest text, and after one short text it attends
to all tokens for good. `block_sparse.py` has the attention.
"""

import functools

import flax.linen as nn
from jaxtyping import Array

from docjax.encoders.attention import attention
from docjax.encoders.block_sparse import Pattern, block_sparse
from docjax.encoders.dropout import dropout
from docjax.encoders.layers import (
    ACTIVATIONS,
    Dense,
    Embeddings,
    FeedForward,
    MaskedTokens,
    Norm,
)
from docjax.encoders.token_encoder import TokenEncoder
from docjax.encoders.word_vectors import WordVectors
from docjax.errors import UserError

SITES = 3  # dropout sites per layer: attention weights, attention, feed-forward


class Attention(nn.Module):
    heads: int
    epsilon: float
    dropout: float
    attention_dropout: float
    pattern: Pattern
    kernel: str
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first):
        n, t, d = x.shape
        flat = x.reshape(n * t, d)
        asking = x[:, :1] if first else x

        def split(name: str, x: Array) -> Array:
            out = Dense(d, name=name)(x).astype(x.dtype)
            return out.reshape(n, -1, self.heads, d // self.heads)

        dense = functools.partial(
            attention,
            keys=keys,
            site=self.site,
            rate=self.attention_dropout,
            kernel=self.kernel,
        )
        out = block_sparse(
            split("query", asking.reshape(-1, d)),
            split("key", flat),
            split("value", flat),
            lengths,
            pattern=self.pattern,
            dense=dense,
            site=self.site,
        )
        out = Dense(d, name="output")(out.reshape(-1, d)).reshape(n, -1, d)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return Norm(self.epsilon, name="norm")(asking + out)


class Layer(nn.Module):
    attention: Attention
    feed_forward: FeedForward

    def __call__(self, x, lengths, keys, first=False):
        """The tokens after this layer; with `first`, the first token alone."""
        dtype = x.dtype
        x = self.attention(x, lengths, keys, first).astype(dtype)
        return self.feed_forward(x, keys).astype(dtype)


class BigBird(TokenEncoder):
    """BigBird (Zaheer et al. 2020), with the sizes of bigbird-roberta-base.

    A row of more than (5 + 2 `random`) x `block` tokens attends in blocks of `block`
    tokens. `drawn` draws the `random` random blocks of each block; otherwise all are the
    first block, as in transformers, which cannot read what `drawn` trains.
    """

    vocabulary: int = 50358
    positions: int = 4096
    types: int = 2
    activation: str = "gelu_new"
    block: int = 64
    random: int = 3
    drawn: bool = False

    def setup(self) -> None:
        self.check_keywords(tuple(ACTIVATIONS))
        if self.block < 1 or self.random < 0:
            raise UserError(
                f"block {self.block} and random {self.random}: a block has at least 1 "
                "token, and at least 0 random blocks are seen; BigBird has 64 and 3"
            )
        self.embeddings = Embeddings(
            self.vocabulary,
            self.width,
            self.positions,
            self.position_offset,
            self.types,
            self.epsilon,
        )
        if self.masked_lm:
            self.predict = MaskedTokens(
                self.vocabulary,
                self.epsilon,
                activation=self.activation,
                name="masked_lm",
            )
        if self.words:
            self.of_words = WordVectors(self.vocabulary, self.words, name="words")
        self.layer = [self._layer(1 + SITES * i) for i in range(self.layers)]

    def states(self, tokens, lengths, places, keys, first=False):
        self.check_length(tokens.shape[1])
        x = dropout(self.embeddings(tokens, places), keys, 0, self.dropout)
        x = x.astype(self.dtype)
        for i, layer in enumerate(self.layer):
            x = layer(x, lengths, keys, first=first and i == self.layers - 1)
        return x

    def _layer(self, site: int) -> Layer:
        most = -(-self.positions // self.block)
        attend = Attention(
            self.heads,
            self.epsilon,
            self.dropout,
            self.attention_dropout,
            Pattern(self.block, self.random, self.drawn, most),
            self.attention,
            site,
            parent=None,
        )
        feed = FeedForward(
            self.hidden,
            self.epsilon,
            self.activation,
            self.dropout,
            site + 2,
            parent=None,
        )
        return Layer(attend, feed)
