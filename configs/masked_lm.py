"""Masked language modelling alone: goes on with a pretrained encoder, or begins one.

Devlin et al., 2019, section 3.1: 15 % of the tokens of each segment are predicted, of
which 80 % become the mask token, 10 % another token and 10 % stay. All of a document is
read, in segments of up to 512 tokens. The defaults continue bert-base-uncased on your
corpus: 3 epochs, batches of 16 documents, AdamW 5e-5. Expected test error (BERT-mlm of the
DECA paper; BERT in brackets): R8 4.1 % (5.1), 20 Newsgroups 26.5 % (32.9).

  python -m docjax.main --config=configs/masked_lm.py --workdir=runs/mine \
      --config.source.path=mine.jsonl

Departures from the papers: a twentieth of the documents of a source without splits is
held out and not read (`--config.holdout.of=unlabeled` divides the split of that name),
and attention weights are not dropped (`encoder.segment.attention_dropout` is 0; BERT
drops 0.1), so that GPUs can use fast attention kernels.

`metrics.jsonl` has the loss of the training tokens, tokens a second, and the perplexity
of held-out documents.
`--mode=export` writes a folder that `transformers.AutoModelForMaskedLM` reads;
`--config.init=RUN` (or that folder) begins another run with the encoder and its head.

Variants by size: `scratch`: an encoder of 4 layers of 256 from random weights, with its
own tokenizer: AdamW 5e-4 with warm-up. `small`: a smaller one, for a corpus on a laptop.
`demo`: `small` on the docstrings of the installed Python packages. `smoke`: everything in
seconds.
"""

from ml_collections import ConfigDict

from docjax.config import base, vary

VARIANTS = ("", "scratch", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        holdout=dict(fn="docjax.data.splits.holdout", test=0.05),
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.whole.Whole"),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(segment_tokens=512, query_tokens=64),
        encoder=dict(
            segment=base().bert(masked_lm=True),
            document=dict(fn="docjax.encoders.pooling.Mean"),
            head=None,
        ),
        objective=dict(
            fn="docjax.objectives.masked_lm.MaskedLM",
            contrastive=None,
            weight=1.0,
            rate=0.15,
        ),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.0, weight_decay=0.01),
        batch=16,
        epochs=3,
        log_every=100,
        evaluate_every=1000,
        checkpoint_every=1000,
        tasks=dict(
            tokens=dict(fn="docjax.tasks.masked_tokens.MaskedTokens", rate=0.15),
            classification=dict(fn="docjax.tasks.classification.Linear"),
        ),
        init="bert-base-uncased",
    )
    return vary(config, variant, size=(scratch, small, demo, smoke))


def scratch(config: ConfigDict) -> None:
    """Mean pooling: no loss trains the first token to stand for a text."""
    small(config)
    config.tokenizer.train.vocabulary = 16384
    config.encoder.segment.update(
        vocabulary=16384, layers=4, width=256, heads=4, hidden=1024
    )
    config.optimizer.learning_rate = 5e-4
    config.epochs = 10


def small(config: ConfigDict) -> None:
    base().small(config)
    config.optimizer.warmup = 0.1


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    base().demo(config)
    config.microbatch = 16


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    small(config)
    base().smoke(config)
