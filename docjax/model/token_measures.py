"""What a trained encoder says of single tokens: guesses of masks, and attention."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from docjax.data.masking import Masking
from docjax.data.microbatches import groups
from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.first_token import first_token_attention
from docjax.errors import UserError
from docjax.model.inference import Inference, windows
from docjax.types import Masked, Segments, TokenAttention

STEP = 64  # segments are padded to multiples of it, so that few shapes are compiled
ATTENTION = jax.jit(first_token_attention, static_argnums=0)


def token_loss(
    inference: Inference,
    params: Any,
    documents: Iterable[Segments],
    masking: Masking,
    seed: int,
) -> tuple[float, float, int]:
    """The summed cross-entropy of masked tokens, the number of right predictions, and
    the number of masked tokens.

    Equal documents and seeds mask equal tokens, whatever the devices.

    Raises:
      UserError: for an encoder that cannot predict tokens.
    """
    if not inference.encoder.segment.masked_lm:
        raise UserError(
            "this model predicts no tokens: train it with --config=masked_lm, or with "
            "--config.encoder.segment.masked_lm=True"
        )
    total, count = np.zeros(2), 0
    for number, window in enumerate(windows(documents)):
        generator = np.random.default_rng((seed, number))
        lengths = np.concatenate([document.lengths for document in window])
        grouped = groups(lengths, inference.height, inference.widths)
        for masked in masking(window, grouped, generator):
            on_devices = jax.tree.map(inference.cut, masked)
            sums = _sums(inference.encoder, params["segment"], on_devices)
            total += np.asarray(sums[:2], np.float64)
            count += int(sums[2])
    return float(total[0]), float(total[1]), count


@functools.partial(jax.jit, static_argnums=0)
def _sums(encoder: DocumentEncoder, segment: Any, masked: Masked) -> Any:
    """The loss, the right predictions, and the masked tokens of a micro-batch."""
    inputs = *masked.microbatch, masked.positions, masked.answers
    params = {"params": {"segment": segment}}
    loss, right = encoder.apply(params, *inputs, method="token_loss")
    return loss, right, (masked.answers >= 0).sum()


def of_first_token(
    segment: Any, params: Any, tokenizer: Tokenizer, limit: int
) -> Callable[[str], TokenAttention]:
    """Reads what the first token of a text attends to, the mean over the heads.

    A text is read as far as it fits one segment of `limit` tokens; `params` are those
    of the encoder `segment`.

    Raises:
      UserError: if the segment encoder is not a plain transformer.
    """
    if not segment.shows_attention:
        raise UserError(
            f"{type(segment).__name__} has no attention of a first token: use a model "
            "whose encoder.segment is a Transformer, or leave the task out"
        )
    frame = tokenizer.frame(limit)

    def read(text: str) -> TokenAttention:
        ids, spans = tokenizer.encode_with_spans(text)
        ids, spans = ids[: frame.room], spans[: frame.room]
        tokens = np.concatenate([frame.prefix, ids, frame.suffix])
        width = min(-(-len(tokens) // STEP) * STEP, limit)
        padded = np.pad(tokens, (0, width - len(tokens)))[None]
        weights = ATTENTION(segment, params, padded, np.array([len(tokens)]))
        of_text = slice(len(frame.prefix), len(frame.prefix) + len(ids))
        return TokenAttention(np.asarray(weights)[0, :, of_text].mean(0), spans)

    return read
