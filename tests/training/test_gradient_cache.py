"""The gradient cache against a gradient with all activations kept.

Problems and the measure of error are in `conftest.py`.
"""

import dataclasses
import types
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.data.microbatches import round_up
from docjax.data.packing import pack, padding
from docjax.training import gradient_cache, sharding
from docjax.training.gradient_cache import GradientCache
from docjax.types import DOCUMENT, Graphs, Segments, Targets

BAR = 5e-6  # max |difference| of a parameter's gradient over its max
PROBLEMS = (
    *("halves", "one against rest", "classifier", "mean", "sparse graphs"),
    *("relations", "chunks", "masked tokens", "masked tokens alone"),
    *("two towers", "two copies", "frozen layer", "queue", "distillation"),
    *("several vectors", "momentum", "longformer", "modernbert", "bigbird"),
    *("labelled pairs", "pairs with a margin", "query and negative"),
)
# Several widths, one document at a time, and all at once; activations of none, of all, or
# of some micro-batches are kept. The test on many devices takes the gradients of all
# PROBLEMS, and of KEPT with all activations.
SIZES = [
    *((name, 7, 99) for name in ("masked tokens", "two towers", "momentum")),
    *((name, 7, 0) for name in ("two towers", "relations", "queue", "chunks")),
    *((name, 7, 0) for name in ("query and negative", "several vectors")),
    *(("masked tokens", 1, 0), ("momentum", 7, 2), ("frozen tower", 64, 99)),
]
KEPT = (
    "longformer",
    "bigbird",
    "distillation",
    "two towers",
    "momentum",
    "masked tokens",
)


@pytest.mark.parametrize("dropout", [False, True], ids=["no dropout", "dropout"])
@pytest.mark.parametrize(
    "microbatch, widths, keep",
    [(1, (16,), 0), (7, (8, 16), 0), (7, (8, 16), 9), (7, (8, 16), 1), (64, (16,), 9)],
)
def test_the_gradient_is_exact_for_every_size_of_micro_batch(
    problem, plain, mesh, worst_error, microbatch, widths, keep, dropout
):
    key = jax.random.key(1) if dropout else None
    found, metrics = problem("one against rest").gradient(
        microbatch, mesh(1), key, widths, keep
    )
    expected, exact = plain("one against rest", dropout)
    assert worst_error(found, expected) <= BAR
    for name, value in exact.items():
        np.testing.assert_allclose(metrics[name], value, rtol=2e-6)


@pytest.mark.parametrize("name, microbatch, keep", SIZES)
def test_losses_are_exact_for_every_size_of_micro_batch(
    problem, plain, mesh, worst_error, name, microbatch, keep
):
    key, widths = jax.random.key(1), (8, 16) if microbatch == 7 else (16,)
    found, metrics = problem(name).gradient(microbatch, mesh(1), key, widths, keep)
    expected, exact = plain(name, True)
    assert worst_error(found, expected) <= BAR
    assert set(metrics) == set(exact)
    for metric, value in exact.items():
        np.testing.assert_allclose(metrics[metric], value, rtol=5e-6, atol=1e-7)


def test_a_nested_encoder_has_the_gradient_and_the_metrics_of_one_pass(
    problem, plain, mesh, worst_error
):
    found, metrics = problem("nested").gradient(16, mesh(1), None)
    expected, exact = plain("nested", False)
    assert worst_error(found, expected) <= BAR
    assert set(metrics) == set(exact) and exact["mean_loss"] > 0
    for metric, value in exact.items():
        np.testing.assert_allclose(metrics[metric], value, rtol=5e-6)


def test_a_frozen_parameter_has_no_gradient_and_the_others_the_one_they_had(
    problem, plain, worst_error
):
    frozen, all_ = plain("frozen layer", False)[0], plain("halves", False)[0]
    assert set(frozen["segment"]) == {"layer_1"}
    assert (
        worst_error(frozen, all_ | {"segment": {"layer_1": all_["segment"]["layer_1"]}})
        <= BAR
    )


@pytest.mark.parametrize(
    "name, keep",
    [*((name, 0) for name in PROBLEMS), *((name, 99) for name in KEPT)],
)
def test_the_gradient_is_the_same_on_many_devices_with_dropout(
    problem, plain, mesh, worst_error, name, keep
):
    found, metrics = problem(name).gradient(16, mesh(8), jax.random.key(1), keep=keep)
    expected, exact = plain(name, True)
    assert worst_error(found, expected) <= BAR
    np.testing.assert_allclose(metrics["loss"], exact["loss"], rtol=2e-6)


