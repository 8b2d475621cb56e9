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

Variants: `five`: five examples of each class in the few-shot task. By size: `small`: small
copies and their own tokenizer from scratch, on documents. `demo`: `small` on the
docstrings of the installed Python packages. `smoke`: everything in seconds.
"""

from ml_collections import ConfigDict

from docjax.config import base, load, vary

VARIANTS = ("", "five", "small", "demo", "smoke", "five,small")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.twice.Twice"),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(
            segment_tokens=512,
            query_tokens=64,
            training_segments=1,
            inference_segments=1,
        ),
        encoder=dict(
            segment=dict(
                fn="docjax.encoders.towers.Towers",
                by="view",
                encoder=base().bert(dropout=0.0, pooling="mean", masked_lm=False),
            ),
            document=dict(fn="docjax.encoders.pooling.Mean"),
            head=None,
        ),
        objective=dict(
            fn="docjax.objectives.contrastive_tension.contrastive_tension", negatives=7
        ),
        optimizer=dict(
            fn="docjax.training.optimizer.rmsprop",
            learning_rates=(1e-5, 8e-6, 6e-6, 4e-6, 2e-6),
            every=500,
        ),
        batch=16,
        microbatch=16,
        steps=5000,
        log_every=100,
        evaluate_every=1000,
        checkpoint_every=1000,
        tasks=load("docsplit").tasks,
        init="bert-base-uncased",
    )
    return vary(config, variant, size=(small, demo, smoke), shots=(five,))


def five(config: ConfigDict) -> None:
    config.tasks.few_shot.shots = 5


def small(config: ConfigDict) -> None:
    base().small(config)
    _from_scratch(config)


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    base().demo(config)
    _from_scratch(config)


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    base().smoke(config)
    _from_scratch(config)
    config.steps = 4
    config.tasks.few_shot.update(shots=5, repeats=2)


def _from_scratch(config: ConfigDict) -> None:
    """From random weights: larger steps; 1e-3 diverges."""
    config.optimizer = dict(
        fn="docjax.training.optimizer.rmsprop", learning_rates=(1e-4,), every=500
    )
    config.steps = None
