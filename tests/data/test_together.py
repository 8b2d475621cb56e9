"""Related documents share a batch, and every document still comes once an epoch."""

import numpy as np

from docjax.data import together

# Ten papers in each of 50 fields; the papers of a field cite each other.
FIELDS = np.arange(500) % 50
NEIGHBOURS = {
    row: set(np.flatnonzero(FIELDS == FIELDS[row]).tolist()) - {row}
    for row in range(500)
}


def order(documents, neighbours=NEIGHBOURS, seed=0):
    return together.order(documents, neighbours, np.random.default_rng(seed))


def test_every_document_has_one_place():
    documents = np.arange(0, 500, 3)
    for seed in range(3):
        drawn = order(documents, seed=seed)
        assert sorted(drawn.tolist()) == list(range(len(documents)))
    assert order(documents).tolist() != order(documents, seed=1).tolist()
    assert order(documents).tolist() == order(documents).tolist()


def test_a_batch_holds_several_documents_that_are_related_to_each_other():
    documents = np.arange(500)
    batches = order(documents)[: 6 * 75].reshape(6, 75)
    random = np.random.default_rng(0).permutation(500)[: 6 * 75].reshape(6, 75)

    def related(rows):
        """The share of documents that have a related document in their batch."""
        return np.mean([NEIGHBOURS[row] & set(b) != set() for b in rows for row in b])

    assert related(batches.tolist()) > 0.95
    assert related(random.tolist()) < 0.9
    others = [len(NEIGHBOURS[row] & set(b)) for b in batches.tolist() for row in b]
    assert np.mean(others) > 4


def test_no_batch_is_left_with_the_documents_whose_neighbours_came_before():
    """Most documents cite a few of the same ones, as in the ACL papers."""
    generator, cited = np.random.default_rng(0), {row: set() for row in range(900)}
    for row in range(900):
        for other in (900 * generator.random(4) ** 3).astype(int).tolist():
            cited[row].add(other)
            cited[other].add(row)
    shares = []
    for seed in range(5):
        for batch in order(np.arange(900), cited, seed).reshape(12, 75):
            inside = set(batch.tolist())
            shares.append(np.mean([bool(cited[row] & inside) for row in inside]))
    assert min(shares) > np.mean(shares) - 0.2


def test_a_group_is_limited_so_that_a_batch_has_negatives_too(monkeypatch):
    monkeypatch.setattr(together, "GROUP", 2)
    pairs = FIELDS[order(np.arange(500))].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all()
    assert (pairs[1:, 0] == pairs[:-1, 0]).mean() < 0.1


def test_documents_without_neighbours_stand_in_random_order():
    drawn = order(np.arange(20), {})
    assert sorted(drawn.tolist()) == list(range(20)) and drawn.tolist() != list(
        range(20)
    )
