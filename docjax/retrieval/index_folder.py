"""An index in memory maps: searching it by words, vectors and passages.

`docjax.model.build_index` writes it; `docjax.retrieval.index_files` says which files it
has. The search is exact; with codes (`docjax.retrieval.shortlist`) or a graph it is
nearly so.
"""

import dataclasses
import functools
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from docjax.data import documents as documents_lib
from docjax.errors import UserError
from docjax.retrieval import bm25, fusion, hnsw, index_files, nearest, shortlist
from docjax.retrieval.codes import Codes
from docjax.retrieval.index_files import CODES, DOCUMENTS, GRAPH, STEPS, VECTORS, WORDS
from docjax.retrieval.nearest import Best, Nearest
from docjax.retrieval.systems import QueryVectors
from docjax.storage import atomic
from docjax.storage.arrays import mapped
from docjax.storage.line_starts import Lines
from docjax.storage.shards import PASSAGES, SIZES
from docjax.storage.vector_files import beside
from docjax.types import Document, Run


class Ids(Sequence[str]):
    """The documents' ids in their order; those that were read are in memory."""

    def __init__(self, lines: Lines):
        self.rows: dict[str, int] = {}  # of each id that was read
        self._lines = lines

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, row: int) -> str:
        name = json.loads(self._lines[row])["id"]
        self.rows[name] = row
        return name


@dataclasses.dataclass(frozen=True, eq=False)
class Index:
    """An index whose files were found whole.

    Attributes:
      facts: `model` (a fingerprint), `similarity`, `truncate_dim`, `passages`, `words`,
        `codes`, `graph`, `contents` (a digest of the corpus), `files` (their sizes) and
        `bfloat16`, what rounding does to the vectors
        (`docjax.retrieval.shortlist.Rounding`).
    """

    folder: Path
    facts: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.vectors)

    @functools.cached_property
    def vectors(self) -> Float[np.ndarray, "n d"]:
        return self._array(VECTORS)

    @functools.cached_property
    def passages(self) -> Float[np.ndarray, "m d"]:
        """The vectors of all passages. Raises UserError for an index without."""
        if not self.facts["passages"]:
            raise UserError(
                f"{self.folder} has no passages: make it again with docjax index "
                "--passages"
            )
        return self._array(beside(Path(VECTORS), f"{PASSAGES}.npy"))

    @functools.cached_property
    def starts(self) -> Int[np.ndarray, " _"]:
        """The row of each document's first passage, and the end of the last."""
        sizes = self._array(beside(Path(VECTORS), f"{SIZES}.npy"))
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @functools.cached_property
    def ids(self) -> Ids:
        return Ids(Lines(self.folder / beside(Path(VECTORS), "ids.jsonl")))

    def save(self, folder: str | Path) -> Path:
        """Copies the index into a new folder, and returns the folder.

        Raises:
          UserError: if the folder is there already or cannot be written.
        """
        folder = Path(folder)
        if folder.exists():
            raise UserError(f"{folder} exists: delete it, or give another folder")
        partial = folder.with_name(f".{folder.name}.partial")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(self.folder, partial)
            atomic.rename(partial, folder)
        except OSError as error:
            raise UserError(f"{folder}: cannot be written ({error})") from None
        return folder

    def __repr__(self) -> str:
        passages = f", {len(self.passages)} passages" if self.facts["passages"] else ""
        return f"Index of {len(self)} documents{passages} in {self.folder}"

    def document(self, row: int) -> Document:
        """The text of a document."""
        line = self._documents[row]
        return documents_lib.parse(json.loads(line), f"{DOCUMENTS}, line {row + 1}")

    def search(
        self,
        system: str,
        queries: Mapping[str, str],
        vectors: QueryVectors | None,
        top: int,
        weight: float | None = None,
        scale: str = "min-max",
    ) -> Run:
        """The `top` documents of each query by a system of `docjax.retrieval.systems`.

        Args:
          vectors: those of the queries; "bm25" needs none.
          weight, scale: of a fused system, see `fusion.fuse`; "rrf" needs neither.
        """
        if system == "bm25":
            return self.by_words(queries, top)
        if system in ("dense", "maxp", "maxsim"):
            best = self.by_vectors(system, vectors, top)
            return nearest.as_run(best, queries, self.ids)
        part = system.removeprefix("fused_") if system.startswith("fused_") else "dense"
        deep = max(top, fusion.TOP)
        by_vectors = self.search(part, queries, vectors, deep)
        by_words = self.by_words(queries, deep)
        if system == "rrf":
            return fusion.by_ranks(by_vectors, by_words, list(queries), top)
        weights = dict.fromkeys(queries, weight)
        return fusion.fuse(by_vectors, by_words, weights, scale, top)

    def by_words(self, queries: Mapping[str, str], top: int) -> Run:
        """By BM25. Raises UserError for an index without words."""
        if self.facts["words"] is None:
            raise UserError(f"{self.folder} has no words: make it with docjax index")
        words = bm25.load(self.folder / WORDS, self.ids)
        return words.search(queries, top)

    def by_vectors(self, system: str, queries: QueryVectors, top: int) -> Best:
        """The `top` documents by "dense", "maxp" or "maxsim"."""
        top = min(top, len(self))
        width = queries.whole.shape[1]
        if system == "dense" and self.vectors.shape[1] == width:
            keywords = {"top": top, "cosine": self._cosine}
            if self.facts["graph"]:
                path = self.folder / GRAPH
                return hnsw.nearest(queries.whole, self.vectors, path, **keywords)
            keywords["rounding"] = shortlist.Rounding(*self.facts["bfloat16"])
            if kind := self.facts["codes"]:
                codes = Codes(self._array(CODES)[:, None], self._array(STEPS)[:, None])
                keywords |= {"codes": codes, "kind": kind}
            return shortlist.nearest(queries.whole, self.vectors, **keywords)
        asked = queries.sentences if system == "maxsim" else queries.whole[:, None]
        search = Nearest(asked, top, cosine=self._cosine)
        if system == "dense":  # several vectors of a query's width side by side
            search.add_all(self.vectors.reshape(len(self), -1, width))
        else:
            self._add_passages(search)
        return search.best()

    @property
    def _cosine(self) -> bool:
        return self.facts["similarity"] == "cosine"

    def _add_passages(self, search: Nearest) -> None:
        """Adds documents with similar numbers of passages at once.

        The last passage fills up a document to a power of 2.
        """
        passages, sizes = self.passages, np.diff(self.starts)
        widths = 1 << np.ceil(np.log2(sizes)).astype(int)
        for width in np.unique(widths).tolist():
            documents = np.flatnonzero(widths == width)
            count = max(1, nearest.ROWS // width)
            for start in range(0, len(documents), count):
                part = documents[start : start + count]
                places = np.minimum(np.arange(width), sizes[part][:, None] - 1)
                search.add_all(passages[self.starts[part][:, None] + places], part)

    @functools.cached_property
    def _documents(self) -> Lines:
        return Lines(self.folder / DOCUMENTS)

    def _array(self, name: str | Path) -> np.ndarray:
        return mapped(self.folder / name)


def load(folder: Path, model: str) -> Index:
    """The index in a folder, made with the model of this fingerprint. Raises UserError
    if the index was not finished, is damaged, or was made with another model."""
    facts = index_files.read_facts(folder)
    if facts["model"] != model:
        raise UserError(
            f"{folder} was made with another model: give that model, or make an index "
            "with this one"
        )
    if wrong := index_files.damaged(folder, facts):
        raise UserError(
            f"{folder}/{wrong[0]} is damaged or missing: run the same docjax index again"
        )
    return Index(folder, facts)
