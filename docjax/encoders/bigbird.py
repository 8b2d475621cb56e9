"""BigBird's segment encoder: BERT's layers with block-sparse attention.

Weights and results equal those of Hugging Face's model, read as a fresh model reads a
single text without padding. A Hugging Face model that reads a padded batch gives other
states: its last block is that of the longest text, and after one short text it attends
to all tokens for good. `block_sparse.py` has the attention.
"""

import functools
from typing import Any

import flax.linen as nn
from jaxtyping import Array

from docjax.encoders.block_sparse import Pattern, block_sparse
from docjax.encoders.layers import PostNorm, SelfAttention
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError


class BigBird(PostNorm, TokenEncoder):
    """BigBird (Zaheer et al. 2020), with the sizes of bigbird-roberta-base.

    A row of more than (5 + 2 `random`) x `block` tokens attends in blocks of `block`
    tokens. All `random` random blocks of a block are the first block, in training too.
    Such rows ignore `attention_dropout`, and training refuses both together.
    """

    vocabulary: int = 50358
    positions: int = 4096
    types: int = 2
    activation: str = "gelu_new"
    block: int = 64
    random: int = 3

    def setup(self) -> None:
        if self.block < 1 or self.random < 0:
            raise UserError(
                f"block {self.block} and random {self.random}: a block has at least 1 "
                "token, and at least 0 random blocks are seen; BigBird has 64 and 3"
            )
        super().setup()

    @nn.nowrap
    def check_training(self, tokens: int) -> None:
        super().check_training(tokens)
        dense = Pattern(self.block, self.random).dense
        if self.attention_dropout and tokens > dense:
            raise UserError(
                f"attention_dropout {self.attention_dropout} does nothing in BigBird's "
                f"segments of more than {dense} tokens, and limits.segment_tokens is "
                f"{tokens}: set --config.encoder.segment.attention_dropout to 0, or "
                "lower limits.segment_tokens"
            )

    def attending(self, number: int, site: int) -> SelfAttention:
        pattern = Pattern(self.block, self.random)
        dense = self.attend_at(site)

        def attend(q: Array, k: Array, v: Array, lengths: Array, keys: Any) -> Array:
            whole = functools.partial(dense, keys=keys)
            return block_sparse(q, k, v, lengths, pattern=pattern, dense=whole)

        sizes = self.heads, self.epsilon, self.dropout
        return SelfAttention(*sizes, attend, site, parent=None)
