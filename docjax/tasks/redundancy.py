"""How often do documents repeat their words? A property of the texts alone.

SimLTE and DocSplit, section 5: long documents repeat themselves, so two halves of one
document speak of the same things.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from docjax.data.parts_of_speech import TagWords, Word, nltk
from docjax.data.records import full_text
from docjax.errors import UserError
from docjax.tasks.task import TaskDefaults, option
from docjax.types import Rows, Table, TaskData

BINS = {"1-50": 50, "51-100": 100, "101-200": 200, "201-300": 300, "301-": math.inf}
ALL = "all"


@dataclasses.dataclass(frozen=True)
class Redundancy(TaskDefaults):
    """`redundancy` of a sample of the documents.

    Attributes:
      broad: proper names count as nouns, auxiliary and modal verbs as verbs (the papers
        do not say).
      tag: another tagger, for use from Python; None: NLTK's.
    """

    command = "redundancy"
    prompted = on_baselines = False

    most: int | None = option(1000, "documents to read (1000)", name="sample", type=int)
    lexicons: str | None = option(None, "the folder of NLTK's data", metavar="DIR")
    broad: bool = False
    seed: int = 0
    tag: TagWords | None = None

    def check(self, data: TaskData, part: str) -> None:
        self.tag or nltk(self.lexicons, self.broad)
        data.sample(part, self.most, self.seed)

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        documents = data.sample(part, self.most, self.seed)
        tag = self.tag or nltk(self.lexicons, self.broad)
        return redundancy(map(full_text, documents), tag)

    def is_score(self, metric: str) -> bool:
        return False

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        """The redundancy by length: training does not change it."""
        rows = {"this run": next(iter(measured.values())), **published}
        note = (
            "Nouns and verbs of a document for each different lemma among them, mean "
            "over the documents. The longer a document, the more it repeats itself."
        )
        names = (*BINS, ALL)
        return [Table("Redundancy", rows, names, note, "length in words", decimals=2)]


def redundancy(texts: Iterable[str], tag: TagWords) -> dict[str, float]:
    """The mean redundancy of the texts of each length in words, and of all texts.

    The redundancy of a text is the number of its nouns and verbs, divided by the number
    of their different lemmas. Texts without nouns and verbs are left out. Raises
    UserError if no text has a noun or a verb.
    """
    values = collections.defaultdict(list)
    for text in texts:
        value = of_words(tag(text))
        if value is not None:
            count = len(text.split())
            length = next(name for name, most in BINS.items() if count <= most)
            values[length].append(value)
            values[ALL].append(value)
    if not values:
        raise UserError("no text has a noun or a verb: is it English?")
    names = [name for name in (*BINS, ALL) if name in values]
    return {name: float(np.mean(values[name])) for name in names}


def of_words(words: Iterable[Word]) -> float | None:
    """Nouns and verbs for each different lemma; None without any."""
    lemmas = [word.lemma for word in words if word.kind in ("noun", "verb")]
    return len(lemmas) / len(set(lemmas)) if lemmas else None
