"""Small training problems with real parts, for gradients in every layout.

Also read, as a plain module, by the processes that `test_processes.py` starts.
"""

import atexit
import dataclasses
import functools
import shutil
import tempfile
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

from docjax.data import graphs
from docjax.data.masking import Masking
from docjax.data.packing import Layout, pack
from docjax.data.segments import Chunks, OneEach, segments
from docjax.encoders.bigbird import BigBird
from docjax.encoders.chunks import ChunkEncoder
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.first_segments import FirstSegments
from docjax.encoders.from_mean import FromMean
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.pooling import Classifier, Mean, TrainingHead
from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.encoders.towers import Towers
from docjax.encoders.transformer import Transformer
from docjax.objectives.contrastive_tension import contrastive_tension
from docjax.objectives.cross_entropy import cross_entropy
from docjax.objectives.distillation import Distillation
from docjax.objectives.infonce import infonce
from docjax.objectives.pair_similarity import pair_similarity
from docjax.objectives.queue import Queue
from docjax.objectives.supervised_contrastive import supervised_contrastive
from docjax.training import sharding
from docjax.training.gradient_cache import GradientCache
from docjax.training.momentum import Following
from docjax.training.plain_gradient import plain_gradient
from docjax.types import (
    DOCUMENT,
    QUERY,
    Batch,
    Frame,
    GraphBuilder,
    SegmentCutter,
    Segments,
    Targets,
    Units,
    Views,
)
from docjax.views.halves import Halves
from docjax.views.one_against_rest import OneAgainstRest
from docjax.views.ready import Ready
from docjax.views.sections import Sections
from docjax.views.whole import Whole

VOCABULARY, CLASSES, DOCUMENTS, WIDTHS = 50, 3, 16, (16,)
SMALL = dict(vocabulary=VOCABULARY, layers=2, width=32, heads=2, hidden=64)
NOTHING = np.zeros(0, np.int32)
FRAME = Frame(NOTHING, NOTHING, 16)  # no special tokens

# The problems have the same transformer: it is compiled once for each layout.
CACHE = tempfile.mkdtemp()
atexit.register(shutil.rmtree, CACHE)
jax.config.update("jax_compilation_cache_dir", CACHE)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@dataclasses.dataclass(frozen=True)
class WithNegative(Ready):
    """A query, the rest of its document, and another document that is its negative."""

    kinds = (QUERY, DOCUMENT, DOCUMENT)

    def __call__(
        self, units: Units, generator: np.random.Generator
    ) -> tuple[Units, ...]:
        return *OneAgainstRest(first=1.0)(units, generator), document(generator)


class Problem(NamedTuple):
    encoder: DocumentEncoder
    objective: Any
    views: Views
    graph: GraphBuilder | None = None
    cutter: SegmentCutter = OneEach()
    related: bool = False  # every third document answers the one before it, too
    token_weight: float = 0.0

    def documents(self, count: int = DOCUMENTS) -> list[tuple[Segments, ...]]:
        """The segments of each document's views, always the same."""
        generator = np.random.default_rng(0)
        return [
            tuple(
                segments(view, self.cutter, FRAME)
                for view in self.views(document(generator), generator)
            )
            for _ in range(count)
        ]

    def layout(self, microbatch: int, widths=WIDTHS) -> Layout:
        towers = self.cache(mesh(1)).towers
        return Layout(microbatch, widths, 16, self.graph, self.encoder.sparse, towers)

    def targets(self, count: int = DOCUMENTS) -> Targets:
        labels = np.arange(count) % (CLASSES + 1) - 1  # some without
        if isinstance(self.objective, Distillation):
            drawn = np.random.default_rng(3).normal(size=(count, 8))
            return Targets(labels, teacher=drawn.astype(np.float32))
        if not self.related:
            return Targets(labels)
        slots = len(self.views.kinds) - 1 if isinstance(self.views, WithNegative) else 1
        related = np.zeros((count, slots, count), bool)
        related[np.arange(2, count, 3), :, np.arange(1, count - 1, 3)] = True
        related[1, -1, 5] = slots > 1  # an answer that is a negative elsewhere
        return Targets(labels, related.reshape(count, -1))

    def batch(self, microbatch: int, widths=WIDTHS, count: int = DOCUMENTS) -> Batch:
        """The same documents in micro-batches of any size."""
        masking = Masking(0.3, VOCABULARY - 1, VOCABULARY, FRAME)
        return pack(
            self.documents(count),
            self.layout(microbatch, widths),
            self.targets(count),
            masking if self.token_weight else None,
            np.random.default_rng(1),
        )

    @property
    def memory(self) -> Any:
        """What the objective remembers: one earlier batch of the two it has room for."""
        if not isinstance(self.objective, Queue):
            return ()
        width = 16 if isinstance(self.encoder.document, GraphAttention) else 32
        empty = self.objective.begin(DOCUMENTS, width)
        drawn = np.random.default_rng(2).normal(size=empty.vectors.shape)
        memory = empty._replace(vectors=drawn.astype(np.float32), filled=np.int32(1))
        if self.objective.momentum is None:
            return memory
        return Following(jax.tree.map(lambda leaf: 0.7 * leaf, self.params()), memory)

    def cache(self, mesh: Mesh) -> GradientCache:
        kinds = self.views.kinds
        return GradientCache(
            self.encoder, self.objective, mesh, kinds, self.token_weight
        )

    def params(self) -> Any:
        """Parameters that tell documents apart: the loss is not log(b) throughout."""
        generator = np.random.default_rng(0)
        draw = lambda leaf: generator.normal(0, 0.15, leaf.shape).astype(np.float32)
        scale = lambda path, leaf: leaf + (path[-1].key == "scale")
        shapes = jax.eval_shape(lambda: fresh_params(self.encoder, 0))
        return jax.tree.map_with_path(scale, jax.tree.map(draw, shapes))

    def gradient(
        self, microbatch: int, mesh: Mesh, key, widths=WIDTHS, keep: int = 0
    ) -> tuple:
        """(gradient, metrics) by the gradient cache on a mesh."""
        params = sharding.replicate(self.params(), mesh)
        batch = sharding.put_batch(self.batch(microbatch, widths), mesh)
        cache = dataclasses.replace(self.cache(mesh), keep=keep)
        memory = sharding.replicate(self.memory, mesh)
        gradient, metrics, _ = cache.gradient(params, batch, key, memory)
        return jax.device_get((gradient, metrics))


