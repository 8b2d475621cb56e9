"""The word vectors of a run, fitted to its training documents before the first step.

The table is the truncated singular value decomposition of the documents' TF-IDF
(latent semantic analysis, Deerwester et al., 1990), over the tokens of the segment
encoder. So a document's vector has the names and terms of the corpus beside what the
checkpoint knows.
"""

import logging

import jax
import numpy as np
from jaxtyping import Float, Int

from docjax.data.corpus import Corpus
from docjax.data.splits import evenly
from docjax.data.tokenizer import Tokenizer
from docjax.data.word_tokenizer import FEW
from docjax.errors import UserError
from docjax.progress.bars import bar
from docjax.recipe.tfidf import BESIDE, LEAST, tfidf
from docjax.run.fields import is_run
from docjax.run.parameters import WORDS
from docjax.run.prepared import Prepared
from docjax.storage import atomic
from docjax.storage.processes import wait

logger = logging.getLogger(__name__)

MOST = 100_000  # documents that are read for the table
MARKS = "\u2581\u0120# "  # of tokenizers, at the beginning of a token
ALONE = 1.0  # power of the idf of words that stand alone


def fit(prepared: Prepared, held_out: Int[np.ndarray, " j"]) -> None:
    """Writes RUN/words.npy, if the segment encoder has word vectors without `init`.

    Documents that are `held_out`, to judge the vectors, are not read.
    """
    segment, init = prepared.encoder.inner_segment, prepared.config.init
    if not segment.words or (init and is_run(init)):
        return
    path = prepared.run / WORDS
    # Words of another config may lie there.
    if jax.process_index() == 0 and not (prepared.begun and path.exists()):
        rows = np.setdiff1d(prepared.trained_on, held_out)
        with bar("word vectors"):
            table = fitted(
                *(prepared.corpus, segment.vocabulary, rows, segment.words),
                alone=prepared.encoder.document.words_alone,
                unspecific=unspecific(prepared.tokenizer) if len(rows) < FEW else None,
            )
        # Words of a prompt would count in every text, so their vectors are zero.
        prompts = [frame.prefix for frame in prepared.frames.values()]
        table[np.concatenate(prompts)] = 0
        atomic.write_array(path, table)
    wait("words")


def unspecific(tokenizer: Tokenizer) -> Int[np.ndarray, " s"]:
    """The tokens that say nothing of a subject: English stop words, marks and single
    letters. Few documents are not enough to tell them by how many documents have them."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # loads slowly

    names = {
        number: token.strip(MARKS).lower()
        for token, number in tokenizer.backend.get_vocab().items()
    }
    return np.array(
        [
            number
            for number, name in names.items()
            if name in ENGLISH_STOP_WORDS
            or not any(map(str.isalnum, name))
            or (len(name) == 1 and name.isascii())
        ],
        np.int64,
    )


def fitted(
    corpus: Corpus,
    vocabulary: int,
    rows: Int[np.ndarray, " b"],
    width: int,
    *,
    alone: bool = False,
    unspecific: Int[np.ndarray, " s"] | None = None,
) -> Float[np.ndarray, "w k"]:
    """The word vectors for the documents `rows`, zero for words in fewer than LEAST
    documents.

    A document is (1 + ln count) x idf^power of its words, scaled to length 1; a word's
    vector is its row of the `width` right singular vectors, times idf^power. Corpora of
    more than MOST documents are sampled evenly. With too few documents or shared words
    all vectors are zero.

    Args:
      alone: nothing else is in a document's vector, so the power is ALONE, not BESIDE.
      unspecific: given for few documents: the tokens without a vector; a word of a
        single document then has one. None: the documents are enough to tell.

    Raises:
      UserError: for words alone, if there are too few documents or shared words.
    """
    from sklearn.decomposition import TruncatedSVD  # loads slowly

    rows = evenly(rows, MOST)
    matrix, idf = tfidf(
        (corpus[row] for row in rows.tolist()),
        vocabulary,
        power=ALONE if alone else BESIDE,
        least=LEAST if unspecific is None else 1,
        without=unspecific,
    )
    table, known = np.zeros((vocabulary, width), np.float32), int((idf > 0).sum())
    if min(len(rows), known) < 2:
        _tell_too_few(len(rows), known, alone)
        return table
    width = min(width, len(rows), known)
    with np.errstate(invalid="ignore", divide="ignore"):  # documents that are all equal
        svd = TruncatedSVD(width, random_state=0).fit(matrix)
    table[:, :width] = svd.components_.T * idf[:, None]
    logger.info("word vectors of %d words, from %d documents", known, len(rows))
    return table


def _tell_too_few(documents: int, known: int, alone: bool) -> None:
    """Warns that there are no word vectors. Raises UserError for words alone."""
    few = (
        f"{documents} training documents share {known} words, too few for word vectors"
    )
    if alone:
        raise UserError(
            f"{few}: give more documents, or take graph_roberta:frozen with "
            "--config.init=FOLDER"
        )
    logger.warning("%s: the run goes on without word vectors", few)
