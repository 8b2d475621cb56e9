"""DSSM, ARC-I, HAN and SMITH tell similar documents from others, as CoLDE's baselines.

    python -m benchmarks.siamese --documents papers.jsonl.xz --pairs W/pairs.tsv

Prints a Markdown table of what `docjax.tasks.matching.matching` says of the pairs of the
split "test", by seed. Those of "train" train, and those of "dev" choose the threshold of
the cosine by F1. benchmarks/colde.py writes such a table from pairs of ACL papers, so
that the rows of both benchmarks compare. Sections with the heading "Abstract" or
"References" are left out, as in CoLDE's paper. DSSM, ARC-I and HAN learn
by the squared difference of cosine and label, SMITH by its own loss, after pre-training
on the texts of all documents. `configs/siamese.py` has S-BERT and S-LONG.

SMITH's sizes are its authors' unless flags say otherwise; they need an accelerator.
`--words 500 --blocks 8 --layers 2 --width 64 --pretraining 5 --epochs 3` fits a laptop.

Axis letters: c documents, b pairs, s sentences or blocks, t words or tokens, d width.
"""

import argparse
import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import flax.linen as nn
import jax
import numpy as np
import optax
from flax.training.train_state import TrainState
from jaxtyping import Array, Bool, Float, Int
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from benchmarks import smith, tiny
from benchmarks.siamese_data import Data, Pairs, padded, read, sentences_of, words_of
from benchmarks.siamese_models import ARC1, DSSM, HAN
from docjax.data.records import full_text
from docjax.data.tokenizer import train_tokenizer
from docjax.errors import UserError
from docjax.objectives.pair_similarity import pair_similarity
from docjax.progress import log
from docjax.tasks.matching import matching
from docjax.types import Document, Targets

logger = logging.getLogger("docjax.benchmarks")

SENTENCE = 32  # words of a sentence that HAN reads at once
RARE = 5  # documents with a letter trigram that DSSM reads, at least
VOCABULARY = 8192  # tokens of SMITH
RATE, SMITH_RATE = 1e-3, 5e-5
TOGETHER = 32  # documents of one call that encodes

Loss = Callable[[Float[Array, "2 b d"], Int[Array, " b"]], Float[Array, ""]]


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """A model and what it reads of each document; `initial` gives its parameters."""

    model: nn.Module
    inputs: np.ndarray  # [c ...]
    loss: Loss
    rate: float
    initial: Callable[[int], Any]


def squared(vectors: Float[Array, "2 b d"], labels: Int[Array, " b"]) -> Array:
    return pair_similarity(vectors, Targets(labels))[0]


def plain(model: nn.Module, inputs: np.ndarray, flags: argparse.Namespace) -> System:
    """A system with random parameters at the start."""
    initial = lambda seed: smith.initial(model, jax.random.key(seed), inputs[:1])
    return System(model, inputs, squared, flags.rate or RATE, initial)


def dssm(documents: Sequence[Document], flags: argparse.Namespace) -> System:
    """DSSM on the letter trigrams of whole texts; spaces mark where a word ends."""
    counter = CountVectorizer(analyzer="char_wb", ngram_range=(3, 3), min_df=RARE)
    try:
        counts = counter.fit_transform(map(full_text, documents))
    except ValueError:
        raise UserError(
            f"no letter trigram occurs in {RARE} documents: give more documents"
        ) from None
    print(f"DSSM reads {counts.shape[1]:,} letter trigrams.")
    return plain(DSSM(), np.log1p(counts.toarray().astype(np.float32)), flags)


def arc1(documents: Sequence[Document], flags: argparse.Namespace) -> System:
    texts, vocabulary = words_of(documents, flags.words)
    words = [[word for ids in sentences for word in ids] for sentences in texts]
    return plain(ARC1(vocabulary), padded(words), flags)


def han(documents: Sequence[Document], flags: argparse.Namespace) -> System:
    """HAN; a sentence of more than SENTENCE words goes on in the next row."""
    texts, vocabulary = words_of(documents, flags.words)
    rows = [
        [s[i : i + SENTENCE] for s in sentences for i in range(0, len(s), SENTENCE)]
        for sentences in texts
    ]
    most = max(map(len, rows))
    filled = [padded(row + [[]] * (most - len(row)), SENTENCE) for row in rows]
    return plain(HAN(vocabulary), np.stack(filled), flags)


def smith_system(documents: Sequence[Document], flags: argparse.Namespace) -> System:
    """SMITH with its own tokenizer; `initial` pre-trains on all documents."""
    texts = sentences_of(documents)
    tokenizer = train_tokenizer((t for text in texts for t in text), VOCABULARY)
    cut = [smith.blocks_of(tokenizer.encode(text), flags.blocks) for text in texts]
    inputs, lost = np.stack([blocks for blocks, _ in cut]), sum(n for _, n in cut)
    total = (
        lost
        + (inputs != smith.PADDING).sum()
        - smith.SPECIAL * (inputs[..., 0] != smith.PADDING).sum()
    )
    print(f"SMITH leaves out {lost / total:.1%} of the tokens.")
    model = smith.Smith(
        tokenizer.vocabulary, flags.blocks, flags.layers, width=flags.width
    )
    rate = flags.rate or SMITH_RATE

    def initial(seed: int) -> Any:
        """The parameters after pre-training."""
        given = model, inputs, flags.pretraining, flags.batch, rate, seed
        for epoch, (params, loss) in enumerate(smith.pretrained(*given)):
            if epoch:
                logger.info("seed %d, pre-training %d: loss %.3f", seed, epoch, loss)
        return params

    return System(model, inputs, smith.matching_loss, rate, initial)


