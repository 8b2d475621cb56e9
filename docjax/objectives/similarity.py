"""How an objective compares vectors."""

import inspect
from collections.abc import Mapping
from typing import Any

from docjax.errors import UserError
from docjax.parts import named


def similarity_of(objective: Any) -> str:
    """The `similarity` of an objective's config node, or of its contrastive loss."""
    if not isinstance(objective, Mapping):
        return "cosine"
    if objective.get("contrastive"):
        return similarity_of(objective["contrastive"])
    try:
        fn = named.resolve(objective.get("fn"), ("docjax.objectives.",))
    except UserError:  # a user's function, which encoding does not import
        return objective.get("similarity", "cosine")
    parameter = inspect.signature(fn).parameters.get("similarity")
    if parameter is None:
        return "cosine"
    return objective.get("similarity", parameter.default)
