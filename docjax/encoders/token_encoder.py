"""What all transformers share: from the states of tokens to a vector of the segment.

The module of each family gives the states; `layers.PostNorm` does so for those with
BERT's layers.
"""

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from docjax.encoders.attention import attention
from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.errors import UserError
from docjax.kernels import unit

POOLINGS = ("first", "mean", None)
PROJECTIONS = {"identity": lambda x: x, "tanh": jnp.tanh}
DTYPES = ("float32", "bfloat16")


class TokenEncoder(SegmentDefaults):
    """A segment encoder that has a state of each token.

    A segment's vector is the state of its first token or the mean over its real tokens
    (`pooling`: "first" or "mean"; None: as `init` asks, and the mean from scratch).
    A dense layer may follow, as in LaBSE and INSTRUCTOR: `projection` is its width, 0
    for none, and `projection_activation` "identity" or "tanh". `normalize` scales the
    vector to length 1, as many sentence encoders do. `dtype` "bfloat16" multiplies and
    keeps activations in bfloat16; parameters, softmax, LayerNorm and sums stay float32.
    `attention` names a kernel of `attention.py`, for the encoders that call it.
    `dropout` is that of hidden states. `attention_dropout` drops attention weights, 0.1
    in most papers: no fast kernel of a GPU does this, so 0 is the default.
    `masked_lm` adds the layers that predict masked tokens. `words` is the width of
    `WordVectors`, which follow the transformer's vector; 0 leaves them out. `left_out`
    first tokens of a segment are left out of the mean: those of a prompt.

    A subclass has `embeddings`, `predict` if `masked_lm`, `states`, and what
    `layers.add_after_pooling` adds.
    """

    reads_prompts = True
    # Keywords that a config chooses; weights decide all others.
    chosen = (
        *("dropout", "attention_dropout", "pooling", "normalize", "dtype"),
        *("attention", "masked_lm", "words", "left_out"),
    )
    vocabulary: int = 30522
    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072
    positions: int = 512
    position_offset: int = 0
    epsilon: float = 1e-12
    activation: str = "gelu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    pooling: str | None = "first"
    projection: int = 0
    projection_activation: str = "identity"
    normalize: bool = False
    dtype: str = "float32"
    attention: str = "auto"
    masked_lm: bool = False
    words: int = 0
    left_out: int = 0

    def __call__(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "n d"]:
        """One float32 vector per row; exactly zero where the length is 0.

        `lengths` counts each row's real tokens; padding follows them. `keys`, one per
        row, turn dropout on.

        Raises:
          UserError: if rows are longer than the encoder's positions.
        """
        if self.masked_lm and self.is_initializing():
            zeros = jnp.zeros((len(tokens), 1), jnp.int32)
            self.token_loss(tokens, lengths, places, zeros, zeros)
        if self.pooling == "first":
            x = self.states(tokens, lengths, places, keys, first=True)[:, 0]
            x = jnp.where(lengths[:, None] > 0, x.astype(jnp.float32), 0)
        else:
            x = self.hidden_states(tokens, lengths, places, keys)
            x = x[:, self.left_out :].sum(1)
            x = x / jnp.maximum(lengths - self.left_out, 1)[:, None]
        if self.projection:
            x = PROJECTIONS[self.projection_activation](self.project(x))
            x = jnp.where(lengths[:, None] > 0, x, 0)
        x = unit(x) if self.normalize else x
        if self.words:
            x = jnp.concatenate([x, self.of_words(tokens, lengths)], axis=-1)
        return x

    def hidden_states(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None = None,
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "n t d"]:
        """The last layer's float32 state of each token; exactly zero at padding."""
        x = self.states(tokens, lengths, places, keys).astype(jnp.float32)
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        return jnp.where(real[:, :, None], x, 0)

    def token_loss(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None,
        positions: Int[Array, "n a"],
        answers: Int[Array, "n a"],
        keys: Key[Array, " n"] | None = None,
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The summed cross-entropy of masked tokens, and the number of right ones.

        positions: where each row's masked tokens are; answers: their ids, -1 if unused.
        """
        scores = self.token_scores(tokens, lengths, places, positions, keys)
        answers = answers.reshape(-1)
        real, target = answers >= 0, jnp.maximum(answers, 0)
        picked = jnp.take_along_axis(scores, target[:, None], axis=1)[:, 0]
        losses = jax.nn.logsumexp(scores, axis=-1) - picked
        right = (scores.argmax(-1) == target) & real
        return jnp.where(real, losses, 0).sum(), right.sum().astype(jnp.float32)

    def token_scores(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"] | None,
        positions: Int[Array, "n a"],
        keys: Key[Array, " n"] | None = None,
    ) -> Float[Array, "m r"]:
        """The scores of the vocabulary at `positions`, row after row: m = n * a."""
        states = self.hidden_states(tokens, lengths, places, keys)
        masked = jnp.take_along_axis(states, positions[..., None], axis=1)
        words = self.variables["params"]["embeddings"]["tokens"]["embedding"]
        masked = masked.reshape(-1, self.width).astype(self.dtype)
        return self.predict(masked, jnp.asarray(words))

    def states(self, tokens, lengths, places, keys, first=False):
        """The states of all tokens, of any value at padding; `first`: of the first."""
        raise NotImplementedError

    @nn.nowrap
    def attend_at(self, site: int, **options: Any) -> Callable:
        """`attention` with this encoder's kernel, and its dropout at `site`."""
        fixed = dict(site=site, rate=self.attention_dropout, kernel=self.attention)
        return functools.partial(attention, **fixed, **options)

    @nn.nowrap
    def with_layers(self, count: int) -> "TokenEncoder":
        """The same encoder with its first `count` layers alone."""
        return self.clone(layers=count)

    @nn.nowrap
    def in_dtype(self, dtype: str) -> "TokenEncoder":
        return self.clone(dtype=dtype)

    @nn.nowrap
    def check_training(self, tokens: int) -> None:
        self.check_length(tokens)

    @nn.nowrap
    def check_length(self, tokens: int) -> None:
        """Raises UserError for rows longer than the encoder's positions."""
        room = self.positions - self.position_offset
        if tokens > room:
            raise UserError(
                f"segments have {tokens} tokens, but the encoder has room for {room}: "
                "lower limits.segment_tokens"
            )

    def check_keywords(self, activations: tuple[str, ...]) -> None:
        """Raises UserError for a keyword that cannot work."""
        for value, name, valid in (
            (self.activation, "activation", activations),
            (self.pooling, "pooling", POOLINGS),
            (self.projection_activation, "projection_activation", tuple(PROJECTIONS)),
            (self.dtype, "dtype", DTYPES),
        ):
            if value not in valid:
                names = ", ".join(map(str, valid))
                raise UserError(f"{name} {value!r} is not one of {names}")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 0.99:
                raise UserError(f"{name} {getattr(self, name)} is not in [0, 0.99)")

    def check_heads(self) -> None:
        """Raises UserError unless the heads can share the width equally."""
        if self.width % self.heads:
            raise UserError(
                f"width {self.width} is not a multiple of heads {self.heads}: "
                "set heads to a divisor of width"
            )
