"""Masked tokens: the right share, never special ones, the same in all layouts."""

import numpy as np
import pytest

from docjax.data.masking import Masking
from docjax.data.packing import Layout, pack
from docjax.data.segments import OneEach, segments
from docjax.types import Frame, Targets, Units

FRAME = Frame(np.array([1], np.int32), np.array([2], np.int32), 64)
MASK, VOCABULARY = 3, 1000


def document(generator, count=20):
    lengths = generator.integers(0, 63, count)
    tokens = generator.integers(10, VOCABULARY, lengths.sum()).astype(np.int32)
    offsets = np.cumsum([0, *lengths])
    return Units(tokens, offsets, np.zeros(count, np.int32), np.zeros((0, 2), np.int32))


def batch(rows=8, widths=(16, 32, 64), rate=0.15):
    generator = np.random.default_rng(0)
    views = [(segments(document(generator), OneEach(), FRAME),) for _ in range(30)]
    masking = Masking(rate, MASK, VOCABULARY, FRAME)
    layout, targets = Layout(rows, widths, 64), Targets(np.full(30, -1))
    return pack(views, layout, targets, masking, np.random.default_rng(1))


def masked_rows(found):
    """By the tokens of a segment: its masked tokens, positions and answers."""
    rows = {}
    for own, copy in zip(found.microbatches, found.masked, strict=True):
        assert (own.lengths == copy.microbatch.lengths).all()
        for i, length in enumerate(own.lengths):
            real = copy.answers[i] >= 0
            if not length:
                continue
            key = tuple(own.tokens[i, :length].tolist())
            rows[key] = (
                copy.microbatch.tokens[i, :length].tolist(),
                copy.positions[i][real].tolist(),
                copy.answers[i][real].tolist(),
            )
    return rows


def test_a_share_of_each_segment_is_to_be_predicted_and_no_special_token():
    for tokens, (masked, positions, answers) in masked_rows(batch()).items():
        text = max(len(tokens) - 2, 0)
        wanted = min(max(round(0.15 * text), 1), text)
        assert len(positions) == len(set(positions)) == wanted
        assert all(0 < place < len(tokens) - 1 for place in positions)
        assert [tokens[place] for place in positions] == answers
        changed = {i for i, (a, b) in enumerate(zip(tokens, masked)) if a != b}
        assert changed <= set(positions)


def test_most_become_the_mask_some_another_token_some_stay():
    kinds = np.zeros(3)
    for masked, positions, answers in masked_rows(batch(rate=0.5)).values():
        for place, answer in zip(positions, answers):
            now = masked[place]
            kinds[0 if now == MASK else 1 if now != answer else 2] += 1
    total = kinds.sum()
    assert total > 5000
    deviation = 5 * np.sqrt(total * np.array([0.8 * 0.2, 0.1 * 0.9, 0.1 * 0.9]))
    assert (np.abs(kinds - total * np.array([0.8, 0.1, 0.1])) < deviation).all()


@pytest.mark.parametrize("rows, widths", [(1, (64,)), (7, (8, 16, 24, 40, 64))])
def test_the_same_tokens_are_masked_in_every_layout(rows, widths):
    assert masked_rows(batch(rows, widths)) == masked_rows(batch())


def test_the_batch_knows_how_many_tokens_are_to_be_predicted():
    found = batch()
    rows = masked_rows(found).values()
    assert found.answers == sum(len(answers) for _, _, answers in rows)
