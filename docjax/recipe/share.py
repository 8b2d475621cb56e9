"""The share of the word vectors in a document's vector, chosen before training.

Excerpts of documents find each other (`docjax/recipe/judges.py`); the smallest share
that finds as well as the best one is taken.
"""

import logging
from collections.abc import Mapping

import jax
import numpy as np
from jaxtyping import Float

from docjax.progress.bars import bar
from docjax.recipe import judges as judges_lib
from docjax.recipe.half_scores import is_worse, mean_and_error, reciprocal_ranks
from docjax.recipe.judges import Judges
from docjax.run.parameters import WORDS, start_params
from docjax.run.prepared import Prepared
from docjax.storage import json_file
from docjax.storage.processes import wait

logger = logging.getLogger(__name__)

SHARES = (0.1, 0.2, 0.3, 0.5)  # of the words, from which the excerpts choose
SHARE = 0.2  # of the words, with too few documents to choose


def with_share(prepared: Prepared, mesh: jax.sharding.Mesh) -> Prepared:
    """The run with the share of the words chosen, if `encoder.document.share` is None.

    Excerpts find each other, and the mean reciprocal ranks choose (`chosen_share`).
    RUN/share.json keeps the choice. With too few documents to judge the words get
    SHARE, or 0 if there are no word vectors.
    """
    document, path = prepared.encoder.document, prepared.run / "share.json"
    if not document.chooses_share:
        return prepared
    share = SHARE if _has_words(prepared) else 0.0
    if len(judges_lib.of_run(prepared)):
        chosen = prepared.begun and path.exists()
        wait("share is asked for")
        if not chosen:
            with bar("share of the words"):
                _choose_share(prepared, mesh)
        wait("share")
        share = json_file.read(path)["share"]
    logger.info("the words of the corpus get a share of %g of a vector", share)
    return with_this_share(prepared, share)


def _has_words(prepared: Prepared) -> bool:
    """Whether the word vectors are not all zero; those of a run `init` are not."""
    path = prepared.run / WORDS
    return not path.exists() or bool(np.load(path, allow_pickle=False).any())


def with_this_share(prepared: Prepared, share: float = SHARE) -> Prepared:
    """The run with this share of the words, if `encoder.document.share` is None."""
    document = prepared.encoder.document
    if not document.chooses_share:
        return prepared
    encoder = prepared.encoder.clone(document=document.clone(share=share))
    return prepared.changed(encoder=encoder)


def _choose_share(prepared: Prepared, mesh: jax.sharding.Mesh) -> None:
    """Writes RUN/share.json: the share, and the mean reciprocal rank of each share."""
    ranks = _ranks_of_shares(prepared, mesh)
    if jax.process_index() == 0:
        means = [(share, float(each.mean())) for share, each in ranks.items()]
        found = {"share": chosen_share(ranks), "ranks": means}
        json_file.write(prepared.run / "share.json", found)


def chosen_share(ranks: Mapping[float, Float[np.ndarray, " b"]]) -> float:
    """The smallest share that is not worse than the best one by a standard error.

    The best one has the highest mean gain over the share 0, less its standard error. If
    that is not above 0, the words get no share.

    Args:
      ranks: the reciprocal ranks of the same documents with each share, and with 0.
    """
    gains = {}
    for share, each in ranks.items():
        mean, error = mean_and_error(each - ranks[0.0])
        gains[share] = mean - error
    best = max(gains, key=gains.get)
    return min(x for x in ranks if not is_worse(ranks[x] - ranks[best]))


def _ranks_of_shares(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> dict[float, Float[np.ndarray, " b"]]:
    """The reciprocal ranks of the documents held out with no words and each share."""
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    judges = Judges(prepared, mesh, params, judges_lib.of_run(prepared))

    def ranks(share: float) -> Float[np.ndarray, " b"]:
        document = prepared.encoder.document.clone(share=share)
        documents, both = judges.vectors(document.begin(params))
        return reciprocal_ranks(both, documents)

    return {share: ranks(share) for share in (0.0, *SHARES)}
