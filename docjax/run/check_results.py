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

EXAMPLES, WIDTH = 4, 8
array = jax.ShapeDtypeStruct


def check_results(config: RunConfig, loss: str) -> None:
    """Raises UserError for a loss of vectors, called `loss`, or an optimizer that gives
    something else."""
    _check_loss(config, loss)
    _check_optimizer(config)


def _check_loss(config: RunConfig, name: str) -> None:
    """Raises UserError for a loss of vectors without a scalar and scalar metrics.

    A loss that raises here may want other arrays: the first step reports its error.
    """
    objective = config.objective.built
    loss = getattr(objective, "contrastive", objective)
    if not callable(loss) or unfit(loss, Objective):
        return
    faults: list[str] = []

    def trace(vectors: Any, labels: Any, related: Any) -> int:
        faults.append(_fault(loss(vectors, Targets(labels, related, vectors[0]))))
        return 0

    views = max(len(config.examples.built.kinds), len(config.views.built.kinds))
    vectors = array((views, EXAMPLES, WIDTH), jnp.float32)
    labels = array((EXAMPLES,), jnp.int32)
    try:
        jax.eval_shape(trace, vectors, labels, array((EXAMPLES, EXAMPLES), bool))
    except Exception:  # noqa: BLE001 foreign code may raise anything
        return
    if fault := next(filter(None, faults), ""):
        raise UserError(
            f"objective {name} {fault}: a loss returns (loss, metrics), a "
            "scalar and a dict of scalars by name"
        )


def _fault(result: Any) -> str:
    """What is wrong with the result of a loss, in words; "" if nothing is."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        return f"returns {_kind(result)}"
    loss, metrics = result
    if not _is_scalar(loss) or not jnp.issubdtype(jnp.result_type(loss), jnp.floating):
        return f"returns {_kind(loss)} as its loss"
    if not isinstance(metrics, Mapping):
        return f"returns {_kind(metrics)} as its metrics"
    if "loss" in metrics:
        return "has a metric 'loss', which docjax writes itself"
    wrong = [name for name, value in metrics.items() if not _is_scalar(value)]
    return f"has the metric {wrong[0]!r}, {_kind(metrics[wrong[0]])}" if wrong else ""


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or getattr(value, "shape", None) == ()


def _kind(value: Any) -> str:
    """A value in words: the shape of an array, the type of anything else."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"a {type(value).__name__}"
    return f"an array {list(shape)} of {value.dtype}"


def _check_optimizer(config: RunConfig) -> None:
    """Raises UserError for a part that is no optimizer, or that needs more than
    gradients and parameters."""
    optimizer = config.optimizer
    if isinstance(optimizer.built, RowOptimizer):
        return
    parameters = {
        "kernel": array((2, 2), jnp.float32),
        "bias": array((2,), jnp.float32),
    }

    def update(parameters: Any) -> Any:
        made = optimizer.built(10)
        if not isinstance(made, optax.GradientTransformation):
            raise TypeError(f"{shown(made)} is no GradientTransformation")
        updates, _ = made.update(parameters, made.init(parameters), parameters)
        return optax.apply_updates(parameters, updates)

    try:
        jax.eval_shape(update, parameters)
    except UserError:
        raise
    except Exception as error:  # noqa: BLE001 foreign code may raise anything
        reason = next(iter(str(error).splitlines()), "")
        raise UserError(
            f"optimizer {optimizer.fn} cannot update parameters from their gradients "
            f"({type(error).__name__}: {reason}): give an optimizer such as optax.adamw"
        ) from None