def document(generator: np.random.Generator) -> Units:
    """2 to 9 units of 2 to 16 tokens in up to 3 sections."""
    lengths = generator.integers(2, 17, generator.integers(2, 10))
    return Units(
        generator.integers(1, VOCABULARY, lengths.sum()).astype(np.int32),
        np.cumsum([0, *lengths]),
        np.sort(generator.integers(0, 3, len(lengths))).astype(np.int32),
        np.array([[0, 2]], np.int32),
    )


def mesh(devices: int) -> Mesh:
    return Mesh(np.array(jax.devices()[:devices]), ("data",))


class Words(SegmentDefaults):
    """The sum of a segment's word vectors, where a transformer would cost time."""

    vocabulary = VOCABULARY

    @nn.compact
    def __call__(self, tokens, lengths, places=None, keys=None):
        vectors = nn.Embed(VOCABULARY, 32, name="words")(tokens)
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        return jnp.where(real[..., None], vectors, 0).sum(1)


BIGBIRD = BigBird(  # of rows above 10 tokens, the middle blocks see some
    **dict(vocabulary=VOCABULARY, layers=1, width=32, heads=2, hidden=64),
    **dict(positions=18, block=2, random=0),
)


def problem(name: str) -> Problem:
    transformer = Transformer(
        vocabulary=VOCABULARY,
        layers=2 if name in ("halves", "frozen layer") else 1,  # two cost twice
        width=32,
        heads=2,
        hidden=64,
        positions=18,
    )
    attention = GraphAttention(width=16, layers=2, heads=2)
    make = lambda document, head=None: DocumentEncoder(transformer, document, head)
    rows = functools.partial(infonce, temperature=2.0)
    one_sided = functools.partial(infonce, symmetric=False, similarity="cosine")
    return {
        "halves": lambda: Problem(make(attention), rows, Halves(), graphs.full),
        "one against rest": lambda: Problem(
            make(attention), one_sided, OneAgainstRest(), graphs.section
        ),
        "classifier": lambda: Problem(
            make(attention, Classifier(CLASSES)),
            cross_entropy,
            Whole(),
            graphs.full,
        ),
        "mean": lambda: Problem(DocumentEncoder(Words(), Mean()), rows, Halves(), None),
        "words against rest": lambda: Problem(
            DocumentEncoder(Words(), attention),
            one_sided,
            OneAgainstRest(),
            graphs.section,
        ),
        "sparse graphs": lambda: Problem(
            DocumentEncoder(Words(), GraphAttention(width=16, sparse=True)),
            rows,
            Halves(),
            graphs.user_edges,
        ),
        "relations": lambda: Problem(
            DocumentEncoder(Words(), attention),
            rows,
            Halves(),
            graphs.full,
            related=True,
        ),
        "query and negative": lambda: Problem(
            DocumentEncoder(Words(), attention),
            one_sided,
            WithNegative(),
            graphs.full,
            related=True,
        ),
        "chunks": lambda: Problem(
            make_chunks(transformer),
            functools.partial(supervised_contrastive, temperature=2.0),
            Sections(),
            cutter=Chunks(),
            related=True,
        ),
        "labelled pairs": lambda: Problem(
            DocumentEncoder(Words(), attention), pair_similarity, Halves(), graphs.full
        ),
        "pairs with a margin": lambda: Problem(
            DocumentEncoder(transformer, Mean()),
            functools.partial(pair_similarity, margin=0.0),
            Halves(),
        ),
        "masked tokens": lambda: Problem(
            make_masked(transformer), rows, Halves(), token_weight=0.5
        ),
        "masked tokens alone": lambda: Problem(
            make_masked(transformer), None, Whole(), token_weight=1.0
        ),
        "bigbird": lambda: Problem(DocumentEncoder(BIGBIRD, Mean()), rows, Halves()),
        "queue": lambda: Problem(
            DocumentEncoder(Words(), Mean()), Queue(2, temperature=2.0), Halves()
        ),
        "momentum": lambda: Problem(
            DocumentEncoder(transformer, attention, TrainingHead()),
            Queue(2, temperature=2.0, symmetric=False, momentum=0.9, in_batch=False),
            Halves(),
            graphs.full,
        ),
        "distillation": lambda: Problem(
            DocumentEncoder(
                transformer.clone(words=8), FromMean(attention, words=8, turn=True)
            ),
            Distillation(temperature=0.5, contrast=0.5),
            Halves(),
            graphs.full,
        ),
        "nested": lambda: Problem(
            make(FromMean(attention, nested=True)), rows, Halves(), graphs.full
        ),
        "several vectors": lambda: Problem(
            DocumentEncoder(Words(), FirstSegments(parts=2, projected=True)),
            functools.partial(one_sided, parts=2),
            OneAgainstRest(),
        ),
        "two towers": lambda: Problem(
            DocumentEncoder(Towers(transformer), attention),
            one_sided,
            OneAgainstRest(),
            graphs.section,
        ),
        "frozen tower": lambda: Problem(
            DocumentEncoder(Towers(transformer), attention, frozen="segment/query/"),
            one_sided,
            OneAgainstRest(),
            graphs.section,
        ),
        "two copies": lambda: Problem(
            DocumentEncoder(Towers(transformer, by="view"), Mean()),
            functools.partial(contrastive_tension, negatives=3),
            Halves(),
        ),
        "longformer": lambda: Problem(
            DocumentEncoder(Longformer(**SMALL, positions=18, window=4), attention),
            rows,
            Halves(),
            graphs.full,
        ),
        "modernbert": lambda: Problem(
            DocumentEncoder(ModernBert(**SMALL, window=4, dropout=0.1), attention),
            rows,
            Halves(),
            graphs.full,
        ),
        "frozen layer": lambda: Problem(
            DocumentEncoder(
                transformer, attention, frozen="segment/(embeddings|layer_0)/"
            ),
            rows,
            Halves(),
            graphs.full,
        ),
    }[name]()


