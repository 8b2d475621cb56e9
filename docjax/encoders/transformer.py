"""RoBERTa's and BERT's encoder: tokens of one segment -> one vector.

Post-LayerNorm as published (Devlin et al. 2019, Liu et al. 2019). Weights and results
equal those of Hugging Face's models. Attention is in `attention.py`, the vector in
`token_encoder.py`, the names of Hugging Face's weights in `huggingface/names.py`.
"""

import functools

from docjax.encoders.attention import attention
from docjax.encoders.dropout import dropout
from docjax.encoders.layers import (
    ACTIVATIONS,
    SITES,
    Embeddings,
    FeedForward,
    Layer,
    MaskedTokens,
    SelfAttention,
)
from docjax.encoders.token_encoder import TokenEncoder
from docjax.encoders.word_vectors import WordVectors


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
        self.layer = [self._layer(1 + SITES * i) for i in range(self.layers)]

    def states(self, tokens, lengths, places, keys, first=False):
        self.check_length(tokens.shape[1])
        x = dropout(self.embeddings(tokens, places), keys, 0, self.dropout)
        x = x.astype(self.dtype)
        for i, layer in enumerate(self.layer):
            x = layer(x, lengths, keys, first=first and i == self.layers - 1)
        return x

    def _layer(self, site: int) -> Layer:
        attend = functools.partial(
            attention, site=site, rate=self.attention_dropout, kernel=self.attention
        )
        return Layer(
            SelfAttention(
                self.heads, self.epsilon, self.dropout, attend, site, parent=None
            ),
            FeedForward(
                self.hidden,
                self.epsilon,
                self.activation,
                self.dropout,
                site + 2,
                parent=None,
            ),
        )
