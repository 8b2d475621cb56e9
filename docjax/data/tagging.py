"""Which words of a corpus are adjectives or verbs."""

import numpy as np
from jaxtyping import Int

from docjax.data.corpus import Corpus
from docjax.data.lexicons import Tagger
from docjax.data.vocabulary import Vocabulary
from docjax.types import Units

OCCURRENCES = 16  # of a word, the most to tag
READ = 10_000_000  # words to search for these occurrences
BEFORE, AFTER = 4, 2  # words that the tagger reads around a word


def adjectives_and_verbs(
    wanted: Int[np.ndarray, " n"],
    words: Vocabulary,
    corpus: Corpus,
    documents: Int[np.ndarray, " b"] | None,
    tagger: Tagger,
) -> set[str]:
    """The words tagged adjective or verb in most of up to OCCURRENCES occurrences.

    Args:
      wanted: the ids of the words to look at.
      documents: the documents to read, by number (None: all). Only evenly
        spread documents with about READ words are read: large corpora cost the same.
    """
    documents = np.arange(len(corpus)) if documents is None else documents
    every = -(-int(corpus.sizes(documents).sum()) // READ)
    sample = corpus.concatenated(documents[::every])
    order = np.argsort(sample.tokens, kind="stable")
    first = np.searchsorted(sample.tokens, wanted, sorter=order)
    after = np.searchsorted(sample.tokens, wanted, side="right", sorter=order)
    tagged = set()
    for word, start, end in zip(wanted, first, after, strict=True):
        places = order[
            np.linspace(start, end - 1, min(OCCURRENCES, end - start), dtype=int)
        ]
        votes = [_tagged(int(place), sample, words, tagger) for place in places]
        if sum(votes) * 2 > len(votes):
            tagged.add(words.words[word])
    return tagged


def _tagged(place: int, units: Units, words: Vocabulary, tagger: Tagger) -> bool:
    """Whether the word at `place` is an adjective or a verb, judged within its unit."""
    number = np.searchsorted(units.offsets, place, side="right")
    start = max(place - BEFORE, int(units.offsets[number - 1]))
    end = min(place + AFTER + 1, int(units.offsets[number]))
    around = [words.words[i] or "." for i in units.tokens[start:end]]
    return tagger.is_adjective_or_verb(around)[place - start]
