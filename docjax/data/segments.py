"""Documents are cut into segments: passages, sentences, or the whole text.

What a transformer's token limit does to a segment is said in `tokens.py`; which
segments become which view, in `docjax.views`. Exported folders have these cuts once
more, in `docjax/huggingface/torch_module.py`.
"""

from collections.abc import Iterator

from docjax.data.documents import full_text
from docjax.data.sentences import sentences
from docjax.types import Document, Section, Segment


def passages(document: Document, words: int = 100) -> list[Segment]:
    """Passages of at most `words` words that respect sentences and sections.

    Each takes the next sentence while it fits; a longer sentence is a passage alone.
    Title and heading are read as sentences. White space becomes single spaces.
    """
    found = []
    for number, pieces in _sentences_by_section(document):
        passage: list[str] = []
        for piece in map(str.split, pieces):
            if passage and len(passage) + len(piece) > words:
                found.append(Segment(" ".join(passage), number))
                passage = []
            passage += piece
        if passage:
            found.append(Segment(" ".join(passage), number))
    return found


def sentences_of(document: Document) -> list[Segment]:
    """One segment a sentence; title and headings too. White space as in `passages`."""
    return [
        Segment(" ".join(sentence.split()), number)
        for number, pieces in _sentences_by_section(document)
        for sentence in pieces
    ]


def whole(document: Document) -> list[Segment]:
    """The full text as one segment, as written.

    What is longer than the token limit goes on in further segments: with a limit of
    512, these are a document's chunks.
    """
    return [Segment(full_text(document), 0)]


def _sentences_by_section(document: Document) -> Iterator[tuple[int, list[str]]]:
    """Number and sentences of each section; the title belongs to the first."""
    for number, section in enumerate(document.sections or (Section("", ""),)):
        before = [document.title if number == 0 else "", section.heading]
        yield number, [s for s in before if s.strip()] + sentences(section.text)
