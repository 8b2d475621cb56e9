"""RoBERTa's and BERT's encoder: tokens of one segment -> one vector.

Post-LayerNorm as published (Devlin et al. 2019, Liu et al. 2019). Weights and results
equal those of Hugging Face's models. Attention is in `attention.py`, the layers in
`layers.py`, the vector in `token_encoder.py`, the names of Hugging Face's weights in
`huggingface/names.py`.
"""

from docjax.encoders.layers import PostNorm, SelfAttention
from docjax.encoders.token_encoder import TokenEncoder


class Transformer(PostNorm, TokenEncoder):
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
    shows_attention = True
    chosen = (*TokenEncoder.chosen, "sections", "chunks")

    def attending(self, number: int, site: int) -> SelfAttention:
        sizes = self.heads, self.epsilon, self.dropout
        return SelfAttention(*sizes, self.attend_at(site), site, parent=None)

    @property
    def place_rows(self) -> tuple[int, int]:
        return self.sections, self.chunks
