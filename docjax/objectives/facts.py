"""What a loss says about itself, beside its arithmetic.

    @loss(similarity="dot")
    def my_loss(vectors, targets, *, temperature=1.0): ...

A loss with a keyword `similarity` needs no such fact: the keyword says it. A class says
its facts by a property `facts`. All of it is optional.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from docjax.errors import UserError
from docjax.types import SIMILARITIES

Metrics = dict[str, Float[Array, ""]]


class Facts(NamedTuple):
    """The facts of a loss.

    Attributes:
      similarity: "dot" or "cosine", how vectors that it trained are compared; None: it
        does not say, and docjax takes the cosine.
      labelled_pairs: reads pairs of documents whose label says if they are similar.
      reads_predictions: reads the views and then the predictions of a head such as
        `docjax.encoders.pooling.Predictor`.
      check_run: raises UserError if the loss does not fit a run, before documents are
        read; takes the run's config (`docjax.types.ChecksRun`) and the loss's keywords.
      check_examples: likewise when the training examples are known; takes these
        (`docjax.data.examples.Examples`), the number of views, and the keywords.
    """

    similarity: str | None = None
    labelled_pairs: bool = False
    reads_predictions: bool = False
    check_run: Callable[[Any, Mapping[str, Any]], None] | None = None
    check_examples: Callable[[Any, int, Mapping[str, Any]], None] | None = None


def loss(**facts: Any) -> Callable[[Callable], Callable]:
    """A decorator that gives a loss its `Facts`. Raises UserError for an unknown fact."""
    if unknown := [name for name in facts if name not in Facts._fields]:
        raise UserError(
            f"@loss has no fact {', '.join(map(repr, unknown))}; it has "
            f"{', '.join(Facts._fields)}"
        )

    def with_facts(function: Callable) -> Callable:
        function.facts = Facts(**facts)
        return function

    return with_facts


def facts_of(objective: Any) -> Facts:
    """The facts of a built objective: a function with bound keywords, or an instance.

    A loss of tokens or words has those of the loss of vectors inside of it. Raises
    UserError for a similarity that docjax does not know.
    """
    objective = _of_vectors(objective)
    function = getattr(objective, "func", objective)
    facts = getattr(function, "facts", Facts())
    similarity = _keywords(objective).get("similarity")
    if similarity is not None:
        facts = facts._replace(similarity=similarity)
    if facts.similarity not in (None, *SIMILARITIES):
        name = getattr(function, "__name__", type(function).__name__)
        raise UserError(
            f"loss {name} has the similarity {facts.similarity!r}: docjax compares vectors "
            f"by {' or '.join(map(repr, SIMILARITIES))}; leave it out for the cosine"
        )
    return facts


def check_run(objective: Any, config: Any) -> None:
    """Raises UserError if the loss of vectors does not fit a run."""
    if check := facts_of(objective).check_run:
        check(config, _keywords(_of_vectors(objective)))


def check_examples(objective: Any, examples: Any, views: int) -> None:
    """Raises UserError if the loss of vectors cannot learn from the examples."""
    if check := facts_of(objective).check_examples:
        check(examples, views, _keywords(_of_vectors(objective)))


def _of_vectors(objective: Any) -> Any:
    """The loss inside of a loss of tokens or words, if there is one."""
    return getattr(objective, "contrastive", None) or objective


def _keywords(loss: Any) -> Mapping[str, Any]:
    """The bound keywords of a loss of vectors, and the defaults of the others."""
    if not isinstance(loss, functools.partial):
        return {}
    parameters = inspect.signature(loss).parameters
    return {name: each.default for name, each in parameters.items()}
