"""Documents with their sections or segments in random order (CoLDE's study)."""

import dataclasses
import logging
import zlib

import numpy as np

from docjax.errors import UserError
from docjax.types import Segments

logger = logging.getLogger(__name__)

PIECES = ("sections", "segments")  # that `Shuffled` puts in another order


@dataclasses.dataclass
class Shuffled:
    """Puts the sections or the segments of documents in random order.

    "sections" are numbered in their new order. The title moves with the first one, and a
    segment that spans several sections stays whole. "segments" keep their places, as in
    CoLDE's released code; in a section graph each change of section then begins with a
    first segment. The order depends on the seed and on the document alone.
    """

    pieces: str  # one of PIECES
    seed: int
    documents: int = 0  # so far
    fixed: int = 0  # those with one piece, so that there is no other order

    def __call__(self, whole: Segments) -> Segments:
        numbers, section = np.unique(whole.sections, return_inverse=True)
        count = len(numbers) if self.pieces == "sections" else len(whole)
        self.documents += 1
        self.fixed += count < 2
        known = zlib.crc32(whole.tokens.tobytes())
        place = np.random.default_rng((self.seed, known)).permutation(count)
        if self.pieces == "segments":
            return whole.take(np.argsort(place))
        moved = whole.take(np.argsort(place[section], kind="stable"))
        most = max(whole.sections.max(initial=0), whole.edges.max(initial=0))
        new = np.arange(most + 1, dtype=np.int32)  # number of each section
        new[numbers] = numbers[place]
        places = np.stack([new[moved.sections], moved.places[:, 1]], axis=1)
        return dataclasses.replace(moved, places=places, edges=new[whole.edges])

    def check(self) -> None:
        """Warns of documents that could not change. Raises UserError if none could."""
        if self.fixed == self.documents:
            raise UserError(
                f"shuffled {self.pieces!r}: the model reads none of {self.documents} "
                f"documents as two {self.pieces} or more, so that there is no other "
                "order: leave shuffled out"
            )
        if self.fixed:
            logger.warning(
                "%d of %d documents have fewer than two %s that the model tells apart: "
                "they stay as they are",
                *(self.fixed, self.documents, self.pieces),
            )
