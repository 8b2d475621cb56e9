"""What the configs share: the fields of a run, published encoders, sizes, a recipe.

This is no config: `docjax.config.base()` gives it to the configs as a module.
"""

from typing import Any

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

PYDOCS = "docjax.data.sources.pydocs.pydocs"  # docstrings of the Python packages


def config(**fields: Any) -> ConfigDict:
    """Every field of a run, with the values `fields`.

    A config gives at least `units`, `examples`, `views`, `segments`, `encoder`,
    `objective`, `optimizer` and `tasks`. docs/design.md explains the fields.
    """
    shared = ConfigDict(
        dict(
            seed=0,
            source=dict(
                fn="docjax.data.sources.files.files",
                path="corpus.jsonl",
                max_bad_fraction=0.0,
            ),
            holdout=None,
            splits=dict(train="train", validation=placeholder(str), test="test"),
            transductive=False,
            tokenizer=dict(
                path=placeholder(str),
                train=dict(
                    fn="docjax.data.tokenizer.train_tokenizer", vocabulary=50265
                ),
            ),
            limits=dict(
                segment_tokens=512,
                query_tokens=512,
                training_units=placeholder(int),
                training_segments=placeholder(int),
                training_tokens=placeholder(int),
                inference_segments=placeholder(int),
            ),
            graph=None,
            encoder=dict(fn="docjax.encoders.document.DocumentEncoder", frozen=""),
            batch=placeholder(int),
            microbatch=placeholder(int),
            epochs=placeholder(int),
            steps=placeholder(int),
            log_every=10,
            evaluate_every=placeholder(int),
            checkpoint_every=placeholder(int),
            init=placeholder(str),
            keep=dict(fn="docjax.keep.Last"),
            report=dict(compare=(), published=placeholder(object)),
            tensorboard=False,
            prompts=dict(document=placeholder(str), query=placeholder(str)),
            profile=placeholder(object),
        )
    )
    shared.update(fields)
    return shared


def roberta(**changes: Any) -> dict[str, Any]:
    """The segment encoder of roberta-base, with changes."""
    published = dict(
        fn="docjax.encoders.transformer.Transformer",
        vocabulary=50265,
        layers=12,
        width=768,
        heads=12,
        hidden=3072,
        positions=514,
        position_offset=2,
        types=1,
        epsilon=1e-5,
        dropout=0.1,
        attention_dropout=0.0,  # the paper's 0.1 would exclude fast kernels of GPUs
        pooling="first",
        normalize=False,
        dtype="bfloat16",
    )
    return published | changes


def bert(**changes: Any) -> dict[str, Any]:
    """The segment encoder of bert-base-uncased, with changes."""
    sizes = dict(vocabulary=30522, positions=512, position_offset=0, types=2)
    return roberta(**sizes | dict(epsilon=1e-12) | changes)


def adamw(
    learning_rate: float, warmup: float, weight_decay: float, **changes: Any
) -> dict[str, Any]:
    """AdamW with clipped gradients; `warmup` is a share of the steps."""
    given = dict(
        fn="docjax.training.optimizer.adamw",
        learning_rate=learning_rate,
        warmup=warmup,
        weight_decay=weight_decay,
        clip=1.0,
    )
    return given | changes


def small(config: ConfigDict) -> None:
    """A small encoder from scratch, for a corpus on a laptop."""
    small_encoder(config)
    config.optimizer.learning_rate = 1e-3
    config.batch = 128
    config.microbatch = 16
    config.epochs = 3
    config.log_every = 5
    config.checkpoint_every = 50


def demo(config: ConfigDict) -> None:
    """`small` on the built-in corpus, in minutes on 2 cores."""
    small(config)
    config.source = dict(fn=PYDOCS)
    _segment_encoder(config).layers = 1
    config.batch = 64
    config.microbatch = 4  # the lengths of docstrings differ a lot
    config.epochs = 4


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus: everything in seconds, nothing learnt."""
    demo(config)
    config.source.update(packages=("optax",), label_documents=20)
    config.tokenizer.train.vocabulary = 512
    config.limits.segment_tokens = 32  # few widths to compile
    _segment_encoder(config).update(width=32, heads=2, hidden=64)
    if "width" in config.encoder.document:
        config.encoder.document.width = 32
    config.batch = 16
    config.epochs = None
    config.steps = 4
    config.log_every = 1
    config.checkpoint_every = 2


def small_encoder(config: ConfigDict) -> None:
    """Two layers of 128 with a tokenizer of their own.

    From random weights means of tokens learn sooner than the first token.
    """
    config.init = None
    config.tokenizer.train.vocabulary = 8192
    _segment_encoder(config).update(
        vocabulary=8192,
        layers=2,
        width=128,
        heads=4,
        hidden=512,
        positions=514,
        position_offset=2,
        types=1,
        epsilon=1e-5,
        pooling="mean",
        dtype="float32",
    )
    if "width" in config.encoder.document:
        config.encoder.document.width = 128


def _segment_encoder(config: ConfigDict) -> ConfigDict:
    """The segment encoder, also of copies."""
    segment = config.encoder.segment
    return segment.get("encoder", segment)


def frozen_encoder(
    config: ConfigDict, branch: dict[str, Any] | None = None, nested: bool = False
) -> None:
    """The user's encoder, which reads all texts once, and word vectors of the corpus.

    The vector of a document begins as the mean of the segments' vectors. `branch` is a
    document encoder that enters it from zero; if `nested`, the run may leave it out.
    """
    config.init = None  # the user's
    config.encoder.frozen = "segment/"
    config.encoder.segment.update(pooling=None, dtype="float32", words=256)
    config.encoder.document = dict(
        fn="docjax.encoders.from_mean.FromMean",
        branch=branch,
        nested=nested,
        words=256,
        share=placeholder(float),  # excerpts of the documents choose
        normalize=placeholder(bool),
        turn=True,
        components=False,
    )