SYSTEMS = {"DSSM": dssm, "ARC-I": arc1, "HAN": han, "SMITH": smith_system}


@cache
def optimizer(rate: float) -> optax.GradientTransformation:
    """The same for all seeds, so that a step is compiled once."""
    return optax.adam(rate)


@partial(jax.jit, static_argnames="loss")
def step(
    state: TrainState,
    documents: Array,
    labels: Int[Array, " b"],
    key: jax.Array,
    loss: Loss,
) -> TrainState:
    """The state after one step; the sources come first, then the targets."""

    def mean(params: Any) -> Float[Array, ""]:
        vectors = state.apply_fn(params, documents, key)
        return loss(vectors.reshape(2, len(labels), -1), labels)

    return state.apply_gradients(grads=jax.grad(mean)(state.params))


@jax.jit
def encode(state: TrainState, documents: Array) -> Float[Array, "c d"]:
    return state.apply_fn(state.params, documents)


def cosines(state: TrainState, inputs: np.ndarray) -> Callable[[Pairs], tuple]:
    """A function that gives the cosine of each pair, and whether it is similar."""
    starts = range(0, len(inputs), TOGETHER)
    vectors = normalize(
        np.concatenate([encode(state, inputs[i : i + TOGETHER]) for i in starts])
    )

    def of(pairs: Pairs) -> tuple[Float[np.ndarray, " b"], Bool[np.ndarray, " b"]]:
        left, right = vectors[pairs[0]].transpose(1, 0, 2)
        return (left * right).sum(1), pairs[1]

    return of


def epoch_of(
    state: TrainState, system: System, pairs: Pairs, batch: int, seed: tuple[int, int]
) -> TrainState:
    """The state after all whole batches of the pairs, in a random order."""
    generator, key = np.random.default_rng(seed), jax.random.key(seed[0])
    rows, similar = pairs
    order = generator.permutation(len(rows))[: len(rows) // batch * batch]
    for chosen in order.reshape(-1, batch):
        documents = system.inputs[rows[chosen].T.ravel()]
        labels = similar[chosen].astype(np.int32)
        each = jax.random.fold_in(key, state.step)
        state = step(state, documents, labels, each, system.loss)
    return state


def trained(
    system: System, data: Data, seed: int, flags: argparse.Namespace
) -> dict[str, float]:
    """The scores of the test pairs after the last epoch."""
    start = time.monotonic()
    state = TrainState.create(
        apply_fn=system.model.apply,
        params=system.initial(seed),
        tx=optimizer(system.rate),
    )
    for epoch in range(1, flags.epochs + 1):
        state = epoch_of(state, system, data.train, flags.batch, (seed, epoch))
        took = time.monotonic() - start
        logger.info("seed %d, epoch %d: %.0f s", seed, epoch, took)
    of = cosines(state, system.inputs)
    return matching(of(data.dev), of(data.test))


def table(flags: argparse.Namespace) -> None:
    data = read(flags)
    if flags.batch > len(data.train[0]):
        raise UserError(
            f"--batch {flags.batch}: there are {len(data.train[0])} training pairs; "
            "give at most their number"
        )
    systems = {name: SYSTEMS[name](data.documents, flags) for name in flags.systems}
    for place, (name, system) in enumerate(systems.items()):
        scores = [trained(system, data, seed, flags) for seed in flags.seeds]
        if not place:
            print(f"\n| system | {' | '.join(scores[0])} |")
            print("|---" * (len(scores[0]) + 1) + "|")
        cells = [", ".join(f"{each[m]:.3f}" for each in scores) for m in scores[0]]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--documents", required=True, help="JSON lines with sections")
    parser.add_argument("--pairs", required=True, help="split, source, target, label")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="pairs of a step")
    parser.add_argument("--rate", type=float, help="of learning; else the system's own")
    parser.add_argument("--words", type=int, default=5000, help="read of a document")
    parser.add_argument("--blocks", type=int, default=48, help="that SMITH reads")
    parser.add_argument("--layers", type=int, default=4, help="of SMITH's blocks")
    parser.add_argument("--width", type=int, default=256, help="of SMITH's vectors")
    parser.add_argument("--pretraining", type=int, default=10, help="epochs of SMITH")
    sizes = "--documents", tiny.documents, "--pairs", tiny.pairs, "--seeds", 0
    sizes += "--systems", "DSSM", "--epochs", 1, "--batch", 16
    flags = tiny.parse(parser, given, *sizes)
    try:
        for name in ("epochs", "batch", "words", "blocks", "layers", "width"):
            if getattr(flags, name) < 1:
                raise UserError(f"--{name} {getattr(flags, name)}: give 1 or more")
        table(flags)
    except UserError as error:
        raise SystemExit(f"siamese: {error}") from None


if __name__ == "__main__":
    log.install()
    main()
