"""SMITH: a transformer over blocks of sentences, and its pre-training.

Yang et al., "Beyond 512 Tokens: Siamese Multi-depth Transformer-based Hierarchical
Encoder for Long-Form Document Matching", 2020. Sizes are those of the authors' code.
A block is `<s> ... </s></s>` with as many whole sentences as fit; a longer sentence is
cut off at the block's end, as in that code. The document's vector is that of the blocks
alone (the authors' mode "normal"). Axis letters: b documents, s blocks of a document, t
tokens of a block, a masked tokens of a block, m masked blocks, d width.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from jaxtyping import Array, Float, Int

from docjax.encoders.layers import SITES, Dense, Norm, Table, gelu
from docjax.encoders.transformer import Transformer
from docjax.kernels import unit

TOKENS = 32  # of a block
START, PADDING, END, MASK = 0, 1, 2, 4  # ids of `docjax.data.tokenizer`
SPECIAL = 3  # tokens of a block that are not text
RATE, MOST = 0.15, 5  # share and number of the masked tokens of a block
MASKED_BLOCKS = 2  # of a document
SCALE = 6.0  # of the cosine, as a logit


class OverBlocks(Transformer):
    """A transformer that reads vectors in place of tokens."""

    def setup(self) -> None:
        self.embeddings = Positioned(self.positions, self.epsilon)
        self.layer = [self._layer(1 + SITES * i) for i in range(self.layers)]


class Positioned(nn.Module):
    rows: int
    epsilon: float

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "b s d"], places: None
    ) -> Float[Array, "b s d"]:
        table = Table(self.rows, vectors.shape[-1], name="positions")()
        return Norm(self.epsilon, name="norm")(vectors + table[: vectors.shape[1]])


class Pooled(nn.Module):
    """BERT's pooler and a dense layer with ReLU; the result has length 1."""

    @nn.compact
    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        x = nn.tanh(Dense(x.shape[-1], name="pooler")(x))
        return unit(nn.relu(Dense(x.shape[-1], name="dense")(x)))


class Masked(NamedTuple):
    """Documents to pre-train on; -1 stands for nothing to predict."""

    tokens: Int[np.ndarray, "b s t"]  # with masked tokens
    positions: Int[np.ndarray, "b s a"]  # of the masked tokens
    answers: Int[np.ndarray, "b s a"]
    blocks: Int[np.ndarray, "b m"]  # numbers of the masked blocks


class Smith(nn.Module):
    vocabulary: int
    blocks: int = 48
    layers: int = 4
    document_layers: int = 3
    width: int = 256
    dropout: float = 0.1

    def setup(self) -> None:
        sizes = dict(
            width=self.width,
            heads=4,
            hidden=2 * self.width,
            position_offset=0,
            epsilon=1e-12,
            dropout=self.dropout,
        )
        self.words = Transformer(
            self.vocabulary, self.layers, positions=TOKENS, masked_lm=True, **sizes
        )
        self.documents = OverBlocks(
            1, self.document_layers, positions=self.blocks, **sizes
        )
        self.block_vector, self.document_vector = Pooled(), Pooled()
        self.masked_block = self.param(
            "masked_block", nn.initializers.normal(0.02), (self.width,)
        )
        self.predicted, self.norm = Dense(self.width), Norm(1e-12)

    def __call__(
        self, tokens: Int[Array, "b s t"], key: jax.Array | None = None
    ) -> Float[Array, "b d"]:
        """The vectors of documents, of length 1; a key turns dropout on."""
        if self.is_initializing():
            nothing = jnp.zeros((*tokens.shape[:2], MOST), int)
            self.pretraining(Masked(tokens, nothing, nothing, nothing[:, 0, :2]))
        vectors = self.block_vector(self._states(tokens, key)[:, 0])
        states = self._over_blocks(vectors.reshape(*tokens.shape[:2], -1), tokens, key)
        return self.document_vector(states[:, 0])

    def pretraining(
        self, given: Masked, key: jax.Array | None = None
    ) -> Float[Array, ""]:
        """The mean loss of masked words and that of masked blocks, added.

        The vector of a masked block is told from those of all masked blocks.
        """
        b, s, _ = given.tokens.shape
        states = self._states(given.tokens, key)
        at = jnp.maximum(given.positions, 0).reshape(b * s, -1, 1)
        chosen = jnp.take_along_axis(states, at, 1).reshape(-1, self.width)
        table = self.words.variables["params"]["embeddings"]["tokens"]["embedding"]
        scores = self.words.predict(chosen, jnp.asarray(table))
        loss = cross_entropy(scores, jnp.asarray(given.answers).reshape(-1))
        vectors = self.block_vector(states[:, 0]).reshape(b, s, -1)
        hidden = (given.blocks[:, :, None] == jnp.arange(s)).any(1)
        shown = jnp.where(hidden[..., None], self.masked_block, vectors)
        over = self._over_blocks(shown, given.tokens, key)
        at = jnp.maximum(given.blocks, 0)[..., None]
        theirs, asked = (
            jnp.take_along_axis(x, at, 1).reshape(-1, self.width)
            for x in (vectors, over)
        )
        scores = self.norm(gelu(self.predicted(asked))) @ theirs.T
        real = jnp.asarray(given.blocks).reshape(-1) >= 0
        rows = jnp.where(real, jnp.arange(len(real)), -1)
        return loss + cross_entropy(jnp.where(real, scores, -1e9), rows)

    def _states(
        self, tokens: Int[Array, "b s t"], key: jax.Array | None
    ) -> Float[Array, "n t d"]:
        rows = jnp.asarray(tokens).reshape(-1, tokens.shape[-1])
        keys = None if key is None else jax.random.split(key, len(rows))
        return self.words.hidden_states(rows, (rows != PADDING).sum(1), None, keys)

    def _over_blocks(
        self,
        vectors: Float[Array, "b s d"],
        tokens: Int[Array, "b s t"],
        key: jax.Array | None,
    ) -> Float[Array, "b s d"]:
        lengths = jnp.asarray(tokens[:, :, 0] != PADDING).sum(1)
        keys = None
        if key is not None:
            keys = jax.random.split(jax.random.fold_in(key, 1), len(vectors))
        return self.documents.states(vectors, lengths, None, keys)


