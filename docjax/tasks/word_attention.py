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
from docjax.tasks.task import TaskDefaults, option, renamed
from docjax.types import AFTER, BEFORE, Drawing, Rows, Table, TaskData, TokenAttention

RATIO = f"nouns, times {BEFORE}"


@dataclasses.dataclass(frozen=True)
class WordAttention(TaskDefaults):
    """The mean attention to a noun, a verb, an adjective and another word.

    A document is read as far as it fits one segment. Segment encoders with
    `shows_attention` (BERT, RoBERTa) have this attention; others are refused.

    Attributes:
      of_word: the attention to a word is the "sum" or the "mean" of that to its tokens
        (the paper does not say).
      tag: another tagger, for use from Python; None: NLTK's.
    """

    command = "word_attention"
    prompted = on_baselines = False

    most: int | None = option(1000, "documents to read (1000)", name="sample", type=int)
    lexicons: str | None = option(None, "the folder of NLTK's data", metavar="DIR")
    seed: int = 0
    of_word: Literal["sum", "mean"] = "sum"
    tag: TagWords | None = None

    def check(self, data: TaskData, part: str) -> None:
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

    def is_score(self, metric: str) -> bool:
        return False

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        rows = renamed({**measured, **published}, {kind: kind for kind in KINDS})
        before = measured.get(BEFORE, {}).get("noun")
        if before and "noun" in measured.get(AFTER, {}):
            for row in (BEFORE, AFTER):
                rows[row][RATIO] = measured[row]["noun"] / before
        drawing = Drawing(
            "bars",
            "word_attention",
            measured,
            title="attention of the first token to a word",
            y="mean weight",
            caption="Mean attention of the first token to a word, in the last layer.",
        )
        note = (
            "Attention of the first token in the last layer, mean over the heads, "
            "summed over the pieces of a word."
        )
        names = (*KINDS, RATIO)
        title = "Attention by part of speech"
        return [Table(title, rows, names, note, drawing=drawing)]


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
