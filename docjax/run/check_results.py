"""Do a loss and an optimizer from a config give what docjax asks of them? Traced on a few
small arrays, before the corpus is read: nothing is computed."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from docjax.errors import UserError
from docjax.parts.annotations import shown
from docjax.parts.protocols import unfit
from docjax.run.fields import RunConfig
from docjax.types import Objective, RowOptimizer, Targets

array = jax.ShapeDtypeStruct


def check_loss(config: RunConfig, name: str) -> None:
    """Raises UserError for a loss of vectors without a scalar and scalar metrics; `name`
    is its dotted name.

    A loss that raises here may want other arrays: the first step reports its error.
    """
    objective = config.objective.built
    loss, faults = getattr(objective, "contrastive", objective), []
    if not callable(loss) or unfit(loss, Objective):
        return

    def trace(vectors: Any, labels: Any, related: Any) -> None:
        faults.append(_fault(loss(vectors, Targets(labels, related, vectors[0]))))

    views = max(len(config.examples.built.kinds), len(config.views.built.kinds))
    vectors, labels = array((views, 4, 8), jnp.float32), array((4,), jnp.int32)
    try:
        jax.eval_shape(trace, vectors, labels, array((4, 4), bool))
    except Exception:  # noqa: BLE001 foreign code may raise anything
        return
    if faults[0]:
        raise UserError(
            f"objective {name} returns {faults[0]}: return (loss, metrics), a float32 "
            "scalar and a dict of scalars by name"
        )


def _fault(result: Any) -> str:
    """What is wrong with the result of a loss, in words; "" if nothing is."""
    is_pair = isinstance(result, (tuple, list)) and len(result) == 2
    if not is_pair or not isinstance(result[1], Mapping):
        return "no loss with a dict of metrics"
    loss, metrics = result
    if "loss" in metrics:
        return "a metric 'loss', a name that docjax takes itself"
    if not _is_scalar(loss) or not jnp.issubdtype(jnp.result_type(loss), jnp.floating):
        return "a loss that is no scalar of floats"
    wrong = [name for name, value in metrics.items() if not _is_scalar(value)]
    return f"the metric {wrong[0]!r}, which is no scalar" if wrong else ""


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or getattr(value, "shape", None) == ()


def check_optimizer(config: RunConfig) -> None:
    """Raises UserError for a part that is no optimizer, or that needs more than
    gradients and parameters."""
    make, name = config.optimizer.built, config.optimizer.fn
    if isinstance(make, RowOptimizer):
        return

    def update(parameters: Any) -> Any:
        made = make(10)
        if not isinstance(made, optax.GradientTransformation):
            raise TypeError(f"{shown(made)} is no GradientTransformation")
        updates, _ = made.update(parameters, made.init(parameters), parameters)
        return optax.apply_updates(parameters, updates)

    kernel, bias = array((2, 2), jnp.float32), array((2,), jnp.float32)
    try:
        jax.eval_shape(update, {"kernel": kernel, "bias": bias})
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 foreign code may raise anything
        reason = " ".join(str(error).split())
        raise UserError(
            f"optimizer {name} cannot update parameters from their gradients "
            f"({type(error).__name__}: {reason}): give an optimizer such as optax.adamw"
        ) from None