def test_answers_in_every_slot_are_no_negatives_on_many_devices(problem, mesh):
    one = problem("query and negative")
    related = one.targets().related
    assert related.shape == (16, 32) and related[:, 16:].sum() > related[:, :16].sum()
    _, metrics = one.gradient(16, mesh(8), None)
    np.testing.assert_allclose(metrics["negatives"], 31 - related.sum(1).mean())


@pytest.mark.parametrize("name", ["classifier", "words against rest", "sparse graphs"])
@pytest.mark.parametrize("devices, block", [(1, 2), (8, 1)])
def test_blocks_of_documents_leave_the_gradient_as_it_is(
    problem, plain, mesh, worst_error, monkeypatch, name, devices, block
):
    """Only the classifier's labels tell if documents come back in another order."""
    expected, exact = plain(name, name == "classifier")
    monkeypatch.setattr(gradient_cache, "BLOCK", block)
    assert gradient_cache._blocks(16, devices) == 16 // devices // block > 1
    key = jax.random.key(1) if name == "classifier" else None
    found, metrics = problem(name).gradient(16, mesh(devices), key)
    assert worst_error(found, expected) <= BAR
    np.testing.assert_allclose(metrics["loss"], exact["loss"], rtol=2e-6)


def test_a_loss_written_document_by_document_has_the_same_gradient(
    problem, mesh, worst_error
):
    """Every document apart: no sorting, no rows, no micro-batches."""
    one = problem("words against rest")
    apply = one.encoder.apply

    def read(params, tokens, lengths):
        places = jnp.zeros((len(lengths), 2), int)
        return apply({"params": params}, tokens, lengths, places, method="segments")

    def query(params, tokens, lengths, adjacency):
        vectors = read(params, tokens, lengths)
        return apply({"params": params}, vectors[0], method="queries")

    def whole(params, tokens, lengths, adjacency):
        vectors, places = (
            read(params, tokens, lengths),
            jnp.zeros((len(lengths), 2), int),
        )
        light = lengths, places, Graphs(adjacency)
        return apply({"params": params}, vectors, *light, method="documents")

    queries, rest = (
        tuple(map(np.stack, zip(*[apart(view, one.graph) for view in views])))
        for views in zip(*one.documents())
    )

    def loss(params):
        over_documents = (None, 0, 0, 0)
        vectors = [
            jax.vmap(query, over_documents)(params, *queries),
            jax.vmap(whole, over_documents)(params, *rest),
        ]
        return one.objective(jnp.stack(vectors), one.targets())[0]

    expected = jax.device_get(jax.jit(jax.grad(loss))(one.params()))
    found, _ = one.gradient(7, mesh(1), None, widths=(8, 16))
    assert worst_error(found, expected) <= BAR


def apart(view: Segments, graph: Callable, most: int = 8) -> tuple:
    """A view's tokens [p t], lengths [p] and adjacency."""
    tokens, lengths = np.zeros((most, 16), np.int32), np.zeros(most, np.int32)
    for i, length in enumerate(view.lengths):
        tokens[i, :length] = view.tokens[view.offsets[i] : view.offsets[i + 1]]
        lengths[i] = length
    edges = graph(len(view), view.sections, view.edges)
    adjacency = np.zeros((most + 1, most + 1), bool)
    adjacency[edges.receivers, edges.senders] = True
    return tokens, lengths, adjacency


@pytest.mark.parametrize("devices", [1, 8])
def test_segment_vectors_known_before_leave_the_other_gradients_as_they_are(
    problem, plain, mesh, worst_error, devices
):
    one, device = problem("words against rest"), mesh(devices)
    params = one.params()

    def known(view: Segments) -> Segments:
        tokens, lengths = map(jnp.asarray, apart(view, one.graph)[:2])
        places = jnp.zeros((len(lengths), 2), int)
        vectors = one.encoder.apply(
            {"params": params}, tokens, lengths, places, method="segments"
        )
        return dataclasses.replace(view, vectors=np.asarray(vectors)[: len(view)])

    views = [tuple(map(known, views)) for views in one.documents()]
    batch = pack(views, one.layout(8), one.targets())
    assert batch.microbatches == () and padding(batch) == (0, 0)
    on_device = sharding.put_batch(batch, device)
    params = sharding.replicate(params, device)
    encoder = one.encoder.clone(frozen="segment/")
    frozen = one._replace(encoder=encoder).cache(device)
    found, metrics, _ = frozen.gradient(params, on_device, None)
    expected, exact = plain("words against rest", False)
    expected = {name: part for name, part in expected.items() if name != "segment"}
    assert worst_error(found, expected) <= BAR
    np.testing.assert_allclose(metrics["loss"], exact["loss"], rtol=2e-6)


