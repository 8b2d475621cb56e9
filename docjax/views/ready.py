"""What views share that need nothing of the corpus."""

from typing import Any


class Ready:
    """Views of one document at a time that are ready as the config makes them."""

    many_documents = False

    def check(self) -> None:
        """Nothing is missing."""

    def fitted(self, tokenizer: Any, corpus: Any, documents: Any = None) -> Any:
        """The views themselves."""
        del tokenizer, corpus, documents
        return self
