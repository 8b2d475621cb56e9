"""The step of every shipped config, lowered for a CPU, a GPU and a TPU on a CPU.

Encoders have two layers, and else the sizes of their config. Nothing is compiled.
"""

import copy
import functools
import itertools
import json
import re
import runpy
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractDevice, Mesh

from docjax import config as config_lib
from docjax import kernels
from docjax.encoders import attention
from docjax.encoders.bigbird import BigBird
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.token_encoder import TokenEncoder
from docjax.objectives.masked_lm import MaskedLM
from docjax.objectives.negative_sampling import Rows
from docjax.parts import named
from docjax.training import programs
from docjax.training.gradient_cache import GradientCache
from docjax.types import DOCUMENT, Batch, Graphs, Targets

OTHERS = ("deca", "contrastive_tension", "contriever", "masked_lm")
NAMES = [name for name in sorted(config_lib.shipped()) if name not in OTHERS]
PLATFORMS = {
    "cpu": AbstractDevice("cpu", None, "cpu"),
    "cuda": AbstractDevice("NVIDIA H100 80GB HBM3", 132, "gpu"),
    "tpu": AbstractDevice("TPU v5 lite", 1, "tpu"),
}
DEVICES, DOCUMENTS, SEGMENTS = 4, 8, 5  # of the mesh, a batch, a document
ODD_WIDTHS = (7, 129)
# Fields of a segment encoder that change sizes and no operation of a pass.
ALIKE = dict(layers=2, dropout=0.1) | dict.fromkeys(
    ("vocabulary", "sections", "chunks", "positions", "types", "position_offset")
    + ("epsilon", "masked_lm", "width", "heads", "hidden")
)
COLLECTIVES = r"stablehlo\.(all_|reduce_scatter|collective)"


class Step(NamedTuple):
    """What a config trains, with the shapes of its parameters and of its batches."""

    encoder: DocumentEncoder
    objective: object
    kinds: tuple[str, ...]  # of the views

    def params(self):
        return jax.eval_shape(lambda: fresh_params(self.encoder, 0))

    @property
    def width(self) -> int:
        """The numbers of a segment vector."""
        return self.encoder.segment.width + vars(self.encoder.segment).get("words", 0)

    def cache(self, keep: int = 0) -> GradientCache:
        mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("data",))
        return GradientCache(self.encoder, self.objective, mesh, self.kinds, keep=keep)

    def batch(self) -> Batch:
        """A batch of DOCUMENTS documents, without micro-batches."""
        vb, nodes = (len(self.kinds), DOCUMENTS), SEGMENTS + 1
        rows = shape(*vb, SEGMENTS, dtype=jnp.int32)
        adjacency = shape(*vb, nodes, nodes, dtype=bool)
        edges = shape(*vb, 9, 2, dtype=jnp.int32)
        graphs = Graphs(edges=edges) if self.encoder.sparse else Graphs(adjacency)
        places = shape(*vb, SEGMENTS, 2, dtype=jnp.int32)
        labels = shape(DOCUMENTS, dtype=jnp.int32)
        related = shape(DOCUMENTS, DOCUMENTS, dtype=bool)
        targets = Targets(labels, related, shape(DOCUMENTS, 8))
        return Batch((), rows, rows, places, graphs, targets)


def step(config: dict) -> Step:
    node = copy.deepcopy(config["encoder"])
    node["segment"]["vocabulary"] = node["segment"].get("vocabulary") or 1000
    if "classes" in (node.get("head") or {}):
        node["head"]["classes"] = 20
    objective = named.build(config["objective"])
    if isinstance(objective, MaskedLM):
        objective = objective.contrastive
    views, examples = named.build(config["views"]), named.build(config["examples"])
    kinds = [views.kinds if kind == DOCUMENT else (kind,) for kind in examples.kinds]
    encoder = named.build(node)
    if isinstance(encoder.segment, TokenEncoder):
        encoder = encoder.clone(segment=encoder.segment.with_layers(2))
    return Step(encoder, objective, tuple(itertools.chain(*kinds)))


def steps(*names: str, parts: tuple[str, ...]) -> list[Step]:
    """The steps of all variants of some configs, those alike in `parts` once."""
    different = {}
    for name in names:
        for variant in runpy.run_path(str(config_lib.shipped()[name]))["VARIANTS"]:
            config = named.plain(config_lib.load(name, variant))
            nodes = config["encoder"] | {"objective": config["objective"]}
            nodes["segment"] = nodes["segment"] | ALIKE
            alike = json.dumps([nodes.get(part) for part in parts], sort_keys=True)
            different.setdefault(alike, config)
    return [step(config) for config in different.values()]


# Every transformer that a config trains. Words have no heavy pass, copies and averages
# have that of their encoder, and masked language modelling alone has no vectors.
HEAVY = steps(*NAMES, parts=("segment",))


def lowered(trace: Callable[[], jax.stages.Traced]) -> dict[str, str]:
    """The program for each platform, as its devices would have it traced.

    `trace` makes its own gradient cache: what is traced for a platform stays with it.
    """
    programs, real = {}, kernels.traced_for
    for platform, kind in PLATFORMS.items():
        with pytest.MonkeyPatch.context() as patch:
            for module in (kernels, attention):
                patch.setattr(module, "traced_for", lambda k=kind: real() and k)
            traced = trace().lower(lowering_platforms=(platform,))
        programs[platform] = traced.as_text()
    return programs


