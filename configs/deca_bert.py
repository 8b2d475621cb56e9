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

Variants: `r8`, `r52`, `mr`, `ohsumed`, `20news`, `imdb`: the paraphrases of the paper's
Table 2. `simsiam`: SimSiam, also after another variant and a comma. `smoke`: a small
encoder from scratch on the built-in corpus, everything in seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import load, vary

DATASETS = ("r8", "r52", "mr", "ohsumed", "20news", "imdb")
VARIANTS = ("", *DATASETS, "simsiam", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = load("graph_roberta")
    words = load("deca")
    config.transductive = True
    config.units = dict(fn="docjax.data.units.Whole")
    config.limits.update(
        segment_tokens=512, training_units=1, training_segments=1, inference_segments=1
    )
    config.graph = placeholder(object)
    config.views = words.views
    config.encoder.segment.update(
        vocabulary=30522,
        positions=512,
        position_offset=0,
        types=2,
        epsilon=1e-12,
        dropout=0.3,
    )
    config.encoder.document = dict(fn="docjax.encoders.pooling.Mean")
    config.objective = words.objective.contrastive
    config.optimizer.update(learning_rate=3e-6, warmup=0.0)
    config.batch = config.microbatch = 2
    config.epochs = 1
    config.log_every = 100
    config.evaluate_every = 0  # before training and at the end
    config.tasks = words.tasks
    config.init = "bert-base-uncased"
    rest = (r8, r52, mr, ohsumed, imdb, simsiam, smoke)
    return vary(config, variant, *rest, **{"20news": news})


def r8(config: ConfigDict) -> None:
    config.views = load("deca", "r8").views


def r52(config: ConfigDict) -> None:
    r8(config)


def mr(config: ConfigDict) -> None:
    """Single sentences."""
    config.views.least_count = 5


def ohsumed(config: ConfigDict) -> None:
    """No change."""


def news(config: ConfigDict) -> None:
    """20 Newsgroups: no change."""


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
    small = load("graph_roberta", "smoke")
    for name in ("source", "steps", "epochs", "log_every", "checkpoint_every"):
        config[name] = small[name]
    config.tokenizer = small.tokenizer
    config.encoder.segment = small.encoder.segment
    config.limits.segment_tokens = 64
    config.views = dict(fn="docjax.views.replaced.Dropped")
    config.init = None
