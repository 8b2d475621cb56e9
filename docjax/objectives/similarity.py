"""How an objective compares vectors."""

from collections.abc import Mapping
from typing import Any

# Objectives whose `similarity` is "dot" unless the config says otherwise.
DOT = (
    "docjax.objectives.contrastive_tension.contrastive_tension",
    "docjax.objectives.infonce.infonce",
    "docjax.objectives.queue.Queue",
)


def similarity_of(objective: Any) -> str:
    """The `similarity` of an objective's config node, or of its contrastive loss.

    Nothing is imported: encoding needs no objective.
    """
    if not isinstance(objective, Mapping):
        return "cosine"
    if objective.get("contrastive"):
        return similarity_of(objective["contrastive"])
    default = "dot" if objective.get("fn") in DOT else "cosine"
    return objective.get("similarity", default)
