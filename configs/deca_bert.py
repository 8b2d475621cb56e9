"""DECA on BERT: the contrastive loss alone, over documents and their paraphrases.

Luo et al., 2021, rows DECA (BT+SC) and, with `simsiam`, DECA (BT+SS): the first token
of bert-base-uncased, the first 512 tokens of a document, one epoch of batches of 2.
Expected (Table 3, test error in %): R8 6.6 and 4.9, R52 15.3 and 14.3, MR 20.9 and
21.0, 20 Newsgroups 61.1 and 41.6; on most of them BERT without this training is better.
Table 7 has MR with 64 tokens and batches of 2, 4 and 8: SC 21.69, 21.94, 19.61; SS
20.99, 20.65, 19.31. With all-MiniLM-L6-v2 in BERT's place, one core trains on 6
documents a second in batches of 2: half an hour for MR.

  python -m docjax.main --config=configs/deca_bert.py:r8 --workdir=runs/r8-bert \
      --config.source.path=r8.jsonl.xz --config.views.lexicons=nltk_data

`--config.init=FOLDER` takes another BERT. Paraphrases replace only words that are a
single piece of its tokenizer.

Variants by data set: `r8`, `r52`, `mr`, `ohsumed`, `20news`, `imdb`: the paraphrases of
the paper's Table 2. A recipe, `simsiam`: SimSiam, also after a data set and a comma.
`smoke`: a small encoder from scratch on the built-in corpus, everything in seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import base, load, vary

DATASETS = ("r8", "r52", "mr", "ohsumed", "20news", "imdb")
VARIANTS = ("", *DATASETS, "simsiam", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        transductive=True,
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(
            fn="docjax.views.replaced.WordNet",
            least_count=10,
            lexicons=placeholder(str),
        ),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(
            segment_tokens=512,
            query_tokens=64,
            training_units=1,
            training_segments=1,
            inference_segments=1,
        ),
        encoder=dict(
            segment=base().bert(dropout=0.3),
            document=dict(fn="docjax.encoders.pooling.Mean"),
        ),
        objective=dict(
            fn="docjax.objectives.infonce.infonce",
            similarity="cosine",
            temperature=1.0,
            symmetric=False,
            include_positive=True,
        ),
        optimizer=base().adamw(learning_rate=3e-6, warmup=0.0, weight_decay=0.0),
        batch=2,
        microbatch=2,
        epochs=1,
        log_every=100,
        evaluate_every=0,  # before training and at the end
        checkpoint_every=1000,
        tasks=load("deca").tasks,
        init="bert-base-uncased",
    )
    return vary(
        config,
        variant,
        size=(smoke,),
        data_set=(r8, r52, mr, ohsumed, news, imdb, smoke),
        recipe=(simsiam,),
    )


def r8(config: ConfigDict) -> None:
    config.views = dict(
        fn="docjax.views.replaced.Antonyms", probability=0.5, lexicons=placeholder(str)
    )


def r52(config: ConfigDict) -> None:
    r8(config)


def mr(config: ConfigDict) -> None:
    """Single sentences."""
    config.views.least_count = 5


def ohsumed(config: ConfigDict) -> None:
    """No change."""


def news(config: ConfigDict) -> None:
    """20 Newsgroups: no change."""


news.__name__ = "20news"


def imdb(config: ConfigDict) -> None:
    config.views = dict(fn="docjax.views.replaced.Paraphrases", path=placeholder(str))


def simsiam(config: ConfigDict) -> None:
    """BT+SS: SimSiam in place of InfoNCE."""
    config.encoder.head = dict(
        fn="docjax.encoders.pooling.Predictor", hidden=64, dropout=0.3
    )
    config.objective = dict(fn="docjax.objectives.simsiam.simsiam")


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus; the paraphrases drop random words."""
    base().smoke(config)
    config.views = dict(fn="docjax.views.replaced.Dropped")
    config.encoder.segment.dropout = 0.1
    config.limits.segment_tokens = 64
    config.optimizer.learning_rate = 3e-6
    config.batch = config.microbatch = 2
