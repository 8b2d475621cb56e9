"""Contriever: two crops of a document, a momentum encoder and a queue of negatives.

Izacard et al., 2022, sections 3.1 and 3.2: the mean of BERT's tokens, two independent
crops of 5 to 50 % of a span of 256 tokens without 10 % of their tokens; dot products with
temperature 0.05 against a queue of 131,072 documents; momentum 0.9995; AdamW 5e-5 with
weight decay 0.01, 20,000 steps of warm-up, 500,000 steps in batches of 2,048, Wikipedia
and CCNet. The row of Contriever in the DocSplit paper is empty: there is no published
number for its tasks.

Departures from the paper: the queue begins empty; the encoder reads whole documents at
evaluation, cut at 512 tokens; attention weights are not dropped
(`encoder.segment.attention_dropout` is 0; BERT drops 0.1), so that GPUs can use fast
attention kernels.

The queue holds 64 batches: with a batch other than 2,048 set `objective.batches` too.
`limits.training_tokens` is half of `views.span`, the longest crop: raise both.

  python -m docjax.main --config=configs/contriever.py --workdir=runs/contriever \
      --config.source.path='wikipedia/*.jsonl.zst'

Variants: `five`: five examples of each class in the few-shot task. By size: `small`: a
small encoder and its own tokenizer from scratch, cosines, and a short queue whose encoder
follows faster. `demo`: `small` on the docstrings of the installed Python packages.
`smoke`: everything in seconds.
"""

from ml_collections import ConfigDict

from docjax.config import base, load, vary

VARIANTS = ("", "five", "small", "demo", "smoke", "five,small")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(
            fn="docjax.views.crops.Crops",
            span=256,
            shortest=0.05,
            longest=0.5,
            deletion=0.1,
        ),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(
            segment_tokens=512,
            query_tokens=64,
            training_segments=1,
            training_tokens=128,  # of a crop: half of views.span
            inference_segments=1,
        ),
        encoder=dict(
            segment=base().bert(pooling="mean", masked_lm=False),
            document=dict(fn="docjax.encoders.pooling.Mean"),
            head=None,
        ),
        objective=dict(
            fn="docjax.objectives.queue.Queue",
            batches=64,
            similarity="dot",
            temperature=0.05,
            symmetric=False,
            momentum=0.9995,
            in_batch=False,
        ),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.04, weight_decay=0.01),
        batch=2048,
        steps=500_000,
        log_every=100,
        evaluate_every=10_000,
        checkpoint_every=10_000,
        tasks=load("docsplit").tasks,
        init="bert-base-uncased",
    )
    return vary(config, variant, size=(small, demo, smoke), shots=(five,))


def five(config: ConfigDict) -> None:
    config.tasks.few_shot.shots = 5


def small(config: ConfigDict) -> None:
    """The queue holds a few batches of a small corpus."""
    base().small(config)
    config.objective.update(batches=4, similarity="cosine", momentum=0.99)
    config.optimizer.warmup = 0.0
    config.limits.training_tokens = None
    config.steps = None
    config.evaluate_every = 1000


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    base().demo(config)


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    small(config)
    base().smoke(config)
    config.tasks.few_shot.update(shots=5, repeats=2)
