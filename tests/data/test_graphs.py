"""Edges against rules written node by node (graph-roberta, section 3.3)."""

import itertools

import jraph
import numpy as np
import pytest

from docjax.data import graphs

NO_EDGES = np.zeros((0, 2), np.int32)
SECTIONS = {
    "one segment": [0],
    "one section": [0, 0, 0],
    "three sections": [0, 0, 1, 2, 2, 2],
    "every segment its own section": [0, 1, 2, 3],
    "a section without segments": [0, 0, 2, 3, 3],
}


def pairs(graph: jraph.GraphsTuple) -> list[tuple[int, int]]:
    return list(zip(graph.senders.tolist(), graph.receivers.tolist()))


def is_first(sections, node) -> bool:
    return node == 1 or sections[node - 1] != sections[node - 2]


def expected_section_edges(sections, clique: bool) -> set[tuple[int, int]]:
    """The rule, for each pair of nodes; node 0 is the document, i + 1 segment i."""
    found = set()
    nodes = range(len(sections) + 1)
    for one, other in itertools.product(nodes, nodes):
        tops = [n for n in (one, other) if n == 0 or is_first(sections, n)]
        both_top = len(tops) == 2 and (clique or 0 in (one, other))
        same_section = 0 not in (one, other) and (
            sections[one - 1] == sections[other - 1]
        )
        if one == other or both_top or same_section:
            found.add((one, other))
    return found


@pytest.fixture(params=SECTIONS.values(), ids=SECTIONS.keys())
def sections(request) -> np.ndarray:
    return np.array(request.param, np.int32)


@pytest.mark.parametrize("segments", [1, 2, 7])
def test_the_full_graph_has_every_pair_once(segments):
    graph = graphs.full(segments, np.zeros(segments, np.int32), NO_EDGES)
    nodes = range(segments + 1)
    assert sorted(pairs(graph)) == list(itertools.product(nodes, nodes))


def test_full_graphs_are_kept_if_they_are_small():
    few, many = graphs.CACHED, graphs.CACHED + 1
    first = [graphs.full(n, np.zeros(n, np.int32), NO_EDGES) for n in (few, many)]
    again = [graphs.full(n, np.zeros(n, np.int32), NO_EDGES) for n in (few, many)]
    assert [a is b for a, b in zip(first, again)] == [True, False]


@pytest.mark.parametrize("clique", [True, False])
def test_the_section_graph_has_exactly_the_edges_of_the_rule(sections, clique):
    graph = graphs.section(
        len(sections), sections, NO_EDGES, first_passage_clique=clique
    )
    found = pairs(graph)
    assert len(found) == len(set(found))
    assert set(found) == expected_section_edges(sections, clique)


def test_without_the_clique_the_first_passages_are_a_star_around_the_document():
    sections = np.arange(5, dtype=np.int32)  # every segment is the first of a section
    graph = graphs.section(5, sections, NO_EDGES, first_passage_clique=False)
    apart = {(a, b) for a, b in pairs(graph) if a != b}
    assert apart == {(0, i) for i in range(1, 6)} | {(i, 0) for i in range(1, 6)}


def test_user_edges_join_all_segments_of_both_sections(sections):
    edges = np.array([[0, 2], [3, 3]], np.int32)
    found = set(pairs(graphs.user_edges(len(sections), sections, edges)))
    base = expected_section_edges(sections, False)
    joined = {
        (i + 1, j + 1)
        for i, j in itertools.product(range(len(sections)), repeat=2)
        if {sections[i], sections[j]} == {0, 2} or sections[i] == sections[j] == 3
    }
    assert found == base | joined


def test_user_edges_to_sections_that_a_cap_cut_off_are_not_there():
    sections = np.array([0, 0, 1], np.int32)
    edges = np.array([[0, 7], [8, 9]], np.int32)
    assert set(pairs(graphs.user_edges(3, sections, edges))) == expected_section_edges(
        sections, False
    )


@pytest.mark.parametrize("builder", [graphs.full, graphs.section, graphs.user_edges])
def test_every_node_has_a_self_loop_and_edges_run_both_ways(builder, sections):
    edges = np.array([[0, 2]], np.int32)
    graph = builder(len(sections), sections, edges)
    matrix = graphs.adjacency(graph, len(sections) + 1)
    assert matrix.diagonal().all()
    np.testing.assert_array_equal(matrix, matrix.T)
    assert graph.n_node.tolist() == [len(sections) + 1]
    assert graph.n_edge.tolist() == [len(graph.senders)]


def test_adjacency_and_edge_list_hold_the_same_graph(sections):
    # One-way edges show which axis is the receiver's.
    some = pairs(graphs.section(len(sections), sections, NO_EDGES))[::2]
    senders, receivers = np.array(some, np.int32).T
    graph = jraph.GraphsTuple(None, None, receivers, senders, None, None, None)
    nodes = len(sections) + 3
    matrix, listed = graphs.adjacency(graph, nodes), graphs.edge_list(graph, 40)
    assert {(s, r) for r, s in np.argwhere(matrix)} == set(some)
    real = listed[listed[:, 0] >= 0]
    assert [tuple(edge) for edge in real.tolist()] == some
    assert (listed[len(some) :] == -1).all()
