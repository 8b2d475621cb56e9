"""docjax in mteb, the benchmark of embeddings (`pip install "docjax[mteb]"`).

mteb.evaluate(MtebModel("runs/demo"), mteb.get_tasks(["NFCorpus"]))
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction
from mteb.types import PromptType

import docjax


class MtebModel(AbsEncoder):
    """A model that reads mteb's documents whole, and its queries as queries.

    mteb keeps results by name and revision: here the name of the folder, and a
    fingerprint of all that the vectors depend on.

    Args:
      model_name, revision, keywords: what `docjax.load` takes.
    """

    def __init__(
        self, model_name: str | Path, revision: str | None = None, **keywords: Any
    ):
        self.model = docjax.load(model_name, revision=revision, **keywords)
        facts = {
            "name": f"docjax/{Path(model_name).resolve().name}",
            "revision": self.model.fingerprint(),
            "framework": ["JAX"],
            "similarity_fn_name": ScoringFunction(self.model.similarity_fn_name),
        }
        self.mteb_model_meta = ModelMeta.create_empty(facts)

    def encode(
        self,
        inputs: Iterable[Mapping[str, Sequence]],
        *,
        prompt_type: PromptType | None = None,
        **others: Any,
    ) -> Float[np.ndarray, "n d"]:
        """The vectors of the texts of all batches; an empty text has zeros.

        What else mteb tells (the task, a batch size) changes nothing.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        real = [row for row, text in enumerate(texts) if text.strip()]
        words = [texts[row] for row in real]
        if prompt_type is PromptType.query:
            found = self.model.encode_queries_of_any_length(words)
        else:
            found = self.model.encode(words)
        vectors = np.zeros((len(texts), found.shape[1]), np.float32)
        vectors[real] = found
        return vectors
