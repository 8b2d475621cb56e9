"""The attention of the first token over the characters of a text."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from docjax.data.tokenizer import Tokenizer
from docjax.encoders.first_token import first_token_attention
from docjax.errors import UserError
from docjax.types import TokenAttention

STEP = 64  # segments are padded to multiples of it, so that few shapes are compiled


@dataclasses.dataclass(frozen=True, eq=False)
class FirstToken:
    """Reads what the first token of a text attends to, as far as the text fits one
    segment.

    Attributes:
      params: of the segment encoder.
      limit: tokens of the longest segment.

    Raises:
      UserError: if the segment encoder is not a plain transformer.
    """

    segment: Any
    params: Any
    tokenizer: Tokenizer
    limit: int

    def __post_init__(self) -> None:
        if not self.segment.shows_attention:
            raise UserError(
                f"{type(self.segment).__name__} has no attention of a first token: "
                "use a model whose encoder.segment is a Transformer, or leave the task "
                "out"
            )

    def __call__(self, text: str) -> TokenAttention:
        frame = self.tokenizer.frame(self.limit)
        ids, spans = self.tokenizer.encode_with_spans(text)
        ids, spans = ids[: frame.room], spans[: frame.room]
        tokens = np.concatenate([frame.prefix, ids, frame.suffix])
        width = min(-(-len(tokens) // STEP) * STEP, self.limit)
        padded = np.pad(tokens, (0, width - len(tokens)))[None]
        weights = _mean_over_heads(
            self.segment, self.params, padded, np.array([len(tokens)])
        )
        first = len(frame.prefix)
        return TokenAttention(np.asarray(weights)[first : first + len(ids)], spans)


@functools.partial(jax.jit, static_argnums=0)
def _mean_over_heads(
    segment: Any,
    params: Any,
    tokens: Int[Array, "1 t"],
    lengths: Int[Array, "1"],
) -> Float[Array, " t"]:
    return jnp.mean(first_token_attention(segment, params, tokens, lengths)[0], axis=0)
