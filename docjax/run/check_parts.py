"""Do the parts that a config names fit each other? Checked before the corpus is read."""

from pathlib import Path
from typing import Any

from docjax.encoders.first_segments import FirstSegments
from docjax.encoders.from_mean import FromMean
from docjax.encoders.pooling import Predictor
from docjax.encoders.shapes import segment_is_frozen, segment_of
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.huggingface.family import by_model_type
from docjax.objectives.contrastive_tension import NEGATIVES
from docjax.objectives.distillation import Distillation
from docjax.objectives.masked_lm import MaskedLM
from docjax.run.fields import RunConfig
from docjax.types import DOCUMENT, QUERY, ObjectiveWithTeacher
from docjax.views.twice import Twice

SIMSIAM = "docjax.objectives.simsiam.simsiam"  # the loss that takes predictions
# The loss that takes pairs of documents that are not similar, too.
LABELLED = "docjax.objectives.pair_similarity.pair_similarity"
# The loss of pairs of documents drawn inside of the batch.
TENSION = "docjax.objectives.contrastive_tension.contrastive_tension"
# Examples that, without a path, come from the documents' own links or queries.
OWN_RELATIONS = (
    "docjax.data.examples.Pairs",
    "docjax.retrieval.judged_queries.JudgedQueries",
)


def check_parts(config: RunConfig) -> None:
    """Raises UserError for parts that do not fit, before the corpus is read."""
    examples, views = config.examples.build(), config.views.build()
    if len(examples.kinds) > 1 and len(views.kinds) > 1:
        raise UserError(
            f"examples of {len(examples.kinds)} documents need one view of each, but "
            f"views {config.views.fn} gives {len(views.kinds)}; use "
            "docjax.views.whole.Whole"
        )
    document = config.encoder.build().document
    if examples.kinds.count(DOCUMENT) > 1 and document.joins_views:
        raise UserError(
            f"examples of {examples.kinds.count(DOCUMENT)} documents do not fit "
            "encoder.document: its views attend to each other, so that one document "
            "would read another; set encoder.document.attention to 'none'"
        )
    _check_transductive(config, examples)
    _check_mean(config, document)
    _check_teacher(config, examples.kinds)
    _check_contrast(config, document, len(views.kinds))
    _check_folds(config)
    _check_segment(config)
    _check_prompts(config)
    _check_dropout(views, config.encoder.build().segment)
    _check_several(config, document, examples.kinds)
    examples.files()
    if config.reads_views:
        views.files()
    loss = (config.objective.keywords.get("contrastive") or {}).get("fn")
    loss = loss or config.objective.fn
    _check_labelled(config, loss)
    _check_tension(config, loss)
    ours = loss.startswith("docjax.objectives.")
    if isinstance(config.encoder.build().head, Predictor) and ours and loss != SIMSIAM:
        raise UserError(
            f"encoder.head docjax.encoders.pooling.Predictor is for {SIMSIAM}: {loss} "
            "would take its predictions for other documents; leave the head out"
        )


def _check_transductive(config: RunConfig, examples: Any) -> None:
    """Raises UserError for a run on the texts of all splits that would also learn from
    their links or queries, which the tasks score."""
    if not config.transductive:
        return
    own = config.examples.fn in OWN_RELATIONS and examples.path is None
    if own or getattr(examples, "related", None) == "links":
        raise UserError(
            "transductive is True, so that training reads the texts of all splits, but "
            f"examples {config.examples.fn} would learn from the links or queries of "
            "the test documents too: set --config.transductive=False, or read relations "
            "from a file (examples.path)"
        )


def _check_mean(config: RunConfig, document: Any) -> None:
    """Raises UserError for the mean of a random encoder that should be a pretrained one:
    it is not trained, or its pooling is that of `init`."""
    if not isinstance(document, FromMean) or config.init or document.words_alone:
        return
    encoder = config.encoder.build()
    follows_init = getattr(segment_of(encoder), "pooling", "") is None
    if follows_init or segment_is_frozen(encoder):
        raise UserError(
            "encoder.document begins as the mean of what a pretrained encoder says: "
            f"give one ({', '.join(sorted(by_model_type()))}) with "
            "--config.init=FOLDER, train the encoder (encoder.frozen, pooling), or take "
            "graph_roberta:words"
        )


def _check_teacher(config: RunConfig, kinds: tuple[str, ...]) -> None:
    """Raises UserError if queries stand where the teacher of a loss has documents."""
    if isinstance(config.objective.build(), ObjectiveWithTeacher) and QUERY in kinds:
        raise UserError(
            f"objective {config.objective.fn} keeps similar documents together, but "
            f"examples {config.examples.fn} gives queries: set examples to "
            "docjax.data.examples.Documents"
        )


