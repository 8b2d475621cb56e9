"""Batches: views point to their segments, in all towers; graphs and targets follow."""

import itertools
from collections import Counter

import numpy as np
import pytest

from docjax.data import graphs
from docjax.data.packing import Layout, pack, padding
from docjax.types import Targets

NONE = Targets(np.array([-1]))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_points_from_view_document_and_position_to_the_tokens(
    sparse, documents
):
    views = [(one, two) for one, two in zip(documents(6), documents(6, seed=1))]
    layout = Layout(4, (8, 40), 40, graphs.section, sparse)
    batch = pack(views, layout, Targets(np.arange(6)))
    flat = [
        m.tokens[i, : m.lengths[i]].tolist()
        for m in batch.microbatches
        for i in range(len(m.tokens))
    ]
    seen = Counter()
    for b, v in itertools.product(range(6), range(2)):
        one = views[b][v]
        assert batch.lengths[v, b].tolist()[: len(one)] == one.lengths.tolist()
        assert not batch.lengths[v, b, len(one) :].any()
        assert batch.places[v, b].tolist()[: len(one)] == one.places.tolist()
        for p in range(len(one)):
            expected = one.tokens[one.offsets[p] : one.offsets[p + 1]].tolist()
            assert flat[batch.rows[v, b, p]] == expected
            seen[int(batch.rows[v, b, p])] += 1
        graph = graphs.section(len(one), one.sections, one.edges)
        expected = {*zip(graph.senders.tolist(), graph.receivers.tolist())}
        if sparse:
            found = {tuple(edge) for edge in batch.graphs.edges[v, b].tolist()}
            assert found - {(-1, -1)} == expected and batch.graphs.adjacency is None
        else:
            found = {
                (s, r) for r, s in np.argwhere(batch.graphs.adjacency[v, b]).tolist()
            }
            assert found == expected and batch.graphs.edges is None
    assert set(seen.values()) == {1}
    assert len(seen) == sum(len(row) > 0 for row in flat)
    assert batch.targets.labels.tolist() == list(range(6))


def test_a_batch_without_graph_and_labels(document):
    batch = pack([(document(2, 3),)], Layout(2, (8,), 8), NONE)
    assert batch.graphs.adjacency is None and batch.graphs.edges is None
    assert batch.targets.labels.tolist() == [-1]
    assert batch.rows.shape == (1, 1, 2)


def test_padding_counts_positions_with_and_without_a_token(document):
    batch = pack([(document(8, 3, 1),)], Layout(2, (4, 8), 8), NONE)
    assert [m.tokens.shape for m in batch.microbatches] == [(2, 8), (2, 4)]
    assert padding(batch) == (24, 12)


def test_every_tower_has_micro_batches_of_its_own(documents):
    views = [(one, two) for one, two in zip(documents(6), documents(6, seed=1))]
    batch = pack(views, Layout(4, (8, 40), 40, towers=(1, 0)), Targets(np.arange(6)))
    start, tower_of = 0, {}
    flat = []
    for m, tower in zip(batch.microbatches, batch.towers, strict=True):
        for i, length in enumerate(m.lengths):
            flat.append(m.tokens[i, :length].tolist())
            tower_of[start + i] = tower
        start += len(m.lengths)
    assert sorted(batch.towers) == list(batch.towers) and set(batch.towers) == {0, 1}
    for b, v in itertools.product(range(6), range(2)):
        one = views[b][v]
        for p in range(len(one)):
            row = int(batch.rows[v, b, p])
            assert tower_of[row] == (1, 0)[v]
            assert flat[row] == one.tokens[one.offsets[p] : one.offsets[p + 1]].tolist()


def test_a_segment_that_a_view_made_longer_takes_the_width_of_the_limit(document):
    batch = pack([(document(12, 3),)], Layout(2, (4, 8), 16), NONE)
    assert [m.tokens.shape for m in batch.microbatches] == [(2, 16)]
