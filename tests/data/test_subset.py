"""Some documents of a corpus, with vectors that the others do not have."""

import numpy as np
import pytest

from docjax.data.corpus import Corpus
from docjax.data.records import full_text
from docjax.data.subset import Subset
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import WholeSections
from docjax.types import Document, Section


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """Documents of 1, 3, 2 and 4 sections."""
    sections = tuple(Section("", "node" + " graph" * number) for number in range(10))
    parts = sections[:1], sections[1:4], sections[4:6], sections[6:]
    documents = [Document(str(number), part) for number, part in enumerate(parts)]
    tokenizer = train_tokenizer(map(full_text, documents), 270)
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    found = Corpus.build(folder, documents, WholeSections(), tokenizer, 64, "f")
    assert found.counts.tolist() == [1, 3, 2, 4]
    return found


def test_a_subset_has_its_documents_alone(corpus):
    subset = Subset(corpus, np.array([1, 3]))
    assert len(subset) == 2 and subset.counts.tolist() == [3, 4]
    np.testing.assert_array_equal(subset[1].tokens, corpus[3].tokens)
    expected = np.concatenate([corpus[row].lengths for row in (1, 3)])
    np.testing.assert_array_equal(subset.lengths, expected)


def test_documents_outside_of_a_subset_have_no_vectors(corpus):
    parts = (np.arange(7.0, dtype=np.float32) + number for number in (0, 100))
    with_some = Subset(corpus, np.array([1, 3])).with_vectors(
        *(p[:, None] for p in parts)
    )
    assert with_some[0].vectors is None and with_some[2].vectors is None
    assert with_some[1].vectors.tolist() == [[0, 100], [1, 101], [2, 102]]
    assert with_some[3].vectors[:, 0].tolist() == [3, 4, 5, 6]
    assert corpus[1].vectors is None  # unchanged
    every = with_some.with_vectors(np.arange(10.0, dtype=np.float32)[:, None])
    assert every[2].vectors.ravel().tolist() == [4, 5]
    assert every[3].vectors.ravel().tolist() == [6, 7, 8, 9]