def test_dropout_changes_the_gradient_and_follows_from_the_key(plain, worst_error):
    with_dropout, without = (plain("one against rest", on)[0] for on in (True, False))
    assert worst_error(with_dropout, without) > 0.1


def test_the_comparison_sees_a_gather_that_drops_gradients(
    problem, plain, mesh, worst_error
):
    """The loss cannot tell."""

    def dropping(vectors, targets):
        candidates = jax.lax.stop_gradient(vectors[1:])
        together = jnp.concatenate([vectors[:1], candidates])
        return problem("halves").objective(together, targets)

    wrong = problem("halves")._replace(objective=dropping)
    found, metrics = wrong.gradient(16, mesh(8), jax.random.key(1))
    expected, exact = plain("halves", True)
    np.testing.assert_allclose(metrics["loss"], exact["loss"], rtol=2e-6)
    assert worst_error(found, expected) > 0.1


@pytest.mark.parametrize("keep, programs", [(0, [2, 0, 2]), (99, [2, 2, 0])])
def test_a_run_compiles_the_segment_encoder_once_a_width(problem, mesh, keep, programs):
    """However many micro-batches a step has, and however long its documents are."""
    one, device = problem("mean"), mesh(1)
    cache = dataclasses.replace(one.cache(device), keep=keep)
    params = sharding.replicate(one.params(), device)
    before, shapes, counts = compiled(), set(), set()
    for documents in (4, 9, 16):
        batch = one.batch(8, widths=(8, 16), count=documents)
        shapes |= {m.tokens.shape for m in batch.microbatches}
        counts.add(round_up(len(batch.microbatches)))
        cache.gradient(params, sharding.put_batch(batch, device), jax.random.key(0))
    assert shapes == {(8, 8), (8, 16)}
    assert len(counts) == 3
    assert [now - then for now, then in zip(compiled(), before)] == programs


def compiled() -> list[int]:
    """How many programs there are of each pass over the segments."""
    cache = GradientCache
    passes = cache.encode, cache.pull_kept, cache.pull_back
    return [function._cache_size() for function in passes]


def test_the_loss_of_a_nested_encoder_is_that_of_the_whole():
    """The gradient is that of the sum with the loss of the mean."""
    cache = types.SimpleNamespace(
        encoder=types.SimpleNamespace(nested=True),
        objective=lambda views, targets: (views.sum() ** 2, {"largest": views.max()}),
        _by_both=lambda read, params, average, views: views,
    )
    mean, whole = jnp.full((2, 3, 4), 0.5), jnp.ones((2, 3, 4))
    views = jnp.concatenate([mean, whole])
    targets = Targets(labels=jnp.arange(3))
    given = {}, None, views, targets, None, ()
    total, (metrics, _) = GradientCache.objective_loss(cache, *given)
    assert total == 24**2 + 12**2
    assert metrics == {"loss": 24**2, "mean_loss": 12**2, "largest": 1}


class Remembers:
    """An objective with memory whose memory is what a test says."""

    momentum = None

    def begin(self, examples, width):
        return ()

    def __call__(self, vectors, targets, memory):
        return vectors.sum(), {}, memory


@pytest.mark.parametrize("memory", [jnp.zeros(3), {}, [], 0])
def test_the_memory_of_an_objective_may_be_an_array_or_empty(problem, mesh, memory):
    encoder, params = problem("mean").encoder, problem("mean").params()
    cache = GradientCache(encoder, Remembers(), mesh(1), (DOCUMENT, DOCUMENT))
    inputs = jnp.ones((2, 3, 8)), Targets(jnp.zeros(3, int)), None, memory
    loss, (_, kept) = cache.objective_loss(params, None, *inputs)
    assert loss == 48 and kept is memory
