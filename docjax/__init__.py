"""docjax: embeddings of long documents in JAX."""

__version__ = "0.1.0"


def __getattr__(name: str):
    if name == "load":
        from docjax.model.load import load

        return load
    raise AttributeError(f"module 'docjax' has no attribute {name!r}")
