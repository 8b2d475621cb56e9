"""Graph attention over a document node and its segments (graph-roberta, Eq. 1-3).

Graphs of up to a few hundred nodes use dense, masked attention. Larger sparse graphs
use edges and segment sums. Both give the same vectors. `data/graphs.py` builds graphs.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph
from jaxtyping import Array, Float, Int

from docjax.encoders.document_defaults import DocumentDefaults
from docjax.errors import UserError
from docjax.kernels import EXACT
from docjax.types import Graphs


class GraphAttention(DocumentDefaults):
    """Segment vectors and a graph to one document vector.

    A segment's node is tanh(W s + b); the document's node is the mean of the segment
    nodes (Eq. 1, 2). `layers` graph attention layers follow (Eq. 3), with ELU between
    layers. A query is the node of one segment without attention.

    merge: "concat" gives each head width / heads, "mean" gives each head `width`.
    residual: "identity" or "linear" skip connection.
    sparse: whether graphs are read as edges; None: the size of the graphs decides
      (`docjax.data.microbatches.device_graphs`).
    """

    attends = True
    exported_as = "GraphAttention"
    width: int = 512
    layers: int = 2
    heads: int = 2
    merge: str = "concat"
    residual: str = "identity"
    bias: bool = True
    sparse: bool | None = None

    def setup(self) -> None:
        self._check()
        self.node = nn.Dense(self.width, precision=EXACT, name="node")
        given = self.width, self.heads, self.merge, self.residual, self.bias
        self.attend = [
            GraphAttentionLayer(*given, name=f"layer_{i}") for i in range(self.layers)
        ]

    def __call__(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        places: Int[Array, "*s p 2"] | None = None,
        graphs: Graphs | None = None,
    ) -> Float[Array, "*s f"]:
        """Document vectors; segments of length 0 are ignored."""
        del places
        return self.nodes(vectors, lengths, graphs or Graphs())[0][..., 0, :]

    def nodes(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        graphs: Graphs,
    ) -> tuple[Float[Array, "*s i f"], list[Array | None]]:
        """Vectors of all nodes, and each layer's attention [... h receiver sender].

        Attention is None if graphs are read as edges.
        """
        adjacency, edges = graphs
        if adjacency is None and edges is None:
            raise UserError("graph attention without a graph: set --config.graph.fn")
        mask = (lengths > 0)[..., None]
        nodes = jnp.where(mask, jnp.tanh(self.node(vectors)), 0)
        count = jnp.maximum(mask.sum(-2, keepdims=True), 1)
        document = nodes.sum(-2, keepdims=True) / count
        nodes = jnp.concatenate([document, nodes], axis=-2)
        weights = []
        for i, layer in enumerate(self.attend):
            nodes, weight = layer(nodes, adjacency, edges)
            weights.append(weight)
            if i + 1 < self.layers:
                nodes = nn.elu(nodes)
        return nodes, weights

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s f"]:
        return jnp.tanh(self.node(vectors))

    def _check(self) -> None:
        for value, name, valid in (
            (self.merge, "merge", ("concat", "mean")),
            (self.residual, "residual", ("identity", "linear")),
        ):
            if value not in valid:
                raise UserError(
                    f"encoder.document.{name} {value!r} is not one of "
                    f"{', '.join(valid)}"
                )
        if self.merge == "concat" and self.width % self.heads:
            raise UserError(
                f"width {self.width} is not a multiple of heads {self.heads}: change "
                "encoder.document.heads"
            )


class GraphAttentionLayer(nn.Module):
    """One layer of multi-head graph attention (Velickovic et al., 2018, Eq. 1-5).

    The score of sender j for receiver i is LeakyReLU(a_s . g_j + a_r . g_i); residual,
    bias and activation follow in this order.
    """

    width: int
    heads: int
    merge: str
    residual: str
    bias: bool

    @nn.compact
    def __call__(self, nodes, adjacency, edges):
        k = self.width // self.heads if self.merge == "concat" else self.width
        # Xavier with gain sqrt(2), as in the reference layer.
        init = nn.initializers.variance_scaling(2.0, "fan_avg", "normal")
        kernel = self.param("kernel", init, (nodes.shape[-1], self.heads * k))
        # The same initialisation for a tensor of shape (1, heads, k).
        spread = nn.initializers.normal(2.0 / (k * (self.heads + 1)) ** 0.5)
        sender = self.param("sender", spread, (self.heads, k))
        receiver = self.param("receiver", spread, (self.heads, k))
        sent = jnp.matmul(nodes, kernel, precision=EXACT)
        sent = sent.reshape(*nodes.shape[:-1], self.heads, k)
        from_sender = jnp.einsum("...ihk,hk->...ih", sent, sender, precision=EXACT)
        to_receiver = jnp.einsum("...ihk,hk->...ih", sent, receiver, precision=EXACT)
        if adjacency is not None:
            out, weights = _dense(sent, from_sender, to_receiver, adjacency)
        else:
            out, weights = _sparse(sent, from_sender, to_receiver, edges), None
        out = out.mean(-2) if self.merge == "mean" else out.reshape(*out.shape[:-2], -1)
        out = out + self._skip(nodes)
        if self.bias:
            out = out + self.param("bias", nn.initializers.zeros, (self.width,))
        return out, weights

    def _skip(self, nodes):
        if self.residual == "identity":
            return nodes
        return nn.Dense(self.width, use_bias=False, precision=EXACT, name="skip")(nodes)


def _dense(sent, from_sender, to_receiver, adjacency):
    """Attention over all pairs, masked; a node without neighbours gets zero."""
    scores = from_sender[..., None, :, :] + to_receiver[..., :, None, :]
    scores = jnp.moveaxis(nn.leaky_relu(scores, 0.2), -1, -3)
    edge = adjacency[..., None, :, :]
    scores = jnp.where(edge, scores, -1e30)
    weights = jnp.where(edge, jax.nn.softmax(scores, axis=-1), 0)
    return jnp.einsum("...hij,...jhk->...ihk", weights, sent, precision=EXACT), weights


def _sparse(sent, from_sender, to_receiver, edges):
    """The same attention over edges (sender, receiver); edges of -1 are ignored."""
    if sent.ndim > 3:
        return jax.vmap(_sparse)(sent, from_sender, to_receiver, edges)
    nodes = len(sent)
    senders, receivers = edges[:, 0], edges[:, 1]
    real = senders >= 0
    receivers = jnp.where(real, receivers, nodes)  # ignored edges end at an extra node
    scores = from_sender[senders] + to_receiver[jnp.minimum(receivers, nodes - 1)]
    scores = nn.leaky_relu(scores, 0.2)
    weights = jraph.segment_softmax(scores, receivers, nodes + 1)
    messages = jnp.where(real[:, None, None], weights[..., None] * sent[senders], 0)
    return jraph.segment_sum(messages, receivers, nodes + 1)[:nodes]
