"""The sample whose reading says how long an encoder reads."""

import numpy as np

from docjax.run import duration
from docjax.types import Segments


def document(lengths: list[int]) -> Segments:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=int)])
    places = np.zeros((len(lengths), 2), np.int32)
    tokens, edges = np.zeros(offsets[-1], np.int32), np.zeros((0, 2), np.int32)
    return Segments(tokens, offsets, places, edges)


def test_a_long_document_is_sampled_in_part():
    long = document([500] * 10_000)
    sample = duration.sampled(3, lambda _: long)
    assert [len(each) for each in sample] == [duration.SAMPLE // 500]


def test_short_documents_are_sampled_whole_until_there_are_enough_tokens():
    short = document([40, 30, 30])
    sample = duration.sampled(1000, lambda _: short)
    assert len(sample) == duration.SAMPLE // 100
    assert all(len(each) == 3 for each in sample)
    assert len(duration.sampled(5, lambda _: document([]))) == 5