def make_chunks(transformer: Transformer) -> DocumentEncoder:
    """Chunk attention over a transformer that knows the place of each segment."""
    placed = transformer.clone(sections=2, chunks=3)
    chunks = ChunkEncoder(width=16, heads=2, hidden=16, attention="full")
    return DocumentEncoder(placed, chunks)


def make_masked(transformer: Transformer) -> DocumentEncoder:
    """Means of segments, a training head and the prediction of masked tokens."""
    return DocumentEncoder(transformer.clone(masked_lm=True), Mean(), TrainingHead())


@functools.cache
def plain(name: str, dropout: bool) -> tuple:
    """(gradient, metrics) with all activations kept, on one device."""
    one = problem(name)
    cache, key = one.cache(mesh(1)), jax.random.key(1) if dropout else None
    batch = one.batch(microbatch=128)

    @jax.jit
    def gradient(params, arrays):
        whole = arrays._replace(towers=batch.towers)
        return plain_gradient(cache, params, whole, key, one.memory)

    return jax.device_get(gradient(one.params(), batch._replace(towers=())))


def worst_error(found: Any, expected: Any) -> float:
    """The largest max |difference| / max |expected| of a parameter.

    Two parameters shift all scores of a softmax alike (one of them up to the kink of a
    LeakyReLU), so that their gradients are what rounding leaves of large terms: they
    are measured against the gradient of the parameter beside them.
    """
    beside = {"key/bias": "key/kernel", "receiver": "sender"}
    sizes = {
        jax.tree_util.keystr(path, simple=True, separator="/"): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(expected)
    }
    errors = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(found):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        like = name
        for part, other in beside.items():
            like = like.replace(part, other)
        scale = np.abs(sizes[like]).max() or 1.0  # a parameter that no loss reads
        errors.append(float(np.abs(leaf - sizes[name]).max() / scale))
    assert len(errors) == len(sizes)
    return max(errors)


@pytest.fixture(scope="session", name="problem")
def problem_fixture():
    return problem


@pytest.fixture(scope="session", name="plain")
def plain_fixture():
    return plain


@pytest.fixture(scope="session", name="mesh")
def mesh_fixture():
    return mesh


@pytest.fixture(scope="session", name="worst_error")
def worst_error_fixture():
    return worst_error
