"""docjax models in mteb, the benchmark of embeddings (`pip install "docjax[mteb]"`).

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
    """A model for mteb, which reads whole documents and encodes queries as queries.

    mteb files results by name and revision. The name is that of the folder; the
    revision is a fingerprint of everything that the vectors depend on. The arguments
    are those of `docjax.load`.
    """

    def __init__(
        self, model_name: str | Path, revision: str | None = None, **keywords: Any
    ):
        self.model = docjax.load(model_name, revision=revision, **keywords)
        if self.model.parts > 1:
            raise docjax.UserError(
                f"{model_name} gives a document several vectors, which mteb cannot "
                "compare: use docjax evaluate"
            )
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
        """The vectors of the texts of all batches; zeros for an empty text.

        Further arguments of mteb (the task, a batch size) have no effect.
        """
        texts = [text for batch in inputs for text in batch["text"]]
        rows = [row for row, text in enumerate(texts) if text.strip()]
        filled = [texts[row] for row in rows]
        if prompt_type is PromptType.query:
            encoded = self.model.encode_queries_of_any_length(filled)
        else:
            encoded = self.model.encode(filled)
        vectors = np.zeros((len(texts), encoded.shape[1]), np.float32)
        vectors[rows] = encoded
        return vectors