def cross_entropy(
    scores: Float[Array, "n r"], answers: Int[Array, " n"]
) -> Float[Array, ""]:
    """The mean over the rows with an answer, which is not -1."""
    losses = optax.losses.softmax_cross_entropy_with_integer_labels(
        scores, jnp.maximum(answers, 0)
    )
    real = answers >= 0
    return jnp.where(real, losses, 0).sum() / jnp.maximum(real.sum(), 1)


def matching_loss(
    vectors: Float[Array, "2 b d"], labels: Int[Array, " b"]
) -> Float[Array, ""]:
    """Sigmoid cross-entropy of the label, with six times the cosine as logit."""
    cosines = (unit(vectors[0]) * unit(vectors[1])).sum(-1)
    return optax.losses.sigmoid_binary_cross_entropy(SCALE * cosines, labels).mean()


def blocks_of(
    sentences: Sequence[Int[np.ndarray, " t"]], most: int
) -> tuple[Int[np.ndarray, "s t"], int]:
    """The first `most` blocks of a document, and the number of tokens left out."""
    room, rows = TOKENS - SPECIAL, [[]]
    for sentence in sentences:
        if rows[-1] and len(rows[-1]) + len(sentence) > room:
            rows.append([])
        rows[-1].extend(sentence[:room].tolist())
    found = np.full((most, TOKENS), PADDING, np.int32)
    for row, tokens in zip(found, rows):
        row[: len(tokens) + SPECIAL] = [START, *tokens, END, END]
    kept = sum(map(len, rows[:most]))
    return found, sum(map(len, sentences)) - kept


def masked(
    tokens: Int[np.ndarray, "b s t"], vocabulary: int, generator: np.random.Generator
) -> Masked:
    """Chooses tokens and blocks to predict.

    Of the chosen tokens 80 % become the mask token and 10 % another token. Documents of
    fewer than 3 blocks keep their blocks.
    """
    lengths = np.maximum((tokens != PADDING).sum(-1) - SPECIAL, 0)
    counts = np.minimum(np.maximum(np.round(RATE * lengths), 1), MOST)
    counts = np.minimum(counts, lengths)
    place = np.arange(TOKENS)
    text = (place >= 1) & (place <= lengths[..., None])
    positions = first_drawn(text, counts, MOST, generator)
    answers = np.take_along_axis(tokens, np.maximum(positions, 0), -1)
    draws = generator.random(positions.shape)
    others = generator.integers(vocabulary, size=positions.shape)
    read = np.where(draws < 0.8, MASK, np.where(draws < 0.9, others, answers))
    changed = tokens.copy()
    at = (*np.nonzero(positions >= 0)[:-1], positions[positions >= 0])
    changed[at] = read[positions >= 0]
    real = lengths > 0
    counts = np.where(real.sum(-1) > MASKED_BLOCKS, MASKED_BLOCKS, 0)
    blocks = first_drawn(real, counts, MASKED_BLOCKS, generator)
    return Masked(changed, positions, np.where(positions >= 0, answers, -1), blocks)


def first_drawn(
    allowed: np.ndarray, counts: np.ndarray, most: int, generator: np.random.Generator
) -> np.ndarray:
    """For each row the numbers of `counts` random allowed places, then -1, to `most`."""
    draws = np.where(allowed, generator.random(allowed.shape), 2.0)
    order = draws.argsort(-1)[..., :most]
    return np.where(np.arange(most) < counts[..., None], order, -1).astype(np.int32)


@cache
def optimizer(rate: float) -> optax.GradientTransformation:
    """The same for all seeds, so that a step is compiled once."""
    return optax.adamw(rate, weight_decay=0.01)


@partial(jax.jit, static_argnums=0)
def initial(model: nn.Module, key: jax.Array, inputs: Array) -> Any:
    """Random parameters; the same model is compiled once."""
    return model.init(key, inputs)


@jax.jit
def pretraining_step(
    state: TrainState, given: Masked, key: jax.Array
) -> tuple[TrainState, Float[Array, ""]]:
    method = Smith.pretraining
    of = lambda params: state.apply_fn(params, given, key, method=method)
    loss, gradient = jax.value_and_grad(of)(state.params)
    return state.apply_gradients(grads=gradient), loss


def pretrained(
    model: Smith,
    tokens: Int[np.ndarray, "c s t"],
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
) -> Iterator[tuple[Any, float]]:
    """The parameters after each epoch, and its mean loss; at first those of the start.

    An epoch has whole batches of documents, in a random order.
    """
    generator, key = np.random.default_rng(seed), jax.random.key(seed)
    params = initial(model, key, tokens[:1])
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optimizer(rate))
    yield params, float("nan")
    for _ in range(epochs):
        losses = []
        used = len(tokens) // batch * batch or len(tokens)
        order = generator.permutation(len(tokens))[:used]
        for rows in order.reshape(-1, min(batch, used)):
            given = masked(tokens[rows], model.vocabulary, generator)
            state, loss = pretraining_step(
                state, given, jax.random.fold_in(key, state.step)
            )
            losses.append(loss)
        yield state.params, float(np.mean(losses))
