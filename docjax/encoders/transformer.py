"""RoBERTa's and BERT's encoder: tokens of one segment -> one vector.

Post-LayerNorm as published (Devlin et al. 2019, Liu et al. 2019). Weights and results
equal those of Hugging Face's models. Attention is in `attention.py`, the vector in
`token_encoder.py`, the names of Hugging Face's weights in `huggingface/names.py`.
"""

import flax.linen as nn
from jaxtyping import Array

from docjax.encoders.attention import attention
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

SITES = 3  # dropout sites per layer: attention weights, attention, feed-forward


class Attention(nn.Module):
    heads: int
    epsilon: float
    dropout: float
    attention_dropout: float
    kernel: str
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first):
        n, t, d = x.shape
        flat = x.reshape(n * t, d)
        asking = x[:, :1].reshape(n, d) if first else flat

        def split(name: str, x: Array) -> Array:
            out = Dense(d, name=name)(x).astype(x.dtype)
            return out.reshape(n, -1, self.heads, d // self.heads)

        out = attention(
            split("query", asking),
            split("key", flat),
            split("value", flat),
            lengths,
            keys=keys,
            site=self.site,
            rate=self.attention_dropout,
            kernel=self.kernel,
        )
        out = Dense(d, name="output")(out.reshape(-1, d)).reshape(n, -1, d)
        out = dropout(out, keys, self.site + 1, self.dropout)
        return Norm(self.epsilon, name="norm")(asking.reshape(n, -1, d) + out)


class Layer(nn.Module):
    heads: int
    hidden: int
    epsilon: float
    activation: str
    dropout: float
    attention_dropout: float
    kernel: str
    site: int

    @nn.compact
    def __call__(self, x, lengths, keys, first=False):
        """The tokens after this layer; with `first`, the first token alone."""
        dtype = x.dtype
        attend = Attention(
            self.heads,
            self.epsilon,
            self.dropout,
            self.attention_dropout,
            self.kernel,
            self.site,
            name="attention",
        )
        feed = FeedForward(
            self.hidden,
            self.epsilon,
            self.activation,
            self.dropout,
            self.site + 2,
            name="feed_forward",
        )
        x = attend(x, lengths, keys, first).astype(dtype)
        return feed(x, keys).astype(dtype)


class Transformer(TokenEncoder):
    """RoBERTa's or BERT's encoder: segments to vectors.

    RoBERTa counts positions from 2, BERT from 0 (`position_offset`). `sections` and
    `chunks` are the rows of two tables that embed a segment's place in its document: a
    place beyond a table takes the last row, 0 leaves the table out.
    """

    vocabulary: int = 50265
    positions: int = 514
    position_offset: int = 2
    epsilon: float = 1e-5
    types: int = 1
    sections: int = 0
    chunks: int = 0

    def setup(self) -> None:
        self.check_keywords(tuple(ACTIVATIONS))
        self.embeddings = Embeddings(
            self.vocabulary,
            self.width,
            self.positions,
            self.position_offset,
            self.types,
            self.epsilon,
            self.sections,
            self.chunks,
        )
        if self.masked_lm:
            # BERT's head has the activation of its layers, RoBERTa's has gelu.
            own = {} if self.position_offset else {"activation": self.activation}
            self.predict = MaskedTokens(
                self.vocabulary, self.epsilon, **own, name="masked_lm"
            )
        if self.words:
            self.of_words = WordVectors(self.vocabulary, self.words, name="words")
        self.layer = [
            Layer(
                self.heads,
                self.hidden,
                self.epsilon,
                self.activation,
                self.dropout,
                self.attention_dropout,
                self.attention,
                site=1 + SITES * i,
            )
            for i in range(self.layers)
        ]

    def states(self, tokens, lengths, places, keys, first=False):
        self.check_length(tokens.shape[1])
        x = dropout(self.embeddings(tokens, places), keys, 0, self.dropout)
        x = x.astype(self.dtype)
        for i, layer in enumerate(self.layer):
            x = layer(x, lengths, keys, first=first and i == self.layers - 1)
        return x
