"""Configs of the earlier fields in the fields of `docjax/run/fields.py`."""

import dataclasses
import sys
import types
from typing import Any

from docjax.run import parts


def translated(config: dict[str, Any]) -> dict[str, Any]:
    """The config with units, examples and the further limits."""
    _stand_in("docjax.data.segments", "OneEach")
    _stand_in("docjax.data.examples", "Documents")
    parts.PLACES["tasks"] = parts.Place(("docjax.tasks.",), (), 2, dict)
    tasks = {
        name: node | {"fn": node["fn"].replace("end_to_end", "linear")}
        for name, node in config["tasks"].items()
    }
    return config | dict(
        units=config["segments"],
        segments=dict(fn="docjax.data.segments.OneEach"),
        examples=dict(fn="docjax.data.examples.Documents"),
        limits=config["limits"] | dict(training_units=None),
        tasks=tasks,
    )


def _stand_in(module: str, name: str) -> None:
    """A module with a class without fields, where there is no such module yet."""
    cls = dataclasses.make_dataclass(name, [], frozen=True)
    cls.__module__ = module
    sys.modules.setdefault(module, types.ModuleType(module)).__dict__[name] = cls
