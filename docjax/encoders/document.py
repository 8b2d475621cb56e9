"""The two levels joined: segments to vectors, segment vectors to document vectors."""

import functools
import re
from collections.abc import Iterable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.traverse_util import flatten_dict, unflatten_dict
from jaxtyping import Array, Float, Int, Key

from docjax.types import DOCUMENT, QUERY, Graphs, ModelBatch


class DocumentEncoder(nn.Module):
    """A segment encoder and a document encoder, with an optional training head.

    The segment encoder knows nothing of documents, so it can run in micro-batches. The
    head, such as a classifier, serves training and predictions; embeddings leave the
    head out.

    frozen: a regular expression. Parameters whose path begins with a match are not
    trained. "segment/" freezes the whole segment encoder, which then reads the units of
    the corpus once.
    """

    segment: nn.Module
    document: nn.Module
    head: nn.Module | None = None
    frozen: str = ""

    @property
    def sparse(self) -> bool | None:
        return self.document.sparse

    @property
    def classifies(self) -> bool:
        """Whether there is a head that gives classes."""
        return self.head is not None and self.head.classifies

    @property
    def parts(self) -> int:
        """Vectors of a document, side by side; a query has one."""
        return self.document.parts

    @property
    def nested(self) -> bool:
        """Whether `views` gives the views of the mean alone, then those of the sum."""
        return self.document.nested

    @property
    def inner_segment(self) -> nn.Module:
        """The segment encoder; with towers, the encoder inside of each tower."""
        return self.segment.encoder if self.segment.has_towers else self.segment

    @property
    def segment_is_frozen(self) -> bool:
        """Whether `frozen` matches all parameters of the segment encoder."""
        if not self.frozen:
            return False
        segment = {"segment": param_shapes(self)["segment"]}
        paths = flatten_dict(segment, sep="/")
        return all(re.match(self.frozen, path) for path in paths)

    def towers(self, kinds: tuple[str, ...]) -> tuple[int, ...]:
        """The tower that reads each view; () for a segment encoder without towers."""
        return self.segment.of_views(kinds) if self.segment.has_towers else ()

    def tower(self, kind: str) -> int | None:
        """The tower that reads documents or queries; None without towers."""
        return self.segment.of_kind(kind) if self.segment.has_towers else None

    def segments(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        places: Int[Array, "n 2"],
        keys: jax.Array | None = None,
        tower: int | None = None,
    ) -> Float[Array, "n d"]:
        """Segment vectors; `keys` [n] turn dropout on."""
        if self.segment.has_towers:
            return self.segment(tokens, lengths, places, keys, tower or 0)
        return self.segment(tokens, lengths, places, keys)

    def documents(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        places: Int[Array, "*s p 2"],
        graphs: Graphs,
    ) -> Float[Array, "*s f"]:
        """Document vectors from segment vectors."""
        return self.document(vectors, lengths, places, graphs)

    def queries(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s f"]:
        """Query vectors from the vectors of single segments."""
        return self.document.query(vectors)

    def vectors(self, batch: ModelBatch) -> Float[Array, "b f"]:
        """The vector of each document or query of a batch."""
        kind = QUERY if batch.rows is None else DOCUMENT
        read = batch.tokens, batch.lengths, batch.places
        segments = self.segments(*read, tower=self.tower(kind))
        if batch.rows is None:
            return self.queries(segments)
        given = segments, batch.lengths, batch.places
        return self.documents(*(_at(x, batch.rows) for x in given), batch.graphs)

    def views(
        self,
        vectors: Float[Array, "v b p d"],
        lengths: Int[Array, "v b p"],
        places: Int[Array, "v b p 2"],
        graphs: Graphs,
        kinds: tuple[str, ...],
        keys: Key[Array, " b"] | None = None,
    ) -> Float[Array, "_ b f"]:
        """The vectors of all views; `kinds` tells documents from queries.

        The vectors of queries are repeated where a document has several.
        """
        if QUERY not in kinds:
            return self.document.views(vectors, lengths, places, graphs, keys)
        numbers = [v for v, kind in enumerate(kinds) if kind == DOCUMENT]
        take = lambda array: array[jnp.array(numbers, int)]
        part = jax.tree.map(take, (vectors, lengths, places, graphs))
        documents = iter(self.document.views(*part, keys) if numbers else ())
        of_views = [
            next(documents) if v in numbers else self.queries(vectors[v, :, 0])
            for v in range(len(kinds))
        ]
        widest = max(each.shape[-1] for each in of_views)
        return jnp.stack([_repeated(each, widest) for each in of_views])

    def outputs(
        self, documents: Float[Array, "v b d"], key: jax.Array | None = None
    ) -> Float[Array, "_ b f"]:
        """What the objective reads: the views after the head, which may append more."""
        return documents if self.head is None else self.head(documents, key)

    def token_loss(self, *inputs: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """See `TokenEncoder.token_loss`."""
        return self.segment.token_loss(*inputs)

    def attention(self, *inputs: Any) -> list[Float[Array, "*s h i i"]]:
        """Each layer's attention over the nodes, see `GraphAttention.nodes`."""
        return self.document.nodes(*inputs)[1]

    def cross_attention(
        self, *inputs: Any
    ) -> tuple[Float[Array, "p d"], Float[Array, "p q"]]:
        """See `ChunkEncoder.cross_attention`."""
        return self.document.cross_attention(*inputs)

    def predictions(self, vectors: Float[Array, "*s f"]) -> Int[Array, "*s"]:
        """The head's class for each document vector."""
        return self.head(vectors).argmax(-1)

    def __call__(
        self, tokens: Int[Array, "n t"], lengths: Int[Array, " n"]
    ) -> Float[Array, "_ b f"]:
        """Encodes one document; initialisation thereby reaches every parameter."""
        places = jnp.zeros((len(lengths), 2), jnp.int32)
        vectors = self.segments(tokens, lengths, places)[None, None]
        nodes = vectors.shape[2] + 1
        graphs = Graphs(adjacency=jnp.ones((1, 1, nodes, nodes), bool))
        if self.sparse:
            graphs = Graphs(edges=jnp.zeros((1, 1, 1, 2), jnp.int32))
        light = lengths[None, None], places[None, None], graphs
        return self.outputs(self.views(vectors, *light, kinds=(DOCUMENT,)))


def fresh_params(encoder: DocumentEncoder, seed: int, known: Iterable[str] = ()) -> Any:
    """Random parameters of an encoder, without those at the paths `known`: these are
    not computed, and the others do not depend on them."""
    return _init(encoder, jax.random.key(seed), frozenset(known))


def param_shapes(encoder: DocumentEncoder) -> Any:
    """The shapes of an encoder's parameters."""
    return jax.eval_shape(lambda: fresh_params(encoder, 0))


def without_segment(params: Any) -> Any:
    """The parameters of all but the segment encoder; None of None."""
    if params is None:
        return None
    return {name: part for name, part in params.items() if name != "segment"}


@functools.partial(jax.jit, static_argnums=(0, 2))
def _init(encoder: DocumentEncoder, key: jax.Array, known: frozenset[str]) -> Any:
    tokens, lengths = jnp.zeros((1, 8), jnp.int32), jnp.full((1,), 8)
    params = flatten_dict(encoder.init(key, tokens, lengths)["params"], sep="/")
    return unflatten_dict(
        {path: array for path, array in params.items() if path not in known}, sep="/"
    )


def _at(array: Array, rows: Int[Array, "b p"]) -> Array:
    """The rows of an array; zeros for the row -1."""
    rows = jnp.where(rows < 0, len(array), rows)
    return array.at[rows].get(mode="fill", fill_value=0)


def _repeated(vectors: Float[Array, "*s d"], width: int) -> Float[Array, "*s {width}"]:
    """Vectors repeated until they have `width` numbers."""
    return jnp.concatenate([vectors] * (width // vectors.shape[-1]), axis=-1)
