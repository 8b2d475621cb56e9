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
    """A decorator that gives a loss its `Facts`."""

    def with_facts(function: Callable) -> Callable:
        function.facts = Facts(**facts)
        return function

    return with_facts


def facts_of(objective: Any) -> Facts:
    """The facts of a built objective: a function with bound keywords, or an instance.

    A loss of tokens or words has those of the loss of vectors inside of it.
    """
    inner = getattr(objective, "contrastive", None)
    if inner is not None:
        return facts_of(inner)
    if not isinstance(objective, functools.partial):
        return getattr(objective, "facts", Facts())
    facts = getattr(objective.func, "facts", Facts())
    similarity = _keyword(objective, "similarity")
    return facts if similarity is None else facts._replace(similarity=similarity)


def check_run(objective: Any, config: Any) -> None:
    """Raises UserError if the loss of vectors does not fit a run."""
    facts, keywords = facts_of(objective), _keywords(objective)
    if facts.check_run:
        facts.check_run(config, keywords)


def check_examples(objective: Any, examples: Any, views: int) -> None:
    """Raises UserError if the loss of vectors cannot learn from the examples."""
    facts, keywords = facts_of(objective), _keywords(objective)
    if facts.check_examples:
        facts.check_examples(examples, views, keywords)


def _keywords(objective: Any) -> Mapping[str, Any]:
    """The bound keywords of the loss of vectors, and the defaults of the others."""
    inner = getattr(objective, "contrastive", None)
    if inner is not None:
        return _keywords(inner)
    if not isinstance(objective, functools.partial):
        return {}
    parameters = inspect.signature(objective).parameters
    return {name: each.default for name, each in parameters.items()}


def _keyword(objective: functools.partial, name: str) -> Any:
    parameter = inspect.signature(objective).parameters.get(name)
    return None if parameter is None else parameter.default
