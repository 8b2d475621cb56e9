"""Word vectors (Doc2vecC): `docjax/encoders/word_average.py` in other libraries."""

from docjax.encoders.word_average import WordAverage
from docjax.huggingface.family import Family
from docjax.huggingface.names import Names

FAMILY = Family(
    module=WordAverage,
    names=Names(once={"words": "embedding.weight"}),
    exported_as="WordAverage",
    sentence_module="StaticEmbedding",
    training_only=("targets",),
)
