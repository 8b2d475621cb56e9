"""DistilBERT's encoder: half of BERT's layers, without token types.

Sanh et al. 2019. Weights and results equal those of Hugging Face's model.
"""

from docjax.encoders.transformer import Transformer


class DistilBert(Transformer):
    """DistilBERT's encoder: segments to vectors, with the sizes of distilbert-base."""

    vocabulary: int = 30522
    layers: int = 6
    positions: int = 512
    position_offset: int = 0
    epsilon: float = 1e-12
    types: int = 0
