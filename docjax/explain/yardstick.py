"""How similar two documents are beside other pairs of the model's corpus.

A run's report writes `RUN/pair_similarities.json`: quantiles of the cosines of pairs of
its documents. A comparison reads them, for the percentile of its similarity.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from docjax.model.cosines import cosines
from docjax.model.document_model import DocumentModel
from docjax.storage import json_file

FILE = "pair_similarities.json"
STEPS = 1000  # between the lowest and the highest quantile


class Yardstick(NamedTuple):
    """The cosines of pairs of documents of a corpus."""

    documents: int  # of which all pairs were compared
    quantiles: list[float]  # the lowest, STEPS - 1 between, the highest

    def percentile(self, similarity: float) -> float:
        """The percentage of pairs that are less similar, from 0 to 100."""
        places = np.linspace(0, 100, len(self.quantiles))
        return round(float(np.interp(similarity, self.quantiles, places)), 1)


def write(run: Path, vectors: Float[np.ndarray, "c d"], fingerprint: str) -> None:
    """Keeps the cosines of all pairs of at least two documents.

    fingerprint: of the model, `DocumentModel.fingerprint`.
    """
    pairs = cosines(vectors, vectors)[np.triu_indices(len(vectors), k=1)]
    quantiles = np.quantile(pairs, np.linspace(0, 1, STEPS + 1))
    facts = {
        "model": fingerprint,
        "documents": len(vectors),
        "quantiles": quantiles.astype(float).round(5).tolist(),
    }
    json_file.write(run / FILE, facts)


def read(folder: Path, model: DocumentModel) -> Yardstick | None:
    """What a run has kept for the parameters that it has now; None without."""
    facts = json_file.read_if_there(folder / FILE)
    if facts is None or facts.get("model") != model.fingerprint():
        return None
    return Yardstick(facts["documents"], facts["quantiles"])
