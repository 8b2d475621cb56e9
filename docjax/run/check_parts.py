"""Do the parts that a config names fit each other? Checked before the corpus is read.

A part that does not fit every run checks that itself (`docjax.types.ChecksRun`). What a
loss and an optimizer give is traced on a few small arrays: nothing is computed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax

from docjax.errors import UserError
from docjax.objectives import facts
from docjax.parts.annotations import shown
from docjax.parts.protocols import unfit
from docjax.run.fields import RunConfig
from docjax.types import DOCUMENT, ChecksRun, Objective, RowOptimizer, Targets

array = jax.ShapeDtypeStruct


def check_parts(config: RunConfig) -> None:
    """Raises UserError for parts that do not fit, before the corpus is read."""
    _check_views(config)
    _check_transductive(config)
    _check_folds(config)
    _check_prompts(config)
    encoder = config.encoder.built
    encoder.inner_segment.check_training(config.limits.segment_tokens)
    own = [part.built for part in config.parts.values()]
    for part in (*own, encoder.segment, encoder.document, encoder.head):
        if isinstance(part, ChecksRun):
            part.check_run(config)
    config.files()
    _check_loss(config)
    _check_result(config)
    _check_optimizer(config)


def _check_views(config: RunConfig) -> None:
    """Raises UserError for examples of several documents that do not fit the views or
    the encoder."""
    examples, views = config.examples.built, config.views.built
    if len(examples.kinds) > 1 and len(views.kinds) > 1:
        raise UserError(
            f"examples of {len(examples.kinds)} documents need one view of each, but "
            f"views {config.views.fn} gives {len(views.kinds)}; use "
            "docjax.views.whole.Whole"
        )
    documents = examples.kinds.count(DOCUMENT)
    if documents > 1 and config.encoder.built.document.joins_views:
        raise UserError(
            f"examples of {documents} documents do not fit "
            "encoder.document: its views attend to each other, so that one document "
            "would read another; set encoder.document.attention to 'none'"
        )


def _check_transductive(config: RunConfig) -> None:
    """Raises UserError for a run on the texts of all splits that would also learn from
    their links or queries, which the tasks score."""
    if config.transductive and config.examples.says("own_relations"):
        raise UserError(
            "transductive is True, so that training reads the texts of all splits, but "
            f"examples {config.examples.fn} would learn from the links or queries of "
            "the test documents too: set --config.transductive=False, or read relations "
            "from a file (examples.path)"
        )


def _check_loss(config: RunConfig) -> None:
    """Raises UserError if the loss does not fit the examples, the head or the run."""
    objective = config.objective.built
    loss, of_loss = _loss_of(config), facts.facts_of(objective)
    labelled = config.examples.says("labelled_pairs")
    if labelled and not of_loss.labelled_pairs:
        raise UserError(
            f"examples.dissimilar is True, but {loss} would take every pair for a "
            "similar one: leave examples.dissimilar out, or set objective to "
            "docjax.objectives.pair_similarity.pair_similarity"
        )
    if of_loss.labelled_pairs and not labelled:
        raise UserError(
            f"{loss} needs pairs of both kinds, but {config.examples.fn} gives "
            "similar pairs or no pairs: set examples to docjax.data.examples.Pairs with "
            "dissimilar=True"
        )
    facts.check_run(objective, config)
    head = config.encoder.built.head
    if head is not None and head.predicts and not of_loss.reads_predictions:
        raise UserError(
            f"encoder.head {config.encoder.keywords['head']['fn']} is for a loss that "
            f"reads predictions, such as docjax.objectives.simsiam.simsiam: {loss} would "
            "take its predictions for other documents; leave the head out"
        )


def _loss_of(config: RunConfig) -> str:
    """The dotted name of the loss of vectors."""
    inner = config.objective.keywords.get("contrastive") or {}
    return inner.get("fn") or config.objective.fn


def _check_prompts(config: RunConfig) -> None:
    """Raises UserError for prompts before texts that become word averages."""
    given = config.prompts.by_name()
    if given and not config.encoder.built.inner_segment.reads_prompts:
        names = " and ".join(f"prompts.{name}" for name in given)
        raise UserError(
            f"{names}: only a transformer reads prompts, not encoder.segment "
            f"{config.encoder.keywords['segment']['fn']}; leave prompts out"
        )


def _check_folds(config: RunConfig) -> None:
    """Raises UserError if queries that train also test."""
    ours = config.examples.keywords
    for name, task in config.tasks.items():
        theirs = task.keywords
        if not ours.get("path") or not theirs.get("path"):
            continue
        is_same = Path(ours["path"]).resolve() == Path(theirs["path"]).resolve()
        if is_same and ours.get("fold") != theirs.get("fold"):
            raise UserError(
                f"examples.fold is {ours.get('fold')} and tasks.{name}.fold is "
                f"{theirs.get('fold')}: queries that train would test; give the same "
                "number"
            )


def _check_result(config: RunConfig) -> None:
    """Raises UserError for a loss of vectors without a scalar and scalar metrics.

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
            f"objective {_loss_of(config)} returns {faults[0]}: return (loss, metrics), a float32 "
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


def _check_optimizer(config: RunConfig) -> None:
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
