"""Distillation of similarities: halves of documents are as similar as the start says.

InfoNCE calls all other documents of the batch negatives, also those on the same subject,
and pushes them apart. Here every pair has a soft target, which comes from the vectors
before training (`docjax/recipe/teacher.py`), so that subjects stay together. A little of
InfoNCE beside it teaches what the two halves of a document share.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.kernels import EXACT, unit
from docjax.objectives.facts import Facts, Metrics
from docjax.objectives.infonce import infonce
from docjax.objectives.widths import over_widths
from docjax.types import QUERY, Targets


@dataclasses.dataclass(frozen=True)
class Distillation:
    """The similarities of the teacher's vectors as soft targets, by softmax.

    With u and w the unit vectors of views 0 and 1 (or of the only view), t the unit
    vectors of the teacher and T the temperature, row i is compared with all documents j
    of the batch:
    p_i = softmax_j(t_i . t_j / T), q_i = softmax_j(u_i . w_j / T), and the loss is the
    mean of KL(p_i || q_i) over the rows and over both directions. To this it adds
    `contrast` times InfoNCE of the views' dot products. Vectors that begin with length 1
    become longer or shorter, so that training finds the temperature.
    """

    temperature: float = 0.2  # T, the same for both sides
    neighbours: int = 10  # nearest documents whose mean the teacher takes
    smoothing: float = 0.3  # the share of that mean; the rest is the document's vector
    # The weight of InfoNCE; above 0 it needs two views, and a start with length 1.
    contrast: float = 0.0
    contrast_temperature: float = 0.1  # divides its dot products
    widths: tuple[int, ...] = ()  # see `over_widths`

    def __post_init__(self) -> None:
        for name in ("temperature", "contrast_temperature"):
            value = getattr(self, name)
            if value <= 0:
                raise UserError(
                    f"distillation has {name} {value}: give a number above 0"
                )
        if self.neighbours < 1 or not 0 <= self.smoothing <= 1:
            raise UserError(
                f"distillation has neighbours {self.neighbours} and smoothing "
                f"{self.smoothing}: give at least 1 neighbour, and a share from 0 to 1"
            )
        if self.contrast < 0:
            raise UserError(
                f"distillation has contrast {self.contrast}: give 0 or a larger number"
            )

    @property
    def facts(self) -> Facts:
        return Facts(similarity="cosine")

    def check_run(self, config: Any) -> None:
        """Raises UserError for queries, where the teacher has documents, and for a
        contrast without a second view or with vectors of any length."""
        if QUERY in config.examples.built.kinds:
            raise UserError(
                f"objective {config.objective.fn} keeps similar documents together, but "
                f"examples {config.examples.fn} gives queries: set examples to "
                "docjax.data.examples.Documents"
            )
        if self.contrast:
            self._check_contrast(config)

    def _check_contrast(self, config: Any) -> None:
        views, document = len(config.views.built.kinds), config.encoder.built.document
        if views < 2:
            raise UserError(
                f"objective.contrast {self.contrast} compares two views of a document, "
                f"but views {config.views.fn} gives {views}: set views to docjax.views."
                "two_parts.TwoParts, or --config.objective.contrast=0"
            )
        if document.begins_as_mean and not document.unit_length:
            raise UserError(
                f"objective.contrast {self.contrast} needs vectors that begin with "
                "length 1: set --config.encoder.document.normalize=True, or "
                "--config.objective.contrast=0"
            )

    def __call__(
        self, vectors: Float[Array, "v b d"], targets: Targets
    ) -> tuple[Float[Array, ""], Metrics]:
        """The loss, and metrics.

        `in_batch_accuracy` is the share of rows whose own other view is the most
        similar; `negatives` counts the other documents of a row.

        Raises:
          UserError: for more than 2 views, or without a teacher.
        """
        if len(vectors) > 2 or targets.teacher is None:
            raise UserError(
                f"distillation reads 1 or 2 views of a document, not {len(vectors)}, "
                "with a teacher's vectors: use docjax.views.two_parts.TwoParts"
            )
        if self.contrast and len(vectors) < 2:
            raise UserError(
                f"distillation with contrast {self.contrast} compares 2 views of a "
                "document, not 1: use docjax.views.two_parts.TwoParts, or set "
                "--config.objective.contrast=0"
            )
        teacher = unit(targets.teacher)
        wanted = jnp.matmul(teacher, teacher.T, precision=EXACT) / self.temperature
        loss = functools.partial(self._of_width, wanted, targets)
        return over_widths(loss, vectors, self.widths)

    def _of_width(self, wanted, targets, vectors) -> tuple[Float[Array, ""], Metrics]:
        views = unit(vectors)
        first, second = views[0], views[-1]
        logits = jnp.matmul(first, second.T, precision=EXACT) / self.temperature
        loss = (_divergence(wanted, logits) + _divergence(wanted, logits.T)) / 2
        b = len(logits)
        metrics = {
            "in_batch_accuracy": (logits.argmax(-1) == jnp.arange(b)).mean(),
            "negatives": jnp.float32(b - 1),
        }
        if not self.contrast:
            return loss, metrics
        scale = self.contrast_temperature
        contrast, _ = infonce(vectors, targets, temperature=scale)
        return loss + self.contrast * contrast, metrics | {"infonce": contrast}


def _divergence(
    wanted: Float[Array, "b b"], logits: Float[Array, "b b"]
) -> Float[Array, ""]:
    """The mean over the rows of KL(softmax(wanted) || softmax(logits))."""
    log_p, log_q = jax.nn.log_softmax(wanted), jax.nn.log_softmax(logits)
    return (jnp.exp(log_p) * (log_p - log_q)).sum(-1).mean()
