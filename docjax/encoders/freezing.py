"""A regular expression on parameter paths chooses the parameters that stay frozen."""

import re
from typing import Any

from flax.traverse_util import flatten_dict, unflatten_dict

from docjax.errors import UserError

Params = Any


def divided(params: Params, frozen: str) -> tuple[Params, Params]:
    """The trained parameters, and the frozen ones: their path begins with a match.

    A path is "segment/layer_0/attention/query/kernel"; "" matches nothing here.
    """
    parts: tuple[dict, dict] = {}, {}
    for path, array in flatten_dict(params, sep="/").items():
        parts[bool(frozen and re.match(frozen, path))][path] = array
    return unflatten_dict(parts[0], sep="/"), unflatten_dict(parts[1], sep="/")


def check(params: Params, frozen: str) -> None:
    """Raises UserError if `frozen` is no regular expression or matches none or all."""
    try:
        trained, rest = divided(params, frozen)
    except re.error as error:
        raise UserError(
            f"encoder.frozen {frozen!r} is not a regular expression: {error}"
        ) from None
    if frozen and not (trained and rest):
        what = "all parameters" if rest else "no parameter"
        names = sorted(flatten_dict(params, sep="/"))
        raise UserError(
            f"encoder.frozen {frozen!r} matches {what}; their paths are "
            f"{', '.join(names[:3])} ...: 'segment/' is the segment encoder"
        )


def joined(trained: Params, frozen: Params) -> Params:
    """All parameters: the inverse of `divided`."""
    flat = flatten_dict(trained, sep="/") | flatten_dict(frozen, sep="/")
    return unflatten_dict(flat, sep="/")
