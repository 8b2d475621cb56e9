"""graph-roberta: passages, RoBERTa, graph attention, random halves, InfoNCE.

Xu et al., "Contrastive Document Representation Learning with Graph Attention
Networks", 2021: contrastive pre-training for classification (sections 2 and 3.2).
The paper trains on 8M documents of OpenWebText: 10 epochs of 1,536 documents.
Expected: 20 Newsgroups, k-means on the vectors without labels, NMI 0.516 and purity
0.475 (0.116 and 0.160 for RoBERTa).

Departure from the paper: `encoder.segment.attention_dropout` is 0, so that GPUs can use
fast attention kernels. RoBERTa drops 0.1 of the attention weights. All configs that
start from this one share the choice.

  python -m docjax.main --config=configs/graph_roberta.py --workdir=runs/pretrain \
      --config.source.path='openwebtext/*.jsonl.zst'

Recipes for your own corpus, without a setting to choose (`:RECIPE`):

  python -m docjax.main --config=configs/graph_roberta.py:frozen \
      --config.source.path=mine.jsonl --config.init=FOLDER

`frozen`: reads the whole text once with the encoder in FOLDER, a transformer such as a
sentence encoder, in pieces of at most its length and 512 tokens that end with a section,
with its prompts; and both halves of up to 5,000 texts that are one piece of at least 128
tokens. The vector begins as the mean of the pieces' vectors; training adds word vectors
of the corpus, brings two sections or halves of a document together and keeps similar
documents together. Where most documents have sections, graph attention over the section
graph learns what it adds to this mean, and the run leaves it out where it does harm. The
steps learn from 20,000 documents, or from as many as fill them, evenly spread, and of a
larger corpus the encoder reads only these and those that the tasks score. A judgement
without labels decides whether the run keeps what it trained, the words without the
steps, or the start (docs/does-it-pay.md).
`tune`: the same, and trains all weights of the encoder, on the first four pieces of each
section or half. It was better than `frozen` on one corpus of three, with one seed
(docs/results.md).
`words`: without FOLDER, in a minute: word vectors of the corpus replace a small untrained
encoder, and training keeps similar documents together.

Sizes, in place of a recipe: `small`: a small encoder and its own tokenizer from
scratch, for a corpus on a laptop. `demo`: `words` on the docstrings of the installed
Python packages, in minutes on 2 cores. `smoke`: everything in seconds, nothing learnt.
"""

from ml_collections import ConfigDict

from docjax.config import base, vary

VARIANTS = ("", "frozen", "tune", "words", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Passages", words=100),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.halves.Halves"),
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
        ),
        objective=dict(
            fn="docjax.objectives.infonce.infonce",
            similarity="dot",
            temperature=1.0,
            symmetric=True,
        ),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.1, weight_decay=0.0),
        batch=1536,
        microbatch=256,
        epochs=10,
        evaluate_every=1000,
        checkpoint_every=1000,
        tasks=dict(
            clustering=dict(fn="docjax.tasks.clustering.Clustering"),
            classification=dict(fn="docjax.tasks.classification.Linear"),
        ),
        init="roberta-base",
    )
    recipes, sizes = (frozen, tune, words), (small, demo, smoke)
    return vary(config, variant, recipe=recipes, size=sizes, encoder=recipes + sizes)


def frozen(config: ConfigDict) -> None:
    """The recipe for a user's corpus and encoder; docs/log has what it beat."""
    attention = config.encoder.document.to_dict()
    base().frozen_encoder(config, branch=attention, nested=True)
    config.graph = dict(fn="docjax.data.graphs.section")
    config.units = dict(fn="docjax.data.units.WholeSections")
    config.views = dict(fn="docjax.views.two_parts.TwoParts", tokens=128)
    config.objective = dict(
        fn="docjax.objectives.distillation.Distillation",
        temperature=0.2,
        neighbours=10,
        smoothing=0.5,
        contrast=0.1,
        contrast_temperature=0.1,
    )
    config.optimizer.learning_rate = 1e-3
    config.limits.update(
        segment_tokens=512,  # or what `init` can read
        query_tokens=512,
        training_units=None,
        inference_segments=None,
    )
    config.batch = None  # follows the corpus
    config.microbatch = None  # as many as have 8,192 tokens a device
    config.epochs = None
    config.steps = 60
    config.evaluate_every = 0  # before training and at the end
    config.checkpoint_every = 60
    config.tasks.few_shot = dict(fn="docjax.tasks.few_shot.FewShot")
    config.keep = dict(fn="docjax.keep.Judged")


def tune(config: ConfigDict) -> None:
    """All weights of the encoder, with a small learning rate."""
    frozen(config)
    config.encoder.frozen = "segment/words"
    config.encoder.segment.dropout = 0.0
    config.limits.training_segments = 4
    config.optimizer.learning_rate = 1e-4


def words(config: ConfigDict) -> None:
    """The recipe without a pretrained encoder: its word vectors get all of the share.

    The halves of a text have too few words for a contrast.
    """
    small(config)
    sizes = config.encoder.segment.to_dict()
    frozen(config)
    config.views = dict(fn="docjax.views.whole.Whole")
    config.objective.update(smoothing=0.3, contrast=0.0)
    config.microbatch = 32
    config.steps = config.checkpoint_every = 100
    config.tokenizer.train = dict(
        fn="docjax.data.word_tokenizer.train_words", least_count=None, stop_words=False
    )
    config.limits.update(segment_tokens=1024, query_tokens=1024)
    config.encoder.segment.update(
        sizes | dict(vocabulary=0, positions=1026, layers=1, width=64, words=256)
    )
    config.encoder.document.share = 1.0
    config.keep.least = 1000  # the word vectors need all of fewer documents


def small(config: ConfigDict) -> None:
    """A small encoder from scratch.

    The paper's unscaled dot products need trained vectors: random vectors collapse (the
    loss stays at log batch). Means of tokens compared by cosine learn from the first
    step.
    """
    base().small(config)
    config.objective.update(similarity="cosine", temperature=0.05)


def demo(config: ConfigDict) -> None:
    """`words` on the built-in corpus; what the config runs if no documents are given."""
    words(config)
    config.source = dict(fn=base().PYDOCS)


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    small(config)
    base().smoke(config)
    config.microbatch = 128
