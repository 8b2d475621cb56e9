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

from docjax.encoders.document_defaults import DocumentDefaults
from docjax.encoders.pooling import weighted_mean
from docjax.encoders.weight_decay import COMPONENTS
from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.types import (
    QUERY,
    Graphs,
    ObjectiveOfTokens,
    ObjectiveOfWords,
    ObjectiveWithMemory,
)

OTHERS = ObjectiveWithMemory, ObjectiveOfTokens, ObjectiveOfWords


class FromMean(DocumentDefaults):
    """The mean of the segment vectors weighted by tokens, turned, plus a branch.

    branch: a document encoder whose vector is added after a linear layer that begins at
      zero; None: no branch.
    nested: the mean learns as if there were no branch, and the branch learns what it adds
      to this mean, from segments that are scaled as the mean is. So a run may leave the
      branch out at its end (`docjax/recipe/judgement.py`).
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
    begins_as_mean = True
    branch: nn.Module | None = None
    nested: bool = False
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
        one: it is not trained, or its pooling is that of `init`. And for `nested` where
        a loss does not read the views of documents alone."""
        self._check_nested(config)
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
    def _check_nested(self, config: Any) -> None:
        kinds, objective = config.examples.built.kinds, config.objective.built
        needs = None
        if self.nested and self.branch is None:
            needs = "a branch"
        elif self.nested and QUERY in kinds + config.views.built.kinds:
            needs = "views of documents alone, no queries"
        elif self.nested and config.encoder.built.head is not None:
            needs = "an encoder without a head"
        elif self.nested and isinstance(objective, OTHERS):
            needs = "an objective that compares views and remembers nothing"
        if needs:
            raise UserError(
                f"encoder.document.nested needs {needs}: set "
                "--config.encoder.document.nested=False"
            )

    @nn.nowrap
    def without_branch(self, params: Any) -> Any:
        kernel = params["document"]["add"]["kernel"]
        add = {"add": {"kernel": jnp.zeros_like(kernel)}}
        return params | {"document": params["document"] | add}

    @nn.nowrap
    def explains(self, params: Any) -> bool:
        return self.attends and bool(params["document"]["add"]["kernel"].any())

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
        if self.words:
            self.share_of_words = self.param("share", nn.initializers.zeros, (1,))

    def _scaled(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        """Vectors of length 1, of which the words have their share."""
        if not self.words:
            return unit(vectors) if self.normalize else vectors
        known, words = vectors[..., : -self.words], vectors[..., -self.words :]
        share = jax.lax.stop_gradient(self.share_of_words)
        known, words = unit(known) * (1 - share) ** 0.5, unit(words) * share**0.5
        return jnp.concatenate([known, words], axis=-1)

    def _read(self, vectors: Float[Array, "*s p d"]) -> Float[Array, "*s p d"]:
        """What the branch reads of the segment vectors."""
        return jax.lax.stop_gradient(self._scaled(vectors)) if self.nested else vectors

    @nn.compact
    def _joined(
        self,
        mean: Float[Array, "*s d"],
        branch: Float[Array, "*s f"] | None,
        both: bool = False,
    ) -> Float[Array, "..."]:
        """The sum of mean and branch; `both` puts the mean alone before it, and the
        gradient of the sum does not reach the mean."""
        mean = self._scaled(mean)
        width = mean.shape[-1]
        if self.turn:
            mean = _linear("turn", width, nn.initializers.orthogonal())(mean)
        if self.components:
            identity = lambda key: jnp.eye(width)
            rotation = jax.lax.stop_gradient(self.param(COMPONENTS, identity))
            mean = jnp.matmul(mean, rotation, precision=EXACT)
        if branch is None:
            return mean
        added = _linear("add", width, nn.initializers.zeros)(branch)
        if both:
            return jnp.concatenate([mean, jax.lax.stop_gradient(mean) + added])
        return mean + added

    def __call__(
        self,
        vectors: Float[Array, "*s p d"],
        lengths: Int[Array, "*s p"],
        places: Int[Array, "*s p 2"] | None = None,
        graphs: Graphs | None = None,
    ) -> Float[Array, "*s d"]:
        """Document vectors; segments of length 0 are ignored."""
        mean = weighted_mean(vectors, lengths)
        if self.branch is None:
            return self._joined(mean, None)
        branch = self.branch(self._read(vectors), lengths, places, graphs)
        return self._joined(mean, branch)

    def query(self, vectors: Float[Array, "*s d"]) -> Float[Array, "*s d"]:
        """Query vectors: a query is a document of one segment."""
        branch = self.branch and self.branch.query(self._read(vectors))
        return self._joined(vectors, branch)

    def views(self, vectors, lengths, places, graphs, keys=None):
        """As `DocumentDefaults`; if `nested`, after those of the mean alone."""
        mean = weighted_mean(vectors, lengths)
        if self.branch is None:
            return self._joined(mean, None)
        inputs = self._read(vectors), lengths, places, graphs, keys
        return self._joined(mean, self.branch.views(*inputs), both=self.nested)

    def nodes(self, vectors, *inputs) -> tuple[Float[Array, "*s i f"], list[Any]]:
        """Those of the branch, see `GraphAttention.nodes`."""
        return self.branch.nodes(self._read(vectors), *inputs)


def _linear(name: str, width: int, begin: nn.initializers.Initializer) -> nn.Dense:
    return nn.Dense(
        width, use_bias=False, precision=EXACT, kernel_init=begin, name=name
    )
