"""graph-roberta pre-trained for retrieval: one passage is a query for the rest.

Xu et al., 2021, section 3.3: the query is the first passage with probability 0.5,
otherwise any passage; for each query a softmax over the documents of the batch; 10
epochs in batches of 1,024 documents of OpenWebText, Adam 5e-5, warm-up 0.1.

  python -m docjax.main --config=configs/retriever_pretraining.py \
      --workdir=runs/pretrained --config.source.path='openwebtext/*.jsonl.zst'

`frozen`, a recipe for your own collection: as `retriever.py:frozen`, which may then take
this run as its `init`.

  python -m docjax.main --config=configs/retriever_pretraining.py:frozen \
      --config.init=FOLDER --config.source.path=mine/corpus.jsonl \
      --config.tasks.retrieval.path=mine

Sizes, in place of the recipe: `small`, `demo` and `smoke`, as in `graph_roberta.py`.
"""

from ml_collections import ConfigDict

from docjax.config import base, load, vary

VARIANTS = ("", "frozen", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Passages", words=100),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.one_against_rest.OneAgainstRest", first=0.5),
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
            symmetric=False,
        ),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.1, weight_decay=0.0),
        batch=1024,
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
    sizes = small, demo, smoke
    return vary(config, variant, recipe=(frozen,), size=sizes, encoder=(frozen, *sizes))


def frozen(config: ConfigDict) -> None:
    """A user's sentence encoder reads the documents once."""
    retriever = load("retriever:frozen")
    config.units = dict(fn="docjax.data.units.Whole")
    config.graph = None
    config.limits.update(
        segment_tokens=512,  # or what `init` can read
        training_units=None,
        inference_segments=None,
    )
    base().frozen_encoder(config)
    config.objective.update(similarity="cosine", temperature=0.05)
    config.optimizer.learning_rate = 3e-4
    config.batch = config.microbatch = None
    config.epochs = None
    config.steps = 200
    config.evaluate_every = config.checkpoint_every = 40
    config.splits.validation = "validation"
    config.tasks = retriever.tasks
    config.keep = retriever.keep


def small(config: ConfigDict) -> None:
    base().small(config)
    config.objective.update(similarity="cosine", temperature=0.05)


def demo(config: ConfigDict) -> None:
    """The built-in corpus, one epoch."""
    small(config)
    base().demo(config)
    config.epochs = 1


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    small(config)
    base().smoke(config)
    config.microbatch = 128
