"""docjax: embeddings of long documents in JAX.

    model = docjax.load("runs/demo")
    vectors = model.encode(["A long text ..."])

The names below are imported when they are first used; their types are in
`__init__.pyi`.
"""

import importlib
from logging import root
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Document": "docjax.types",
    "DocumentModel": "docjax.model.document_model",
    "UserError": "docjax.errors",
    "load": "docjax.model.load",
    "train": "docjax.main",
}
__all__ = ["Document", "DocumentModel", "UserError", "config", "load", "train"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(_imported(_HOMES[name]), name)
    elif name == "config":
        value = importlib.import_module("docjax.config")
    else:
        raise AttributeError(f"module 'docjax' has no attribute {name!r}")
    globals()[name] = value
    return value


def _imported(module: str) -> ModuleType:
    """The module. Orbax and Grain log while they are imported, which adds a handler to
    Python's logging: it is taken off again."""
    handlers = list(root.handlers)
    found = importlib.import_module(module)
    root.handlers[:] = handlers
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
