"""Do the parts that a config names fit each other? Checked before the corpus is read.

A part that does not fit every run checks that itself (`docjax.types.ChecksRun`).
"""

from pathlib import Path

from docjax.errors import UserError
from docjax.objectives import facts
from docjax.run.check_results import check_loss, check_optimizer
from docjax.run.fields import RunConfig
from docjax.types import DOCUMENT, ChecksRun


def check_parts(config: RunConfig) -> None:
    """Raises UserError for parts that do not fit, before the corpus is read."""
    _check_views(config)
    _check_transductive(config)
    _check_folds(config)
    _check_prompts(config)
    config.encoder.built.inner_segment.check_training(config.limits.segment_tokens)
    encoder = config.encoder.built
    own = [part.built for part in config.parts.values()]
    for part in (*own, encoder.segment, encoder.document, encoder.head):
        if isinstance(part, ChecksRun):
            part.check_run(config)
    config.files()
    _check_loss(config)
    check_loss(config, _loss_of(config))
    check_optimizer(config)


def _check_views(config: RunConfig) -> None:
    """Raises UserError for views or an encoder that examples of several documents do not
    fit."""
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
