"""The principal components of a run's documents, fitted before the first step.

`FromMean` rotates its vectors to them, which leaves all cosines as they are. So the
first numbers of a vector say the most, and vectors can be cut to them.
"""

import jax
import numpy as np
from jaxtyping import Float

from docjax.data.splits import evenly
from docjax.model.compare import unit
from docjax.progress.bars import bar
from docjax.run.fields import is_run
from docjax.run.parameters import COMPONENTS, start_params
from docjax.run.prepared import Prepared
from docjax.storage import atomic
from docjax.storage.processes import wait

MOST = 5_000  # documents that they are fitted to


def fit_components(prepared: Prepared, mesh: jax.sharding.Mesh) -> None:
    """Writes RUN/components.npy, if the document encoder rotates to them."""
    document, init = prepared.encoder.document, prepared.config.init
    if not document.components:
        return
    path = prepared.run / COMPONENTS
    kept = prepared.begun and path.exists()
    wait("components are asked for")
    if kept or (init and is_run(init)):
        return
    if jax.process_index() == 0:
        path.unlink(missing_ok=True)  # it may be of another config
    wait("no components")
    params = start_params(prepared.config, prepared.encoder, prepared.run)
    rows = evenly(prepared.in_reach, MOST).tolist()
    model = prepared.model(document.begin(params), mesh)
    documents = (prepared.segments(prepared.corpus[row]) for row in rows)
    with bar("components"):
        encoded = model.inference().encode(model.params, documents, len(rows))
        vectors = np.stack(list(encoded))
        if jax.process_index() == 0:
            rotation = components(unit(vectors)).astype(np.float32)
            atomic.write_array(path, rotation)
    wait("components")


def components(vectors: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "d d"]:
    """The right singular vectors in columns, the largest first; float64.

    The largest number of each column is positive.
    """
    products = vectors.T.astype(np.float64) @ vectors
    found = np.linalg.eigh(products).eigenvectors[:, ::-1]
    largest = np.take_along_axis(found, np.abs(found).argmax(0)[None], axis=0)
    return found * np.sign(largest)