@pytest.mark.parametrize("number", range(len(HEAVY)))
def test_the_heavy_passes_are_lowered_for_every_platform(cudnn, number):
    """Without a collective, whatever the width: each device reads its own segments.

    The products of a float32 encoder are not rounded on any platform.
    """
    one, params = HEAVY[number], HEAVY[number].params()
    encoder = one.encoder
    is_float32 = getattr(encoder.inner_segment, "dtype", "") == "float32"
    cases = [(programs.pull_back, ODD_WIDTHS[0], True)]
    cases.append((programs.pull_back, ODD_WIDTHS[1], False))
    if not number:  # the backward pass contains the forward pass
        cases.append((programs.encode, ODD_WIDTHS[0], True))
    for make, width, dropout in cases:
        read = programs.microbatch_shape(DEVICES, width)
        trace = lambda make=make, rest=(params, read, dropout): make(one.cache(), *rest)
        for text in lowered(trace).values():
            assert not re.search(COLLECTIVES, text)
            if is_float32 and not encoder.segment_is_frozen:
                check_precision(text)


def test_a_pass_with_kept_activations_is_lowered_for_every_platform(cudnn):
    """With cuDNN, which reads even widths without dropout, and without it."""
    params = HEAVY[0].params()
    for width, dropout in (ODD_WIDTHS[0], True), (128, False):
        read = programs.microbatch_shape(DEVICES, width)
        for make in (programs.encode, programs.pull_kept):
            trace = lambda make=make, rest=(params, read, dropout): make(
                HEAVY[0].cache(keep=1), *rest
            )
            for text in lowered(trace).values():
                assert not re.search(COLLECTIVES, text)


def test_a_gpu_program_calls_cudnn_in_all_layers_but_the_last(cudnn):
    one = next(s for s in HEAVY if s.encoder.segment.dtype == "bfloat16")
    assert one.encoder.segment.dropout > 0
    read = programs.microbatch_shape(DEVICES, 128)
    calls = lambda make, dropout, one=one: {
        platform: t.count("custom_call @__cudnn$fmha")
        for platform, t in lowered(
            lambda: make(one.cache(), one.params(), read, dropout)
        ).items()
    }
    layers = one.encoder.segment.layers
    assert calls(programs.encode, False) == dict(cpu=0, cuda=layers - 1, tpu=0)
    assert calls(programs.pull_back, False)["cuda"] == 2 * (layers - 1)
    assert calls(programs.encode, True)["cuda"] == layers - 1
    segment = one.encoder.segment.clone(attention_dropout=0.1)
    other = one._replace(encoder=one.encoder.clone(segment=segment))
    assert calls(programs.encode, True, other)["cuda"] == 0


@pytest.mark.parametrize("kind", [Longformer, BigBird, ModernBert])
def test_a_gpu_program_of_a_long_backbone_calls_cudnn(cudnn, kind):
    """Rows that its windows cover, or with global attention: all but the last layer."""
    of_kind = (s for s in HEAVY if isinstance(s.encoder.segment, kind))
    one = next(s for s in of_kind if s.encoder.segment.dtype == "bfloat16")
    read = programs.microbatch_shape(DEVICES, 128)
    trace = lambda: programs.encode(one.cache(), one.params(), read, False)
    text = lowered(trace)["cuda"]
    assert text.count("custom_call @__cudnn$fmha") == one.encoder.segment.layers - 1


@pytest.mark.parametrize("name", NAMES)
def test_the_light_pass_is_float32_on_every_platform(name):
    """Losses and similarities, and the gradients through the document encoder."""
    for one in steps(name, parts=("head", "objective")):
        params = one.params()
        microbatches = DOCUMENTS * SEGMENTS // DEVICES
        vectors = shape(microbatches, DEVICES, one.width)
        for dropout in {False, one.encoder.head is not None}:
            rest = params, vectors, one.batch(), dropout
            traced = programs.objective(one.cache(), *rest)
            for text in lowered(lambda traced=traced: traced).values():
                check_precision(text)
        if one.encoder.segment_is_frozen:
            continue  # no gradient of the segments to add up
        traced = programs.add_up(one.cache(), params)
        for text in lowered(lambda traced=traced: traced).values():
            assert "dot_general" not in text


def test_the_word_step_is_lowered_for_every_platform_in_float32():
    for one in steps("deca", parts=("head", "objective")):
        for make in (word_block, contrast):
            for text in lowered(functools.partial(make, one)).values():
                check_precision(text)


def word_block(one: Step) -> jax.stages.Traced:
    """The gradient of a block of words."""
    objective, d = one.objective, one.encoder.segment.width
    words, noise = (8, 4), (8, objective.negatives)
    rows = Rows(
        words=shape(*words, d),
        drawn=shape(9, objective.drawn, d),
        targets=shape(*words, d),
        noise=shape(*noise, d),
    )
    numbers = [shape(*sizes, dtype=jnp.int32) for sizes in (words, words, noise, ())]
    return jax.jit(objective.gradient).trace(rows, *numbers)


def contrast(one: Step) -> jax.stages.Traced:
    """The gradient of the contrastive loss of the documents' vectors."""
    params = {name: part for name, part in one.params().items() if name != "segment"}

    def loss(vectors, params, key):
        given = {"params": params}, vectors, key
        outputs = one.encoder.apply(*given, method="outputs")
        none = Targets(jnp.full(outputs.shape[1], -1))
        return one.objective.contrastive(outputs, none)[0]

    key = jax.eval_shape(lambda: jax.random.key(0))
    vectors = shape(2, 5, one.encoder.segment.width)
    return jax.jit(jax.grad(loss)).trace(vectors, params, key)


def shape(*sizes: int, dtype=jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def check_precision(text: str) -> None:
    """Every product is float32, and there is one."""
    products = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert products
    for line in products:
        assert "precision = [HIGHEST, HIGHEST]" in line, line
