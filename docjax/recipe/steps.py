"""The recipe's steps in their order; a config that asks for none of them has none.

`docjax.main` calls them: words before a frozen encoder reads, share and components
before training, the teacher for the trainer. `docjax.keep.Judged` judges at the end.
"""

import jax

from docjax.recipe import judges, words
from docjax.recipe.components import fit_components
from docjax.recipe.share import with_share
from docjax.run.prepared import Prepared


def before_reading(prepared: Prepared) -> None:
    """Fits what a frozen encoder reads with: the word vectors."""
    words.fit(prepared, judges.of_run(prepared))


def before_training(prepared: Prepared, mesh: jax.sharding.Mesh) -> Prepared:
    """The run with its share of the words; its principal components are fitted."""
    prepared = with_share(prepared, mesh)
    fit_components(prepared, mesh)
    return prepared
