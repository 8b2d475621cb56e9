"""The base class of views that need nothing of the corpus."""

from pathlib import Path
from typing import Any


class Ready:
    """Views of one document at a time that are not fitted to a corpus."""

    many_documents = False
    halve_from: int | None = None

    def files(self) -> tuple[Path, ...]:
        return ()

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Any:
        return self
