"""How an objective compares vectors."""

import inspect
from collections.abc import Mapping
from typing import Any

from docjax.errors import UserError
from docjax.parts import named


def similarity_of(objective: Any) -> str:
    """The `similarity` of an objective, or of the contrastive one that it holds."""
    if not isinstance(objective, Mapping):
        return "cosine"
    if objective.get("contrastive"):
        return similarity_of(objective["contrastive"])
    try:
        fn = named.resolve(objective.get("fn"), ("docjax.objectives.",))
    except UserError:  # a user's own, which encoding does without
        return "cosine"
    asked = inspect.signature(fn).parameters.get("similarity")
    return objective.get("similarity", asked.default) if asked else "cosine"
