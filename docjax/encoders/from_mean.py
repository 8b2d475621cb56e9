"""A document encoder that begins as the mean of the segment vectors.

Whatever a pretrained segment encoder knows is in the mean. A branch, such as graph
attention, begins at zero beside it: training adds to the mean and cannot lose it at the
start.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from docjax.encoders.pooling import weighted_mean
from docjax.encoders.weight_decay import COMPONENTS
from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.types import Graphs


class FromMean(nn.Module):
    """The mean of the segment vectors weighted by tokens, turned, plus a branch.

    branch: a document encoder whose vector is added after a linear layer that begins at
      zero; None: no branch.
    words: the width of the word vectors at the end of each segment vector. The mean of
      the transformer's vectors and the mean of the word vectors are then scaled to
      length 1 each, and the words get a share of the squared length: a parameter that
      begins at 0, that training sets to `share`, and that has no gradient.
    share: None: a run chooses it (`docjax/recipe/share.py`).
    normalize: scales the mean to length 1; None: as `init` asks, and not from scratch.
    turn: multiplies the mean by a square matrix, which training changes. It begins as a
      rotation, which leaves all cosines as they are and spreads the word vectors over
      all numbers of the vector.
    components: then rotates to the principal components of the run's documents
      (`docjax/recipe/components.py`), so that vectors can be cut to their first numbers.
    """

    exported_as = "FromMean"
    branch: nn.Module | None = None
    words: int = 0
    share: float | None = None
    normalize: bool | None = None
    turn: bool = False
    components: bool = False

    @property
    def words_alone(self) -> bool:
        return self.words > 0 and self.share == 1

    @property
    def chooses_share(self) -> bool:
        return self.words > 0 and self.share is None

    @property
    def unit_length(self) -> bool:
        return bool(self.words or self.normalize)

    @property
    def sparse(self) -> bool | None:
        return None if self.branch is None else self.branch.sparse

    @property
    def attends(self) -> bool:
        return self.branch is not None and self.branch.attends

    @property
    def joins_views(self) -> bool:
        return self.branch is not None and self.branch.joins_views

    def cross_attention(
        self, *inputs: Array
    ) -> tuple[Float[Array, "p d"], Float[Array, "p q"]]:
        """That of the branch, see `ChunkEncoder.cross_attention`."""
        return self.branch.cross_attention(*inputs)

    @nn.nowrap
    def check_run(self, config: Any) -> None:
        """Raises UserError for the mean of a random encoder that should be a pretrained
        one: it is not trained, or its pooling is that of `init`."""
        if config.init or self.words_alone:
            return
        encoder = config.encoder.built
        follows_init = getattr(encoder.inner_segment, "pooling", "") is None
        if follows_init or encoder.segment_is_frozen:
            raise UserError(
                "encoder.document begins as the mean of what a pretrained encoder says: "
                "give one with --config.init=FOLDER, train the encoder (encoder.frozen, "
                "pooling), or take graph_roberta:words"
            )

    @nn.nowrap
    def begin(self, params: Any) -> Any:
        if not self.words:
            return params
        if self.share is None:
            raise ValueError("share is None: docjax.recipe.share chooses it")
        share = {"share": jnp.full((1,), self.share)}
        return params | {"document": params["document"] | share}

    @nn.nowrap
    def plain(self, params: Any) -> Any:
        """The parameters of a start, not turned if its words have no share.

        So its vectors are those of the plain encoder number by number, at length 1, and
        zeros for the words. The start of a run that goes on with another stays as it is.
        """
        turns = self.turn and self.words
        if not turns or params["document"]["share"].any():
            return params
        kernel = params["document"]["turn"]["kernel"]
        turn = {"turn": {"kernel": jnp.eye(len(kernel), dtype=kernel.dtype)}}
        return params | {"document": params["document"] | turn}

    def setup(self) -> None:
        if self.share is not None and not 0 <= self.share <= 1:
            raise UserError(
                f"encoder.document.share {self.share} is not between 0 and 1"
            )

    @nn.compact
    def _joined(
        self, mean: Float[Array, "*s d"], branch: Float[Array, "*s f"] | None
    ) -> Float[Array, "*s d"]:
        if self.words:
            known, words = mean[..., : -self.words], mean[..., -self.words :]
            share = jax.lax.stop_gradient(
                self.param("share", nn.initializers.zeros, (1,))
            )
            known, words = unit(known) * (1 - share) ** 0.5, unit(words) * share**0.5
            mean = jnp.concatenate([known, words], axis=-1)
        elif self.normalize:
            mean = unit(mean)
        width = mean.shape[-1]
        if self.turn:
            mean = _linear("turn", width, nn.initializers.orthogonal())(mean)
        if self.components:
            identity = lambda key: jnp.eye(width)
            rotation = jax.lax.stop_gradient(self.param(COMPONENTS, identity))
            mean = jnp.matmul(mean, rotation, precision=EXACT)
        if branch is None:
            return mean
        return mean + _linear("add", width, nn.initializers.zeros)(branch)

    def __call__(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        places: Int[Array, "*s p 2"] | None = None,
        graphs: Graphs | None = None,
    ) -> Float[Array, "*s d"]:
        """Document vectors; segments of length 0 are ignored."""
        branch = self.branch and self.branch(vectors, lengths, places, graphs)
        return self._joined(weighted_mean(vectors, lengths), branch)

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        """Query vectors: a query is a document of one segment."""
        return self._joined(vectors, self.branch and self.branch.query(vectors))

    def views(self, vectors, lengths, places, graphs, keys=None):
        inputs = vectors, lengths, places, graphs, keys
        branch = self.branch and self.branch.views(*inputs)
        return self._joined(weighted_mean(vectors, lengths), branch)

    def nodes(self, *inputs: Any) -> tuple[Float[Array, "*s i f"], list[Array | None]]:
        """Those of the branch, see `GraphAttention.nodes`."""
        return self.branch.nodes(*inputs)


def _linear(name: str, width: int, begin: nn.initializers.Initializer) -> nn.Dense:
    return nn.Dense(
        width, use_bias=False, precision=EXACT, kernel_init=begin, name=name
    )
