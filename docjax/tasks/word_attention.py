"""Which words does a model attend to? Attention of the first token by part of speech.

SimLTE, appendix C: the last layer's attention, averaged over the heads.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Literal

import numpy as np

from docjax.data.parts_of_speech import KINDS, TagWords, Word, nltk
from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.types import TaskData, TokenAttention


@dataclasses.dataclass(frozen=True)
class WordAttention:
    """The mean attention to a noun, a verb, an adjective and another word.

    A document is read as far as it fits one segment. Segment encoders with
    `shows_attention` (BERT, RoBERTa) have this attention; others are refused.

    Attributes:
      most: documents to read; None: all.
      of_word: the attention to a word is the "sum" or the "mean" of that to its tokens
        (the paper does not say).
      lexicons: the folder of NLTK's data; None: where NLTK looks.
      tag: another tagger, for use from Python; None: NLTK's.
    """

    most: int | None = 1000
    lexicons: str | None = None
    seed: int = 0
    of_word: Literal["sum", "mean"] = "sum"
    tag: TagWords | None = None

    def check(self, data: TaskData, part: str) -> None:
        """Raises UserError if attention, a lexicon or all documents are missing."""
        data.token_attention()
        self.tag or nltk(self.lexicons, False)
        data.sample(part, self.most, self.seed)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        attend, tag = data.token_attention(), self.tag or nltk(self.lexicons, False)
        weights = collections.defaultdict(list)
        for document in data.sample(part, self.most, self.seed):
            text = full_text(document)
            attention = attend(text)
            read = text[: attention.spans[:, 1].max(initial=0)]
            words = tag(read)
            attended = of_words(words, attention, self.of_word)
            for word, weight in zip(words, attended, strict=True):
                weights[word.kind].append(weight)
        if not weights:
            raise UserError("no document has a word: is it text?")
        return {kind: float(np.mean(weights[kind])) for kind in KINDS if weights[kind]}


def of_words(
    words: Sequence[Word],
    attention: TokenAttention,
    of_word: Literal["sum", "mean"] = "sum",
) -> list[float]:
    """The attention to each word: the sum or mean over the tokens that end inside of it.

    (A token of byte-level BPE may begin with the space before the word.)
    """
    ends = attention.spans[:, 1]
    total = np.concatenate([[0.0], np.cumsum(attention.weights, dtype=np.float64)])
    first = np.searchsorted(ends, [word.start for word in words], side="right")
    after = np.searchsorted(ends, [word.end for word in words], side="right")
    sums = total[after] - total[first]
    return (sums if of_word == "sum" else sums / np.maximum(after - first, 1)).tolist()
