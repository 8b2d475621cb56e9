"""graph-roberta fine-tuned end to end for classification.

Xu et al., 2021, Table 6: batches of 32 documents, warm-up 0.1, weight decay 0.01;
learning rate and epochs depend on the dataset. The run keeps the epoch with the best
validation accuracy. `init` is a run of `graph_roberta.py`, or `roberta-base` without
contrastive pre-training (Table 2, 20 Newsgroups: 86.66 % with, 85.36 % without).

  python -m docjax.main --config=configs/graph_roberta_classify.py:newsgroup \
      --workdir=runs/newsgroup --config.source.path=20news.jsonl.xz \
      --config.init=runs/pretrain

Variants, by data set: `newsgroup` (the default), `arxiv`, `imdb`, `hyperpartisan`: the
paper's values. By size: `small`, `demo` and `smoke`, as in `graph_roberta.py`. `small`
goes with a data set, as in `imdb,small`.
"""

from ml_collections import ConfigDict

from docjax.config import base, vary

VARIANTS = ("arxiv", "newsgroup", "imdb", "hyperpartisan", "small", "demo", "smoke")


def get_config(variant: str = "newsgroup") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Passages", words=100),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.whole.Whole"),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(
            segment_tokens=256,
            query_tokens=64,
            training_units=50,
            inference_segments=100,
        ),
        graph=dict(fn="docjax.data.graphs.full"),
        encoder=dict(
            segment=base().roberta(),
            document=dict(
                fn="docjax.encoders.graph_attention.GraphAttention",
                width=512,
                layers=2,
                heads=2,
            ),
            head=dict(fn="docjax.encoders.pooling.Classifier", classes=0),
        ),
        objective=dict(fn="docjax.objectives.cross_entropy.cross_entropy"),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.1, weight_decay=0.01),
        holdout=dict(
            fn="docjax.data.splits.holdout", of="train", test=0.0, validation=0.1
        ),
        splits=dict(validation="validation"),
        batch=32,
        microbatch=32,
        epochs=20,
        tasks=dict(classification=dict(fn="docjax.tasks.classification.EndToEnd")),
        init="roberta-base",
        keep=dict(fn="docjax.keep.Best", metric="classification/accuracy"),
    )
    return vary(
        config,
        variant,
        size=(small, demo, smoke),
        data_set=(arxiv, newsgroup, imdb, hyperpartisan, demo, smoke),
    )


def arxiv(config: ConfigDict) -> None:
    """The data has a validation part."""
    config.holdout = None
    config.optimizer.learning_rate = 1e-4


def newsgroup(config: ConfigDict) -> None:
    """The values above."""


def imdb(config: ConfigDict) -> None:
    config.holdout.validation = 0.04


def hyperpartisan(config: ConfigDict) -> None:
    """The data has a validation part, "dev"."""
    config.holdout = None
    config.splits.validation = "dev"
    config.optimizer.learning_rate = 3e-5
    config.epochs = 15


def small(config: ConfigDict) -> None:
    base().small(config)
    config.checkpoint_every = None  # each epoch


def demo(config: ConfigDict) -> None:
    base().demo(config)
    config.epochs = 1
    config.checkpoint_every = None


def smoke(config: ConfigDict) -> None:
    base().smoke(config)
    config.microbatch = 128
    config.checkpoint_every = None
