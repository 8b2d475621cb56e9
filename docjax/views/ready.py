"""What views share that need nothing of the corpus."""

from pathlib import Path
from typing import Any


class Ready:
    """Views of one document at a time that are ready as the config makes them."""

    many_documents = False

    def files(self) -> tuple[Path, ...]:
        """Views that are ready read no file."""
        return ()

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Any:
        """The views themselves."""
        del tokenizer, corpus, documents
        return self
