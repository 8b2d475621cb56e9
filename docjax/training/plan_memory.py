"""The memory that a device needs for a run: counted from shapes and compiled programs.

`memory.py` refuses a step that does not fit.
"""

from typing import Any

import jax

from docjax.data.microbatches import round_up
from docjax.encoders import freezing
from docjax.training import memory, programs
from docjax.types import Batch, State

Bytes = dict[str, int]


def memory_of(trainer: Any, params: Any, mesh: jax.sharding.Mesh) -> Bytes:
    """Bytes a device: parameters, optimizer, passes of a step, largest sum, and limit.

    `largest` is the most that a step holds at a time; a batch on the device, what the
    compiler keeps of its code, and Python itself are not in it.
    """
    state = jax.eval_shape(trainer.begin, params)
    if trainer.prepared.config.reads_words:  # a step is one program
        batch, _ = trainer.dataset[0]
        step = trainer.step.lower(state, batch, jax.random.key(0)).compile()
        passes = dict.fromkeys(("step", "largest"), memory.program_bytes(step))
    else:
        passes = _passes(trainer, state)
    return {
        "parameters": memory.tree_bytes(state.params),
        "optimizer": memory.tree_bytes(state.optimizer),
        "objective": memory.tree_bytes(state.memory),
        **passes,
        "available": memory.available(mesh),
    }


def _passes(trainer: Any, state: State) -> Bytes:
    """The bytes of each pass with its arguments, and of the pass that holds the most."""
    cache, batches = trainer.cache, trainer.batches
    rows, width = batches.layout.rows, batches.layout.widths[-1]
    shape = programs.microbatch_shape(rows, width)
    batch, _ = trainer.dataset[0]
    trained, _ = freezing.divided(state.params, cache.encoder.frozen)
    held = memory.tree_bytes((state.optimizer, state.params.get("segment")))
    passes: Bytes = {}
    if cache.objective is not None:
        compiled = _second_pass(trainer, state, batch).lower().compile()
        passes["second_pass"] = memory.program_bytes(compiled)
    if "segment" not in trained:
        return passes | {"largest": held + passes["second_pass"]}
    segments = batches.segments()
    answers = batches.masking.most(width) if batches.masking else None
    passes["microbatch"] = memory.pass_bytes(cache, state, shape, answers)
    beside = memory.held_bytes(cache, state, shape, segments)
    kept = min(cache.keep, -(-segments // rows))
    if kept:  # the pass has those of one micro-batch
        each = memory.activation_bytes(cache, state, shape)
        passes["activations"], beside = kept * each, beside + (kept - 1) * each
    second = held + passes.get("second_pass", 0)
    return passes | {"largest": max(beside + passes["microbatch"], second)}


def _second_pass(trainer: Any, state: State, batch: Batch) -> Any:
    """The program of the second pass for a batch from the host."""
    cache, vectors = trainer.cache, batch.vectors
    if vectors is None:
        shape = programs.microbatch_shape(*batch.microbatches[0].tokens.shape)
        one = programs.vector_shape(cache, state.params, shape)
        count = round_up(len(batch.microbatches))
        vectors = jax.ShapeDtypeStruct((count, *one.shape), one.dtype)
    return programs.objective(cache, state.params, vectors, batch, memory=state.memory)
