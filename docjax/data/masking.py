"""Chooses the tokens that a model predicts, and the tokens that it reads instead.

Masked language modelling as in BERT (Devlin et al. 2019, 3.1): a fixed share of a
segment's tokens is chosen. Most of these become the mask token, some become another
token, some stay. Special tokens and those of a prompt are never chosen.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from docjax.data.microbatches import Group, filled, microbatch, split
from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError
from docjax.types import Frame, Masked, Segments

MASK_TOKENS = ("[MASK]", "<mask>")  # of BERT and of RoBERTa
SHOWN, CHANGED = 0.8, 0.9  # a draw below 0.8: mask token; below 0.9: another


@dataclasses.dataclass(frozen=True)
class Masking:
    """Chooses `rate` of the text tokens of each segment, at least one."""

    rate: float
    mask: int  # the id of the mask token
    vocabulary: int  # ids below this number may replace a token
    frame: Frame

    @classmethod
    def of(cls, tokenizer: Tokenizer, frame: Frame, rate: float) -> "Masking":
        """The masking with a tokenizer's mask token, in segments with this frame.
        Raises UserError for a tokenizer without mask token."""
        ids = tokenizer.backend.get_vocab(with_added_tokens=True)
        mask = next((ids[name] for name in MASK_TOKENS if name in ids), None)
        if mask is None:
            raise UserError(
                f"objective masked_lm needs a mask token: the tokenizer has none of "
                f"{', '.join(MASK_TOKENS)}; train another tokenizer, or leave out "
                "masked_lm"
            )
        return cls(rate, mask, tokenizer.vocabulary, frame)

    def __call__(
        self, views: Sequence[Segments], groups: Sequence[Group], generator: Generator
    ) -> tuple[Masked, ...]:
        """A masked copy of each micro-batch that `groups` describes.

        The draws depend only on the segments and the generator, not on how the
        segments are grouped into micro-batches.
        """
        pieces = split(views)
        lengths = np.array([len(piece) for piece in pieces], np.int32)
        tokens = np.concatenate(pieces)
        chosen = self._chosen(lengths, generator)
        masked = self._replaced(tokens, chosen, generator)
        ends = np.cumsum(lengths)[:-1]
        positions = [np.flatnonzero(part) for part in np.split(chosen, ends)]
        answers = [p[at] for p, at in zip(pieces, positions, strict=True)]
        places = np.concatenate([view.places for view in views])
        inputs = np.split(masked, ends)
        copies = []
        for group in groups:
            tokens = microbatch(group, inputs, places)
            wide = group._replace(width=self.most(group.width))  # as its answers
            wanted = filled(wide, positions), filled(wide, answers, fill=-1)
            copies.append(Masked(tokens, *wanted))
        return tuple(copies)

    def most(self, width: int) -> int:
        """The number of tokens to choose in the longest segment of this width."""
        return int(self._counts(np.array([width]))[0])

    def _counts(self, lengths: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The number of tokens to choose in segments of these lengths."""
        text = np.maximum(lengths - self.frame.special, 0)
        wanted = np.maximum(np.round(self.rate * text), 1).astype(np.int64)
        return np.minimum(wanted, text)

    def _chosen(
        self, lengths: Int[np.ndarray, " n"], generator: Generator
    ) -> Bool[np.ndarray, " y"]:
        """True where a token is to be predicted, in all segments laid end to end."""
        draws = generator.random(int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        place = np.arange(len(draws)) - np.repeat(starts, lengths)
        behind = np.repeat(lengths, lengths) - place
        special = place < len(self.frame.prefix)
        special |= behind <= len(self.frame.suffix)
        draws[special] = 2.0
        segment = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((draws, segment))
        chosen = np.zeros(len(draws), bool)
        chosen[order] = place < np.repeat(self._counts(lengths), lengths)
        return chosen

    def _replaced(
        self,
        tokens: Int[np.ndarray, " y"],
        chosen: Bool[np.ndarray, " y"],
        generator: Generator,
    ) -> Int[np.ndarray, " y"]:
        """The tokens that the encoder reads: `tokens` after masking."""
        draws = generator.random(len(tokens))
        substitutes = generator.integers(
            self.vocabulary, size=len(tokens), dtype=np.int32
        )
        masked = np.where(chosen & (draws < SHOWN), self.mask, tokens)
        changed = chosen & (draws >= SHOWN) & (draws < CHANGED)
        return np.where(changed, substitutes, masked).astype(np.int32)