def _check_contrast(config: RunConfig, document: Any, views: int) -> None:
    """Raises UserError if distillation with contrast has no second view, or vectors of
    any length, which its temperature does not fit."""
    objective = config.objective.build()
    if not isinstance(objective, Distillation) or not objective.contrast:
        return
    if views < 2:
        raise UserError(
            f"objective.contrast {objective.contrast} compares two views of a document, "
            f"but views {config.views.fn} gives {views}: set views to docjax.views."
            "two_parts.TwoParts, or --config.objective.contrast=0"
        )
    if isinstance(document, FromMean) and not (document.words or document.normalize):
        raise UserError(
            f"objective.contrast {objective.contrast} needs vectors that begin with "
            "length 1: set --config.encoder.document.normalize=True, or "
            "--config.objective.contrast=0"
        )


def _check_labelled(config: RunConfig, loss: str) -> None:
    """Raises UserError if the loss and the examples do not agree on pairs with labels."""
    labelled = bool(config.examples.keywords.get("dissimilar"))
    if labelled and loss != LABELLED:
        raise UserError(
            f"examples.dissimilar is True, but {loss} would take every pair for a "
            f"similar one: leave examples.dissimilar out, or set objective to {LABELLED}"
        )
    if loss == LABELLED and not labelled:
        raise UserError(
            f"{LABELLED} needs pairs of both kinds, but {config.examples.fn} gives "
            "similar pairs or no pairs: set examples to docjax.data.examples.Pairs with "
            "dissimilar=True"
        )


def _check_tension(config: RunConfig, loss: str) -> None:
    """Raises UserError for batches that have too few documents for their pairs."""
    keywords, batch = config.objective.keywords, config.batch
    keywords = keywords.get("contrastive") or keywords
    negatives = keywords.get("negatives", NEGATIVES)
    if loss == TENSION and batch is not None and not 1 <= negatives < batch:
        raise UserError(
            f"objective.negatives is {negatives} in batches of {batch}: give at least 1, "
            "and a larger --config.batch than that"
        )


def _check_segment(config: RunConfig) -> None:
    """Raises UserError for a segment encoder that cannot read its segments, or cannot
    learn the masked tokens that the objective asks for."""
    encoder = config.encoder.build()
    segment = segment_of(encoder)
    if isinstance(segment, TokenEncoder):
        segment.check_training(config.limits.segment_tokens)
    if not isinstance(config.objective.build(), MaskedLM):
        return
    if segment_is_frozen(encoder):
        raise UserError(
            f"objective masked_lm trains the segment encoder, but encoder.frozen "
            f"{encoder.frozen!r} freezes it: leave out masked_lm or encoder.frozen"
        )
    if not encoder.segment.masked_lm:
        raise UserError(
            "objective masked_lm needs an encoder that predicts tokens: give "
            "docjax.encoders.transformer.Transformer, and set "
            "--config.encoder.segment.masked_lm to True"
        )


def _check_prompts(config: RunConfig) -> None:
    """Raises UserError for prompts before texts that become word averages."""
    given = config.prompts.by_name()
    if given and not isinstance(segment_of(config.encoder.build()), TokenEncoder):
        names = " and ".join(f"prompts.{name}" for name in given)
        raise UserError(
            f"{names}: only a transformer reads prompts, not encoder.segment "
            f"{config.encoder.keywords['segment']['fn']}; leave prompts out"
        )


def _check_dropout(views: Any, segment: Any) -> None:
    """Raises UserError for equal views, which nothing would tell apart."""
    rates = [getattr(segment, f"{kind}dropout", 0) for kind in ("", "attention_")]
    if isinstance(views, Twice) and not segment.has_towers and not any(rates):
        raise UserError(
            "views docjax.views.twice.Twice differ by dropout alone, but "
            "encoder.segment.dropout is 0: give 0.1, or other views"
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


def _check_several(config: RunConfig, document: Any, kinds: tuple[str, ...]) -> None:
    """Raises UserError if loss or limits do not fit a document's one vector or more."""
    parts, limits = config.objective.keywords.get("parts", 1), config.limits
    if not isinstance(document, FirstSegments):
        if parts != 1:
            raise UserError(
                f"objective.parts is {parts}, but encoder.document gives a document one "
                "vector: give 1, or docjax.encoders.first_segments.FirstSegments"
            )
        return
    if parts != document.parts:
        raise UserError(
            f"encoder.document.parts is {document.parts} and objective.parts is {parts}: "
            "give the same number"
        )
    if document.parts > 1 and kinds[0] != QUERY:
        raise UserError(
            f"encoder.document.parts {document.parts}: queries are compared with "
            "several vectors, so the examples need queries; give 1"
        )
    if limits.inference_segments is None or limits.inference_segments > document.parts:
        raise UserError(
            f"limits.inference_segments is {limits.inference_segments}, but encoder."
            f"document reads {document.parts} segments: give at most that number"
        )
