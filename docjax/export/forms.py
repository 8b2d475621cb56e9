"""How the code in an exported folder computes a model, without docjax.

A part of docjax says itself which function or class of the copied files stands for it:
`exported_as`. A segment encoder's record says so (`docjax/huggingface/family.py`).
"""

import functools
from typing import Any

from docjax.errors import UserError
from docjax.huggingface.family import family_of
from docjax.model.document_model import DocumentModel
from docjax.parts import named


def in_torch(model: DocumentModel) -> dict[str, Any]:
    """The parts of a model as `docjax_module.py` builds them: config nodes whose `fn`
    is a name in a file of the exported folder.

    Raises:
      UserError: for a part that has no form there, or a segment encoder of no family.
    """
    parts = {
        "units": model.units,
        "segments": model.segments,
        "graph": model.graph,
        "encoder.document": model.encoder.document,
    }
    nodes = {
        path.rpartition(".")[2]: named.node(part, functools.partial(_form, path))
        for path, part in parts.items()
    }
    return nodes | {"segment": _segment(model.encoder.segment)}


def _segment(segment: Any) -> dict[str, Any]:
    try:
        family = family_of(segment)
    except UserError:
        raise _without_form("encoder.segment", type(segment)) from None
    keywords = named.node(segment)
    return keywords | family.in_torch(keywords) | {"fn": family.exported_as}


def _form(path: str, part: Any) -> str:
    """What stands for a function or class; another class of docjax may inherit from it,
    but computes something else."""
    form = vars(part).get("exported_as")
    if form is None:
        raise _without_form(path, part)
    return form


def _without_form(path: str, part: Any) -> UserError:
    return UserError(
        f"{path} {named.dotted(part)} has no torch form: sentence-transformers cannot "
        "read this model; `docjax encode` and `docjax.load` can"
    )
