"""Contrastive Tension: two copies of BERT, dot products, same text or not.

Carlsson et al., 2021 (CT-BERT in the DocSplit paper): the mean of the tokens, one pair of
the same text for seven pairs of two texts, binary cross-entropy with logits, no dropout;
RMSprop with 1e-5, 8e-6, 6e-6, 4e-6 and 2e-6 for 500 steps each (the last one stays),
batches of 16, 5,000 steps as in the authors' example. Each line of the source is a
sentence. Inference uses the second copy, and so does an export. Expected accuracy of an
MLP on the frozen encoder: 20 Newsgroups 65.76 %, with five examples of each class
24.11 %.

Departures from the paper: the pairs of two texts are drawn inside the batch, with the
same share of pairs of the same text (docjax/objectives/contrastive_tension.py): a batch of
16 texts has 16 pairs of the same text and 112 of two texts, where the authors' batch of 16
pairs has two and 14; texts are cut at 512 tokens, not at 75; the second copy is kept, not
the one that scores better on sentence similarity.

  python -m docjax.main --config=configs/contrastive_tension.py --workdir=runs/ct \
      --config.source.path='sentences/*.jsonl.zst'

Variants: `five`: five examples of each class in the few-shot task. `small`: small copies
and their own tokenizer from scratch, on documents. `demo`: `small` on the docstrings of
the installed Python packages. `smoke`: everything in seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import load, vary

VARIANTS = ("", "five", "small", "demo", "smoke", "five,small")


def get_config(variant: str = "") -> ConfigDict:
    config = load("simcse")
    _copies(config)
    config.encoder.head = placeholder(object)
    config.objective = dict(
        fn="docjax.objectives.contrastive_tension.contrastive_tension", negatives=7
    )
    config.optimizer = dict(
        fn="docjax.training.optimizer.rmsprop",
        learning_rates=(1e-5, 8e-6, 6e-6, 4e-6, 2e-6),
        every=500,
    )
    config.batch = config.microbatch = 16
    config.epochs = None
    config.steps = 5000
    config.checkpoint_every = config.evaluate_every = 1000
    return vary(config, variant, small, demo, smoke, five)


def five(config: ConfigDict) -> None:
    config.tasks.few_shot.shots = 5


def small(config: ConfigDict) -> None:
    """From random weights: larger steps; 1e-3 diverges."""
    _as_simcse(config, "small")


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    _as_simcse(config, "demo")


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    _as_simcse(config, "smoke")


def _as_simcse(config: ConfigDict, variant: str) -> None:
    """The sizes of SimCSE's variant."""
    simcse = load("simcse", variant)
    config.optimizer.learning_rates = (1e-4,)
    objective, optimizer = config.objective, config.optimizer
    for name in simcse:
        config[name] = simcse[name]
    config.objective, config.optimizer = objective, optimizer
    _copies(config)
    config.encoder.head = placeholder(object)


def _copies(config: ConfigDict) -> None:
    """Two copies of the segment encoder, one for each view."""
    inner = config.encoder.segment
    inner.update(dropout=0.0, pooling="mean")
    config.encoder.segment = dict(
        fn="docjax.encoders.towers.Towers", by="view", encoder=inner
    )
