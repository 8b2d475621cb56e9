"""How well a trained encoder predicts masked tokens of new documents."""

import functools
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.data.masking import Masking
from docjax.data.microbatches import groups
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model.document_model import COUNTS, DocumentModel
from docjax.model.inference import windows
from docjax.types import Document, Masked, Segments


def token_loss(
    model: DocumentModel, documents: Iterable[Document], rate: float, seed: int
) -> tuple[float, float, int]:
    """The summed cross-entropy of masked tokens, the number of right predictions, and
    the number of masked tokens.

    Tokens are masked as in training, a share `rate` of every segment that the model
    reads. Equal documents and seeds mask equal tokens, whatever the model's devices.

    Raises:
      UserError: for an encoder or a tokenizer that cannot predict tokens.
    """
    segment = model.encoder.segment
    if not segment.masked_lm:
        raise UserError(
            "this model predicts no tokens: train it with --config=masked_lm, or with "
            "--config.encoder.segment.masked_lm=True"
        )
    masking = Masking.of(model.tokenizer, rate, model.limits.segment_tokens)
    total, count = np.zeros(2), 0
    for number, window in enumerate(windows(model.read(documents, _counts()))):
        generator = np.random.default_rng((seed, number))
        for masked in _masked(model, masking, window, generator):
            sums = _sums(model.encoder, model.params["segment"], masked)
            total += np.asarray(sums, np.float64)
            count += int((masked.answers >= 0).sum())
    return float(total[0]), float(total[1]), count


def _counts() -> dict[str, int]:
    return dict.fromkeys(COUNTS, 0)


def _masked(
    model: DocumentModel,
    masking: Masking,
    window: list[Segments],
    generator: np.random.Generator,
) -> Iterable[Masked]:
    """The micro-batches of a window of documents, on the model's devices."""
    inference = model.inference()
    lengths = np.concatenate([document.lengths for document in window])
    grouped = groups(lengths, inference.height, inference.widths)
    rows = NamedSharding(inference.mesh, P("data"))
    put = lambda array: jax.make_array_from_callback(
        array.shape, rows, lambda index: array[index]
    )
    for masked in masking(window, grouped, generator):
        yield jax.tree.map(put, masked)


@functools.partial(jax.jit, static_argnums=0)
def _sums(encoder: DocumentEncoder, segment: Any, masked: Masked) -> Any:
    inputs = *masked.microbatch, masked.positions, masked.answers
    params = {"params": {"segment": segment}}
    return encoder.apply(params, *inputs, method="token_loss")
