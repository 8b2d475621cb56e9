"""Documents are cut into segments: passages, sentences, or the whole text.

What a transformer's token limit does to a segment is said in `tokens.py`; which
segments become which view, in `docjax.views`. The cuts themselves are in `records.py`,
which exported folders have too.
"""

from docjax.data import records
from docjax.types import Document, Segment


def passages(document: Document, words: int = 100) -> list[Segment]:
    """Passages of at most `words` words that respect sentences and sections.

    Each takes the next sentence while it fits; a longer sentence is a passage alone.
    Title and heading are read as sentences. White space becomes single spaces.
    """
    return [Segment(*one) for one in records.passages(document, words)]


def sentences_of(document: Document) -> list[Segment]:
    """One segment a sentence; title and headings too. White space as in `passages`."""
    return [Segment(*one) for one in records.sentences_of(document)]


def whole(document: Document) -> list[Segment]:
    """The full text as one segment, as written.

    What is longer than the token limit goes on in further segments: with a limit of
    512, these are a document's chunks.
    """
    return [Segment(*one) for one in records.whole(document)]
