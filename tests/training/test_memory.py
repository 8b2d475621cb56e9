"""What a step needs of memory, against sums done by hand and against what is compiled."""

import dataclasses

import jax
import numpy as np
import optax
import pytest

from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean
from docjax.encoders.transformer import Transformer
from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.training import memory, programs, sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.optimizer import adamw
from docjax.training.step import initial_state, make_step
from docjax.types import DOCUMENT

ROWS, WIDTH = 16, 16  # of the micro-batches


def abstract_state(encoder, optimizer):
    return jax.eval_shape(lambda: initial_state(fresh_params(encoder, 0), optimizer))


def parameters(tree) -> int:
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))


@pytest.mark.parametrize("keep", [0, 9])
@pytest.mark.parametrize(
    "name, devices", [("one against rest", 1), ("masked tokens", 1), ("two towers", 2)]
)
def test_the_first_step_calls_the_programs_that_the_check_compiled(
    problem, mesh, name, devices, keep
):
    one, device, compiled = problem(name), mesh(devices), []

    def listen(event, _, fun_name="", **details):
        if "backend_compile" in event:
            compiled.append(fun_name)

    cache = dataclasses.replace(one.cache(device), keep=keep)
    optimizer = adamw(10)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        state = abstract_state(one.encoder, optimizer)
        batch = sharding.put_batch(one.batch(ROWS), device)
        answers = {masked.answers.shape[1] for masked in batch.masked}
        memory.check(cache, state, ROWS, WIDTH, 100, *answers)
        state = sharding.replicate(initial_state(one.params(), optimizer), device)
        step, key = make_step(cache, optimizer), jax.random.key(0)
        for _ in range(2):
            state, _ = step(state, batch, key)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert {m.tokens.shape for m in batch.microbatches} == {(ROWS, WIDTH)}
    towers = len(set(batch.towers)) or 1
    assert compiled.count("jit(encode)") == towers
    assert compiled.count("jit(pull_kept)") == towers * (keep > 0)
    assert compiled.count("jit(pull_back)") == towers * (not keep)
    assert compiled.count("jit(pull_tokens)") == len(answers)


def test_a_device_keeps_moments_the_light_part_and_the_vectors(problem, mesh):
    """Beside what the backward pass counts itself, float32 all of it."""
    one = problem("one against rest")
    state = abstract_state(one.encoder, optax.adam(1e-3))
    everything, heavy = parameters(state.params), parameters(state.params["segment"])
    moments, counter, vectors = 2 * everything, 1, 100 * 32
    expected = 4 * (moments + counter + 2 * (everything - heavy) + 2 * vectors)
    shape = programs.microbatch_shape(ROWS, WIDTH)
    assert memory.held_bytes(one.cache(mesh(1)), state, shape, 100) == expected
    halved = memory.held_bytes(one.cache(mesh(2)), state, shape, 100)
    assert halved == expected - 4 * vectors


@pytest.mark.parametrize("keep", [0, 1])
def test_the_activations_of_a_micro_batch_are_counted_as_they_are(problem, mesh, keep):
    one, devices = problem("one against rest"), 2
    cache = dataclasses.replace(one.cache(mesh(devices)), keep=keep)
    state = abstract_state(one.encoder, adamw(10))
    batch = sharding.put_batch(one.batch(ROWS), cache.mesh)
    params = sharding.replicate(one.params(), cache.mesh)
    inputs = batch.microbatches[0], np.int32(0), jax.random.key(1), None, True
    _, activations = cache.encode(params["segment"], {}, *inputs)
    leaves = jax.tree.leaves(activations)
    sizes = [shard.data.nbytes for leaf in leaves for shard in leaf.addressable_shards]
    shape = programs.microbatch_shape(ROWS, WIDTH)
    counted = memory.activation_bytes(cache, state, shape)
    assert counted * devices == sum(sizes)


def test_activations_are_kept_in_a_quarter_of_what_is_free(problem, mesh, monkeypatch):
    one, segments, microbatches = problem("one against rest"), 100, 7
    cache, state = one.cache(mesh(1)), abstract_state(one.encoder, adamw(10))
    shape = programs.microbatch_shape(ROWS, WIDTH)
    each = memory.activation_bytes(cache, state, shape)
    held = memory.held_bytes(cache, state, shape, segments)
    held += 4 * 4 * parameters(state.params["segment"])
    for processes, missing, expected in (1, 0, 14), (1, 1, 0), (2, 0, 0):
        limit = held + 4 * microbatches * each - missing
        monkeypatch.setattr(memory, "available", lambda mesh, limit=limit: limit)
        monkeypatch.setattr(jax, "process_count", lambda count=processes: count)
        most = memory.most_kept(cache, state, ROWS, WIDTH, segments)
        assert most == expected
    monkeypatch.undo()
    alone = problem("masked tokens alone").cache(mesh(1))  # has no first pass
    assert not memory.most_kept(alone, state, ROWS, WIDTH, segments)


