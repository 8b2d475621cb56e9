"""The two levels joined: segments to vectors, segment vectors to document vectors."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class DocumentEncoder(nn.Module):
    """A segment encoder and a document encoder, with an optional training head.

    The segment encoder knows nothing of documents, so that it can run in
    micro-batches. The head (a classifier, say) is used in training and for
    predictions; embeddings are taken before it. A `frozen` segment encoder is not
    trained, and reads the segments of the corpus once.
    """

    segment: nn.Module
    document: nn.Module
    head: nn.Module | None = None
    frozen: bool = False

    @property
    def sparse(self) -> bool:
        """Whether the document encoder reads graphs as edges."""
        return getattr(self.document, "sparse", False)

    @property
    def classifies(self) -> bool:
        """Whether there is a head that gives classes."""
        return hasattr(self.head, "classes")

    def segments(
        self,
        tokens: Int[Array, "n t"],
        lengths: Int[Array, " n"],
        keys: jax.Array | None = None,
    ) -> Float[Array, "n d"]:
        """Segment vectors; `keys` [n] turn dropout on."""
        return self.segment(tokens, lengths, keys)

    def documents(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        adjacency: Bool[Array, "*s i i"] | None = None,
        edges: Int[Array, "*s e 2"] | None = None,
    ) -> Float[Array, "*s f"]:
        """Document vectors from segment vectors."""
        return self.document(vectors, lengths, adjacency, edges)

    def queries(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s f"]:
        """Query vectors from the vectors of single segments."""
        return self.document.query(vectors)

    def views(
        self, vectors, lengths, adjacency, edges, queries: tuple[int, ...] = ()
    ) -> Float[Array, "v b f"]:
        """Document vectors of all views, those in `queries` encoded as queries."""
        if not queries:
            return self.documents(vectors, lengths, adjacency, edges)
        out = [
            self.queries(vectors[v, :, 0])
            if v in queries
            else self.documents(
                vectors[v],
                lengths[v],
                None if adjacency is None else adjacency[v],
                None if edges is None else edges[v],
            )
            for v in range(len(vectors))
        ]
        return jnp.stack(out)

    def outputs(
        self, documents: Float[Array, "v b d"], key: jax.Array | None = None
    ) -> Float[Array, "_ b f"]:
        """What the objective reads: the views, through the head if there is one; the
        head may add what it predicts of them."""
        return documents if self.head is None else self.head(documents, key)

    def attention(self, vectors, lengths, adjacency) -> list[Float[Array, "*s h i i"]]:
        """Each layer's attention over the nodes."""
        return self.document.nodes(vectors, lengths, adjacency)[1]

    def predictions(self, vectors: Float[Array, "*s f"]) -> Int[Array, "*s"]:
        """The head's class for each document vector."""
        return self.head(vectors).argmax(-1)

    def __call__(self, tokens, lengths):
        """Touches every parameter once, for initialisation: one document."""
        vectors = self.segments(tokens, lengths)[None, None]
        nodes = vectors.shape[2] + 1
        graph = jnp.ones((1, 1, nodes, nodes), bool)
        edges = jnp.zeros((1, 1, 1, 2), jnp.int32)
        graph = (None, edges) if self.sparse else (graph, None)
        return self.outputs(self.views(vectors, lengths[None, None], *graph))


def fresh_params(encoder: DocumentEncoder, seed: int) -> Any:
    """Random parameters of an encoder."""
    return _init(encoder, jax.random.key(seed))


@functools.partial(jax.jit, static_argnums=0)
def _init(encoder: DocumentEncoder, key: jax.Array) -> Any:
    tokens, lengths = jnp.zeros((1, 8), jnp.int32), jnp.full((1,), 8)
    return encoder.init(key, tokens, lengths)["params"]
