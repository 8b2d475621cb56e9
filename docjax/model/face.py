"""What a model does beside encoding: it searches, saves itself, and says what it is.

The modules that do this work themselves read models, so that they are imported when
they are called.
"""

import html
import importlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, overload, runtime_checkable

from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.huggingface import hub
from docjax.model.hits import Hits
from docjax.model.inputs import Item, Items, shown
from docjax.types import ReadLimits


@runtime_checkable
class SearchIndex(Protocol):
    """An index of documents: `docjax.retrieval.index_folder.Index`."""

    def __len__(self) -> int: ...

    def save(self, folder: str | Path) -> Path: ...


class Face:
    """The part of `DocumentModel` for notebooks and for other libraries; its attributes
    are fields there."""

    source: str | None
    encoder: DocumentEncoder
    limits: ReadLimits
    similarity_fn_name: str

    @overload
    def search(self, queries: Item, documents: Any, top: int = 10) -> Hits: ...
    @overload
    def search(self, queries: Items, documents: Any, top: int = 10) -> list[Hits]: ...
    def search(self, queries: Any, documents: Any, top: int = 10) -> Any:
        """The `top` documents that are nearest to each query, each with its best passage.

        Documents that are searched more than once are better indexed once: `index`.

        Args:
          queries: a text, or a list of texts.
          documents: a list of texts, dicts or Documents; a table of pandas, polars,
            pyarrow or datasets with a column text; an `Index` of `model.index`; or the
            folder of an index.

        Returns:
          `docjax.model.hits.Hits`, a list of hits; for a list of queries a list of them.

        Raises:
          UserError: for a query or a document without text, and for an index of another
            model.
        """
        return _later("docjax.model.asking", "ask")(self, queries, documents, top)

    def index(self, documents: Any, passages: bool = True) -> SearchIndex:
        """The documents' vectors and words for `search`; `.save(folder)` keeps them.

        Args:
          documents: as for `search`.
          passages: also keeps the vectors of passages, so that hits need not be read
            again to find the nearest passage.

        Raises:
          UserError: for a document without text, and for two documents with one id.
        """
        return _later("docjax.model.asking", "index")(self, documents, passages)

    def save_pretrained(self, path: str | Path, **options: Any) -> Path:
        """Writes a folder for docjax, transformers and sentence-transformers, as `docjax
        export` does, and returns its path.

        Raises:
          UserError: as `docjax.export.write.export`, and for options of
            sentence-transformers that would change the folder.
        """
        _check_saving("save_pretrained", options, SAVING)
        return _later("docjax.export.write", "export")(self, path)

    save = save_pretrained  # its other name in sentence-transformers

    def push_to_hub(
        self,
        repo_id: str,
        token: str | None = None,
        private: bool | None = None,
        commit_message: str | None = None,
        exist_ok: bool = False,
        revision: str | None = None,
        create_pr: bool = False,
        **options: Any,
    ) -> str:
        """Writes the folder of `save_pretrained` into a repository of the Hugging Face
        Hub, which is made if it is not there; returns the address of the commit.

        The arguments are those of sentence-transformers.

        Raises:
          UserError: as `save_pretrained`, and for what the hub refuses.
        """
        _check_saving("push_to_hub", options, PUSHING)
        hub.check_name(repo_id)
        with tempfile.TemporaryDirectory(prefix="docjax-push-") as name:
            return hub.push(
                self.save_pretrained(Path(name) / repo_id.rpartition("/")[2]),
                repo_id,
                token=token,
                private=private,
                message=commit_message,
                exist_ok=exist_ok or create_pr,
                revision=revision,
                create_pr=create_pr,
            )

    def __repr__(self) -> str:
        return "\n".join(
            [f"DocumentModel {self.source or ''}".rstrip()]
            + [f"  {name:8} {text}" for name, text in self._facts()]
        )

    def _repr_html_(self) -> str:
        rows = [("model", self.source or "DocumentModel"), *self._facts()]
        cells = (
            f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
            for name, text in rows
        )
        return f"<table>{''.join(cells)}</table>"

    def _facts(self: Any) -> list[tuple[str, str]]:
        """What the model is, in four lines."""
        segment, document = self.encoder.inner_segment, self.encoder.document
        layers = getattr(segment, "layers", None)
        kind = type(segment).__name__ + (f" of {layers} layers" if layers else "")
        most = self.limits.inference_segments
        read = "all" if most is None else f"the first {most}"
        tokens = self.limits.segment_tokens
        return [
            ("segments", f"{kind}; each of at most {tokens} tokens"),
            ("document", f"{type(document).__name__} over {read} segments"),
            ("vectors", f"{self.width} numbers, compared by {self.similarity_fn_name}"),
            (
                "methods",
                "encode, encode_queries, search, index, compare, save_pretrained",
            ),
        ]


# Further arguments of sentence-transformers, and the values that change nothing here.
SAVING: dict[str, Any] = {
    "model_name": None,
    "create_model_card": True,
    "train_datasets": None,
    "safe_serialization": True,
}
PUSHING: dict[str, Any] = {
    "train_datasets": None,
    "safe_serialization": True,
    "local_model_path": None,
    "replace_model_card": True,
}


def _check_saving(
    method: str, given: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Raises UserError for an argument that would change the folder."""
    for name, value in given.items():
        if name not in known:
            raise UserError(f"{method} has no argument {name}: leave it out")
        if value is not None and value is not known[name]:
            raise UserError(
                f"{method}: {name}={shown(value)} is not offered: docjax writes "
                "safetensors and a model card of its own, under a seal; leave it out"
            )


def _later(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that itself imports the model."""
    return getattr(importlib.import_module(module), name)
