"""What a run keeps at its end: the field `keep` of a config.

`Last` keeps the last step, `Best` the evaluated step with the best validation metric,
and `Judged` asks a judgement without labels whether training helped.
"""

import dataclasses
import functools
import logging
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from docjax.errors import UserError
from docjax.types import Kept

logger = logging.getLogger(__name__)


class _Trained:
    """Keeps what was trained: no document is held out, and nothing is chosen."""

    def held_out(self, rows: np.ndarray, seed: int) -> np.ndarray:
        del seed
        return rows[:0]

    def choose(
        self,
        run: Any,
        mesh: jax.sharding.Mesh,
        start: Callable[[], Any],
        trained: Any,
    ) -> Kept | None:
        del run, mesh, start, trained
        return None


@dataclasses.dataclass(frozen=True)
class Last(_Trained):
    """The parameters after the last step."""

    metric = None


@dataclasses.dataclass(frozen=True)
class Best(_Trained):
    """The parameters of the evaluated step with the highest validation metric.

    metric: the name of a task and of one of its metrics, such as
      "classification/accuracy". The split `splits.validation` is scored.
    """

    metric: str


@dataclasses.dataclass(frozen=True)
class Judged:
    """The best of three: the trained model, the start with word vectors, or the start.

    Excerpts of training documents that the steps do not read decide, without labels;
    labels of training documents, if there are any, can refuse
    (`docjax.recipe.judgement`).

    least: with fewer training documents nothing is judged, and the run keeps its start,
      or without an encoder its word vectors, which then learn from all documents.
    """

    metric = None
    least: int = 150

    def check_run(self, config: Any) -> None:
        """Raises UserError for a run whose vectors cannot be judged."""
        if config.reads_words or not config.examples.says("independent"):
            what = "words" if config.reads_words else f"examples {config.examples.fn}"
            raise UserError(
                "keep docjax.keep.Judged leaves documents out of the steps and judges "
                f"by them, which needs examples of single documents, but {what} are "
                "trained: set keep to docjax.keep.Last or docjax.keep.Best"
            )

    def held_out(self, rows: np.ndarray, seed: int) -> np.ndarray:
        """The documents that judge; none, and a warning, where there are too few."""
        from docjax.recipe.judges import judges

        chosen = judges(rows, seed, self.least)
        if not len(chosen):
            _warn_of_few(len(rows), self.least)
        return chosen

    def choose(
        self,
        run: Any,
        mesh: jax.sharding.Mesh,
        start: Callable[[], Any],
        trained: Any,
    ) -> Kept | None:
        from docjax.recipe.judgement import judge

        return judge(run, mesh, start(), trained)


@functools.cache  # once for a run
def _warn_of_few(count: int, least: int) -> None:
    logger.warning(
        "keep docjax.keep.Judged cannot judge by %d training documents (at least %d): the "
        "run keeps its start (without an encoder its word vectors), whatever the steps "
        "learn; "
        "--config.keep.fn=docjax.keep.Last keeps the last step",
        count,
        least,
    )