def test_the_backward_pass_holds_parameters_and_gradients(problem, mesh):
    one = problem("one against rest")
    params = jax.eval_shape(lambda: fresh_params(one.encoder, 0))
    shape = programs.microbatch_shape(ROWS, WIDTH)
    compiled = programs.pull_back(one.cache(mesh(1)), params, shape).lower().compile()
    found = memory.program_bytes(compiled)
    assert found > 4 * 2 * parameters(params["segment"])


@pytest.mark.parametrize(
    "limit, segments, mend",
    [(400_000, 10, "lower --config.microbatch"), (400_000, 10_000, "smaller encoder")],
)
def test_a_step_that_does_not_fit_is_one_line_with_the_mend(
    problem, mesh, monkeypatch, limit, segments, mend
):
    one, optimizer = problem("one against rest"), adamw(10)
    monkeypatch.setattr(memory, "available", lambda mesh: limit)
    state = abstract_state(one.encoder, optimizer)
    with pytest.raises(UserError, match=f"does not fit in memory.*{mend}") as error:
        memory.check(one.cache(mesh(1)), state, ROWS, WIDTH, segments)
    assert "\n" not in str(error.value)


def test_more_tokens_than_a_program_can_count_are_not_compiled(problem, mesh):
    one = problem("one against rest")
    state = abstract_state(one.encoder, adamw(10))
    with pytest.raises(
        UserError, match="2.31 tokens per device or more: lower --config"
    ):
        memory.check(one.cache(mesh(1)), state, 2**31 // WIDTH, WIDTH, 10)


def test_the_optimizer_alone_can_be_too_much(problem, mesh, monkeypatch):
    """The backward pass fits: only the optimizer's moments do not."""
    one, optimizer = problem("one against rest"), adamw(10)
    state = abstract_state(one.encoder, optimizer)
    cache, shape = one.cache(mesh(1)), programs.microbatch_shape(ROWS, WIDTH)
    traced = programs.pull_back(cache, state.params, shape)
    passes = memory.program_bytes(traced.lower().compile())
    monkeypatch.setattr(memory, "available", lambda mesh: passes + 1000)
    with pytest.raises(UserError, match="does not fit in memory"):
        memory.check(cache, state, ROWS, WIDTH, segments=1)


def test_the_parameters_of_both_towers_are_counted(problem, mesh):
    one = problem("two towers")
    state = abstract_state(one.encoder, optax.sgd(1e-3))
    shape = programs.microbatch_shape(ROWS, WIDTH)
    light = parameters(state.params["document"])
    query = parameters(state.params["segment"]["query"])
    kept = memory.held_bytes(one.cache(mesh(1)), state, shape, 0)
    assert kept == 4 * 2 * (light + query)


def test_masked_tokens_count_with_their_scores(problem, mesh, monkeypatch):
    """Masked language modelling alone has no other backward pass."""
    one = problem("masked tokens alone")
    state = abstract_state(one.encoder, optax.sgd(1e-3))
    monkeypatch.setattr(memory, "available", lambda mesh: 100_000)
    with pytest.raises(UserError, match="a step does not fit in memory"):
        memory.check(one.cache(mesh(1)), state, ROWS, WIDTH, 0, answers=4)


@pytest.mark.parametrize(
    "name, text, expected",
    [
        ("memory.max", "1000\n", 1000),
        ("memory.max", "max\n", None),
        ("memory/memory.limit_in_bytes", "9223372036854771712", None),
        ("memory/memory.limit_in_bytes", "2000", 2000),
    ],
)
def test_a_container_has_the_memory_it_is_given(tmp_path, name, text, expected):
    (tmp_path / "memory").mkdir()
    (tmp_path / name).write_text(text)
    everything = memory.host_memory(tmp_path / "none")
    assert memory.host_memory(tmp_path) == (expected or everything)


@pytest.mark.parametrize("dtype, most", [("float32", 70), ("bfloat16", 40)])
def test_a_layer_keeps_no_zeros_and_nothing_for_other_platforms(mesh, dtype, most):
    """Bytes of a token by the width: the hidden layer, four times as wide, twice."""
    rows, tokens, width = 4, 32, 64
    sizes = dict(width=width, heads=2, hidden=4 * width, vocabulary=50, positions=64)

    def activations(layers: int) -> int:
        segment = Transformer(**sizes, layers=layers, dtype=dtype, pooling="mean")
        encoder = DocumentEncoder(segment, Mean())
        cache = GradientCache(encoder, infonce, mesh(1), (DOCUMENT, DOCUMENT), keep=1)
        params = jax.eval_shape(lambda: fresh_params(encoder, 0))
        shape = programs.microbatch_shape(rows, tokens)
        _, kept = programs.encode(cache, params, shape).out_info
        of_layer = memory.tree_bytes(params["segment"]["layer_0"])
        weights = layers * of_layer * np.dtype(dtype).itemsize // 4
        return memory.tree_bytes(kept) - weights

    each = (activations(3) - activations(2)) / (rows * tokens * width)
    assert each <= most + 0.5  # lengths, means and deviations of rows
