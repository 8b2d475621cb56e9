"""What a model reads of documents and queries: prompts, segments, and what is left out.

`document_model.DocumentModel` encodes the segments.
"""

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from docjax.data import documents as documents_lib
from docjax.data.prompts import document_prompt, prompted
from docjax.data.segments import OneEach
from docjax.data.tokenizer import Tokenizer
from docjax.data.units import Cut, Whole
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model.inputs import Item, as_document, shown
from docjax.types import Order, ReadLimits, SegmentCutter, Segments, UnitCutter

logger = logging.getLogger(__name__)

TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 256, 1 << 21  # limits of one tokenizer call
COUNTS = (
    *("documents", "segments", "tokens", "segments_cut", "tokens_cut"),
    "documents_empty",  # documents without any token that the model knows
    "segments_beyond_tables",  # their section or number takes the last trained row
)


class Reading:
    """The part of `DocumentModel` that cuts documents; its attributes are fields there."""

    encoder: DocumentEncoder
    tokenizer: Tokenizer
    units: UnitCutter
    segments: SegmentCutter
    limits: ReadLimits
    prompts: Mapping[str, str]
    default_prompt_name: str | None
    include_prompt: bool
    order: Order | None

    @property
    def document_prompt(self) -> str:
        """The words before each segment of a document; "" without a prompt."""
        return document_prompt(self.prompts, self.default_prompt_name)

    @property
    def query_prompt(self) -> str:
        """The words before a query; "" without a prompt."""
        return self.prompts.get("query", "")

    def prompt_of(self, prompt: str | None, name: str | None, otherwise: str) -> str:
        """`prompt`, else the prompt called `name`, else `otherwise`. Raises UserError for
        an unknown name, and for a prompt that is no text."""
        if prompt is not None and not _is_text(prompt):
            raise UserError(f"prompt {shown(prompt)} is no text: give the words")
        known = isinstance(name, str) and name in self.prompts
        if prompt is None and name is not None and not known:
            raise UserError(
                f"prompt_name {shown(name)} is not one of the model's prompts: "
                f"{', '.join(self.prompts) or 'it has none'}; give the words as prompt"
            )
        if prompt is None:
            return self.prompts[name] if name is not None else otherwise
        return prompt

    def read(
        self,
        documents: Iterable[Item],
        stats: dict[str, int],
        prompt: str | None = None,
    ) -> Iterator[Segments]:
        """The tokens of each document that `encode` reads; adds COUNTS to `stats`."""
        stats.update({name: 0 for name in COUNTS if name not in stats})
        cut = self._read(documents, self._prompted(prompt))
        ordered = map(self.order, cut) if self.order else cut
        return (self.capped(document, stats) for document in ordered)

    def read_queries(
        self, texts: Sequence[str], prompt: str | None = None
    ) -> list[Segments]:
        """Each query's tokens. Raises UserError for a query that is too long."""
        most = self.limits.query_segment
        cut = self._prompted(self.query_prompt if prompt is None else prompt)
        whole = dataclasses.replace(cut, units=Whole(), segments=OneEach())
        items = [as_document(text, row, "query") for row, text in enumerate(texts)]
        queries = list(self._read(items, whole))
        for text, query in zip(texts, queries, strict=True):
            if len(query) > 1 or len(query.tokens) > most:
                raise UserError(
                    f"query {shown(text)} has {len(query.tokens)} tokens, the model "
                    f"reads {most}: shorten it, or encode it as a document"
                )
        empty = sum(not len(query.tokens) for query in queries)
        if empty:
            logger.warning(
                "%d of %d queries have no word of the vocabulary: their vectors are "
                "zero",
                empty,
                len(queries),
            )
        return queries

    @property
    def cut(self) -> Cut:
        """How the model cuts documents into segments."""
        return self._prompted(None)

    def _prompted(self, prompt: str | None) -> Cut:
        """The cut into segments with a prompt; None: with the prompt of documents."""
        prompt = self.document_prompt if prompt is None else prompt
        tokenizer = prompted(self.tokenizer, prompt)
        return Cut(self.units, self.segments, tokenizer, self.limits.segment_tokens)

    def encoder_of(self, prompt: str | None) -> DocumentEncoder:
        """The encoder of segments with a prompt; None: with the prompt of documents."""
        length = self._prompted(prompt).tokenizer.prompt_length
        if self.include_prompt or not length:
            return self.encoder
        segment = self.encoder.segment.clone(left_out=length)
        return self.encoder.clone(segment=segment)

    def _read(self, items: Iterable, cut: Cut) -> Iterator[Segments]:
        """The segments of each item; a few hundred items are tokenised together."""
        documents = (as_document(item, number) for number, item in enumerate(items))
        for part in documents_lib.parts(documents, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE):
            yield from cut.documents(part)

    def warn(self, stats: Mapping[str, int]) -> None:
        """Logs what the model did not read, by the counts of `encode`."""
        if stats["segments_cut"]:
            logger.warning(
                "the model reads the first %d segments of a document: %d segments "
                "(%d tokens) are not read",
                self.limits.inference_segments,
                stats["segments_cut"],
                stats["tokens_cut"],
            )
        if stats["segments_beyond_tables"]:
            logger.info(
                "%d of %d segments have a section or a number that training had no "
                "row for: each takes the last row",
                *(stats["segments_beyond_tables"], stats["segments"]),
            )
        if stats["documents_empty"]:
            logger.warning(
                "%d of %d documents have no word of the vocabulary: their vectors are "
                "zero",
                stats["documents_empty"],
                stats["documents"],
            )

    def capped(self, whole: Segments, stats: dict[str, int]) -> Segments:
        """The first `limits.inference_segments` segments; `stats` counts the rest."""
        kept = whole.first(self.limits.inference_segments)
        if stats:
            stats["documents"] += 1
            stats["segments"] += len(kept)
            stats["tokens"] += len(kept.tokens)
            stats["segments_cut"] += len(whole) - len(kept)
            stats["tokens_cut"] += len(whole.tokens) - len(kept.tokens)
            stats["documents_empty"] += not len(kept.tokens)
            rows = np.array(self.encoder.segment.place_rows)
            beyond = (kept.places >= rows) & (rows > 0)
            stats["segments_beyond_tables"] += int(beyond.any(axis=1).sum())
        return kept


def _is_text(value: Any) -> bool:
    """Whether a value is a text without halves of characters."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()
