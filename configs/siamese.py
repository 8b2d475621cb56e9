"""Siamese encoders: one encoder reads both documents of a pair, the cosine is its label.

The baselines S-BERT and S-LONG of CoLDE (Jha et al., 2023, section 4.2): BERT reads the
first 512 tokens of a document (Reimers and Gurevych, "Sentence-BERT", 2019), or
Longformer the first 4,096. The loss is the squared difference of the cosine and the
label of the pair, 0 or 1.
Expected (CoLDE, Table 1, F1 and accuracy of matching): S-BERT on the ACL papers (AAN)
.6659 and .5663, Wikipedia .6661 and .4993, patents .5152 and .5206; S-LONG .6752 and
.6996, .7626 and .7527, .6551 and .5213.

CoLDE leaves open what follows; the choices are ours. Loss, mean pooling and the
learning rate 2e-5 of S-BERT; for batch and warm-up those of Sentence-BERT (16 pairs, a
tenth of the steps); four epochs. `encoder.segment.attention_dropout` is 0 (the papers'
encoders drop 0.1), so that GPUs can use fast attention kernels.

  python -m docjax.main --config=configs/siamese.py:acl --workdir=runs/siamese \
      --config.source.path=papers.jsonl.xz --config.examples.path=pairs.tsv \
      --config.init=FOLDER

The task `matching` scores other splits of the same table. Without a table the pairs are
documents with a link between them ("links" of the source), and as many without.

Variants by encoder: `sbert` (the same), `slong`: Longformer and its first token. By data
set: `acl`, as in `acl,slong`: "Abstract" and "References" are not read, as in CoLDE. By
size: `small`, as in `slong,small`: a small encoder and its own tokenizer from scratch,
the mean of tokens. `smoke`: `small` on the docstrings of numpy, linked by "See Also", in
seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import base, vary
from docjax.errors import UserError

VARIANTS = ("", "sbert", "slong", "acl", "acl,slong", "small", "slong,small", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(
            fn="docjax.data.examples.Pairs", path=placeholder(str), dissimilar=True
        ),
        views=dict(fn="docjax.views.whole.Whole"),
        segments=dict(fn="docjax.data.segments.Joined"),
        limits=dict(
            segment_tokens=512,
            query_tokens=512,
            training_segments=1,
            inference_segments=1,
        ),
        encoder=dict(
            segment=base().bert(pooling="mean"),
            document=dict(fn="docjax.encoders.pooling.Mean"),
        ),
        objective=dict(
            fn="docjax.objectives.pair_similarity.pair_similarity",
            margin=placeholder(float),
        ),
        optimizer=base().adamw(learning_rate=2e-5, warmup=0.1, weight_decay=0.0),
        batch=16,
        epochs=4,
        tasks=dict(matching=dict(fn="docjax.tasks.matching.Matching")),
        init="bert-base-uncased",
    )
    # The table of the examples, unless the task gets a table of its own.
    config.tasks.matching.path = config.examples.get_oneway_ref("path")
    return vary(
        config,
        variant,
        size=(small, smoke),
        data_set=(acl, smoke),
        encoder=(sbert, slong),
    )


def sbert(config: ConfigDict) -> None:
    """The values above."""


def slong(config: ConfigDict) -> None:
    """Longformer."""
    if not config.init:
        raise UserError(
            "type slong before small or smoke, which make its encoder small"
        )
    config.encoder.segment = dict(
        fn="docjax.encoders.longformer.Longformer", pooling="first"
    )
    config.limits.update(segment_tokens=4096, query_tokens=4096)
    config.init = "allenai/longformer-base-4096"


def acl(config: ConfigDict) -> None:
    """Papers, as `colde:acl` reads them."""
    config.source.without = ("Abstract", "References")


def small(config: ConfigDict) -> None:
    """A small encoder from scratch."""
    base().small_encoder(config)
    config.encoder.segment.update(
        positions=config.limits.segment_tokens + 2,
        dropout=0.1,
        attention_dropout=0.0,
        normalize=False,
    )
    config.optimizer.learning_rate = 1e-3
    config.log_every = 5


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus, with links."""
    base().smoke(config)
    config.source.packages = ("numpy",)
    config.limits.query_tokens = 32
    config.microbatch = None
