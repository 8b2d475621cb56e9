"""docjax: embeddings of long documents in JAX.

    model = docjax.load("runs/demo")
    vectors = model.encode(["A long text ..."])

Each name below is imported at its first use. `__init__.pyi` has the types.
"""

import importlib
from logging import root
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Document": "docjax.types",
    "DocumentModel": "docjax.model.document_model",
    "Section": "docjax.types",
    "UserError": "docjax.errors",
    "load": "docjax.model.load",
    "train": "docjax.main",
}
__all__ = [
    "Document",
    "DocumentModel",
    "Section",
    "UserError",
    "config",
    "load",
    "train",
]


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
    """The module, imported without a change of Python's logging handlers.

    Orbax and Grain log during their import, and this logging would add a handler.
    """
    handlers = list(root.handlers)
    imported = importlib.import_module(module)
    root.handlers[:] = handlers
    return imported


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
