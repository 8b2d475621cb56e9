"""Tokenizers, loaded from a model or trained on the corpus.

`units.py` turns documents into tokens; `corpus.py` stores the tokens on disk.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import (
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from docjax.errors import UserError
from docjax.storage import atomic
from docjax.types import Frame

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")  # RoBERTa's, as ids 0 to 4
FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")  # any of these
SPARE_ROWS = 1024  # a model may round its table up by as many rows


class Tokenizer:
    """Turns texts into token ids, without truncation and padding.

    Attributes:
      backend: the `tokenizers.Tokenizer`.
      vocabulary: the number of ids: the highest id plus 1.
      prefix, suffix: ids of the special tokens around one text, int32.
      sha256: the hash of the tokenizer's JSON.
      prompt_length: the special tokens and those of a prompt at the beginning of a
        segment, as sentence-transformers counts them; 0 without a prompt.
    """

    prompt_length = 0

    def __init__(self, backend: tokenizers.Tokenizer):
        backend.no_truncation()  # a file may set both: MiniLM's cuts at 128
        backend.no_padding()
        ids = backend.get_vocab(with_added_tokens=True)
        self.backend = backend
        self.vocabulary = max(ids.values()) + 1
        self.prefix, self.suffix = _special_ids(backend)
        self.sha256 = hashlib.sha256(backend.to_str().encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The ids (int32) of each text, without special tokens."""
        encoded = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, np.int32) for encoding in encoded]

    def encode_with_spans(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The ids of one text, and the characters of each token: int64 [t 2], from and
        to."""
        encoded = self.backend.encode(text, add_special_tokens=False)
        spans = np.array(encoded.offsets, np.int64).reshape(-1, 2)
        return np.array(encoded.ids, np.int32), spans

    def frame(self, limit: int) -> Frame:
        """The special tokens around a segment of at most `limit` tokens. Raises
        UserError if the limit leaves no room for a token of text."""
        frame = Frame(self.prefix, self.suffix, limit)
        if frame.room < 1:
            raise UserError(
                f"limits.segment_tokens {limit}: a segment needs more than its "
                f"{frame.special} special tokens; raise the limit"
            )
        return frame

    def lowercased(self) -> "Tokenizer":
        """A copy of this tokenizer that reads texts in small letters."""
        backend = tokenizers.Tokenizer.from_str(self.backend.to_str())
        existing = [backend.normalizer] if backend.normalizer else []
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *existing])
        return Tokenizer(backend)

    def save(self, path: Path) -> None:
        """Writes one file; the usual name is tokenizer.json."""
        with atomic.partial(path) as partial:
            self.backend.save(str(partial))


def load_tokenizer(path_or_name: str | Path, lowercase: bool = False) -> Tokenizer:
    """Loads the tokenizer of a folder, of a tokenizer.json, or of a Hugging Face name.

    With `lowercase`, the tokenizer reads all texts in small letters. Raises UserError
    if no tokenizer is there, or it cannot be read or downloaded.
    """
    path = Path(path_or_name)
    file = path if path.is_file() else path / "tokenizer.json"
    if file.is_file():
        tokenizer = _read(file)
    elif path.is_dir() and not any(f for name in FILES for f in path.glob(name)):
        raise UserError(
            f"{path}: no tokenizer there; the folder needs one of {', '.join(FILES)}"
        )
    else:
        tokenizer = _from_transformers(str(path))
    return tokenizer.lowercased() if lowercase else tokenizer


def train_tokenizer(texts: Iterable[str], vocabulary: int = 8192) -> Tokenizer:
    """Byte-level BPE of at most `vocabulary` tokens, with RoBERTa's special tokens.

    A small corpus gives fewer tokens: `Tokenizer.vocabulary` is the size for tables.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocabulary < len(alphabet) + len(SPECIAL):
        raise UserError(
            f"vocabulary={vocabulary}: byte-level BPE needs "
            f"{len(alphabet) + len(SPECIAL)} tokens at least"
        )
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(alphabet),
    )
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=False, add_prefix_space=True
    )
    return Tokenizer(backend)


def check_fits(tokenizer: Tokenizer, vocabulary: int, loaded: bool = False) -> None:
    """Raises UserError if a word table of `vocabulary` rows does not fit the tokenizer.

    The table needs a row for every token. In `loaded` weights, it may have at most
    SPARE_ROWS further rows: a larger table belongs to another tokenizer.
    """
    spare = vocabulary - tokenizer.vocabulary
    if spare < 0 or (loaded and spare > SPARE_ROWS):
        raise UserError(
            f"the tokenizer has {tokenizer.vocabulary:,} tokens, the encoder's word "
            f"table has {vocabulary:,} rows: they are not of one model; take the "
            "tokenizer of the weights' folder, or set the encoder's vocabulary"
        )


def _special_ids(backend: tokenizers.Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the special tokens before and after one text."""
    bare = backend.encode("a", add_special_tokens=False).ids
    full = backend.encode("a").ids
    added = len(full) - len(bare)
    start = next(i for i in range(added + 1) if full[i : i + len(bare)] == bare)
    end = start + len(bare)
    return np.array(full[:start], np.int32), np.array(full[end:], np.int32)


def _read(file: Path) -> Tokenizer:
    try:
        return Tokenizer(tokenizers.Tokenizer.from_file(str(file)))
    except Exception as error:  # noqa: BLE001 the library raises no narrower class
        raise UserError(f"{file}: not a tokenizer file ({error})") from None


def _from_transformers(name: str) -> Tokenizer:
    from transformers import AutoTokenizer  # slow to import, and rarely needed

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"tokenizer {name!r}: no such folder, and not on the hub or no network; "
            f"give a folder that holds tokenizer.json ({reason})"
        ) from None
    if not tokenizer.is_fast:
        raise UserError(
            f"tokenizer {name!r}: has no tokenizer.json form; convert it to one"
        )
    return Tokenizer(tokenizer.backend_tokenizer)
