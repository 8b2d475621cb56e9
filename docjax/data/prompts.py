"""Words that a model expects before its texts: "query: ", or an instruction.

A prompt stands before the text of every segment, after the special tokens: each segment
is a text of its own for the encoder. So a long document has the prompt as often as it
has segments, and a segment has less room for text.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError
from docjax.types import Frame

OF_DOCUMENTS = ("document", "passage", "corpus")  # as in sentence-transformers


def document_prompt(prompts: Mapping[str, str], default: str | None) -> str:
    """The words before each segment of a document; "" without a prompt.

    The first name of OF_DOCUMENTS among `prompts` is used, or else `default`.
    """
    own = (prompts[name] for name in OF_DOCUMENTS if name in prompts)
    return next(own, "") or prompts.get(default or "", "")


def prompted(tokenizer: Tokenizer, prompt: str | None) -> Tokenizer:
    """The tokenizer with a prompt; without one the tokenizer itself."""
    return Prompted(tokenizer, prompt) if prompt else tokenizer


class Prompted(Tokenizer):
    """A tokenizer that puts a prompt before every segment.

    A text gets the tokens that it has behind the prompt. White space at the end of the
    prompt belongs to the text: RoBERTa joins it to the next word.

    Attributes:
      prompt: the words, with the white space behind them.
    """

    def __init__(self, tokenizer: Tokenizer, prompt: str):
        self.backend, self.vocabulary = tokenizer.backend, tokenizer.vocabulary
        self.prompt, self.suffix = prompt, tokenizer.suffix
        self._words, whole = tokenizer.encode([prompt.rstrip(), prompt])
        self.prefix = np.concatenate([tokenizer.prefix, self._words])
        self.prompt_length = len(tokenizer.prefix) + len(whole)
        facts = f"{tokenizer.sha256} {prompt}"
        self.sha256 = hashlib.sha256(facts.encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids of each text behind the prompt, without special tokens and prompt."""
        behind = super().encode([self.prompt + text for text in texts])
        joined = [row for row, ids in enumerate(behind) if not self._begins(ids)]
        found = [ids[len(self._words) :] for ids in behind]
        for row, ids in zip(joined, super().encode([texts[row] for row in joined])):
            found[row] = ids
        return found

    def encode_with_spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The ids of a text, as `encode` gives them, and the characters of each."""
        ids, spans = super().encode_with_spans(self.prompt + text)
        if not self._begins(ids):
            return super().encode_with_spans(text)
        first = len(self._words)
        return ids[first:], np.maximum(spans[first:] - len(self.prompt), 0)

    def frame(self, limit: int) -> Frame:
        """The special tokens and the prompt around a segment of `limit` tokens. Raises
        UserError if the limit leaves no room for a token of text."""
        frame = Frame(self.prefix, self.suffix, limit)
        if frame.room < 1:
            raise UserError(
                f"the prompt {self.prompt[:40]!r} has {len(self._words)} tokens, so that "
                f"a segment of {limit} tokens has no room for text: give a shorter prompt"
            )
        return frame

    def _begins(self, ids: np.ndarray) -> bool:
        """Whether ids begin with those of the prompt; else text and prompt are joined
        into one token, and the text is encoded alone."""
        return np.array_equal(ids[: len(self._words)], self._words)
