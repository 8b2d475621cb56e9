"""How well a trained encoder predicts masked tokens of new documents."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from docjax.data.masking import Masking
from docjax.data.microbatches import groups
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model.inference import Inference, windows
from docjax.types import Masked, Segments


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
        for masked in _masked(inference, masking, window, generator):
            sums = _sums(inference.encoder, params["segment"], masked)
            total += np.asarray(sums[:2], np.float64)
            count += int(sums[2])
    return float(total[0]), float(total[1]), count


def _masked(
    inference: Inference,
    masking: Masking,
    window: list[Segments],
    generator: np.random.Generator,
) -> Iterator[Masked]:
    """The micro-batches of a window of documents, on the devices."""
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
    """The loss, the right predictions, and the masked tokens of a micro-batch."""
    inputs = *masked.microbatch, masked.positions, masked.answers
    params = {"params": {"segment": segment}}
    loss, right = encoder.apply(params, *inputs, method="token_loss")
    return loss, right, (masked.answers >= 0).sum()
