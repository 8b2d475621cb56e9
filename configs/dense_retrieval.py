"""A dense retriever of long documents: queries, documents that answer them, negatives.

graph-roberta fine-tuned for retrieval (Xu et al., 2021, section 3.3): a query is a
single node, and a document is a graph of passages. The loss is a softmax over the
answers and the negatives of all queries of the batch, in one direction, with plain dot
products. The paper's MS MARCO run: batches of 128, 10 epochs, 5e-5, warm-up 0.1, one
negative for each query, first from the first 100 documents of BM25, then from those of
the model itself.
Expected (Table 4): MRR@100 of MS MARCO documents 34.85 %, with BM25 37.60 %.

  pip install 'docjax[retrieval]'
  docjax mine bm25 --data msmarco --output negatives.jsonl
  python -m docjax.main --config=configs/dense_retrieval.py --workdir=runs/dense \
      --config.source.path=msmarco/corpus.jsonl --config.examples.path=msmarco \
      --config.tasks.retrieval.path=msmarco \
      --config.examples.negatives=negatives.jsonl --config.init=runs/retrieval
  docjax mine runs/dense --data msmarco --output own.jsonl

The last command mines the negatives of a second run, which takes `init=runs/dense`.
Without `examples.path` (training) and `tasks.retrieval.path` (evaluation) the queries
are the `query` fields of the documents. Without `examples.negatives` BM25 mines the
negatives before the first step.

Variants: `small`: a small encoder and its own tokenizer from scratch. `demo`: `small`
on the docstrings of the installed Python packages; their summary lines are the queries,
and their "See Also" name further answers. `smoke`: everything in seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import load, vary

VARIANTS = ("", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = load("graph_roberta")
    config.examples = dict(
        fn="docjax.retrieval.judged_queries.JudgedQueries",
        path=placeholder(str),
        negatives=placeholder(str),
        each=1,
    )
    config.views = dict(fn="docjax.views.whole.Whole")
    config.objective.symmetric = False
    config.batch = 128
    config.microbatch = 128
    config.evaluate_every = config.checkpoint_every = None
    config.tasks = dict(
        retrieval=dict(fn="docjax.tasks.retrieval.Retrieval", path=placeholder(str))
    )
    return vary(config, variant, small, demo, smoke)


def small(config: ConfigDict) -> None:
    """A small encoder from scratch, compared by cosine."""
    graph_roberta = load("graph_roberta", variant="small")
    config.encoder.update(graph_roberta.encoder)
    config.objective.update(similarity="cosine", temperature=0.05)
    for name in ("tokenizer", "batch", "microbatch", "epochs", "init", "log_every"):
        config[name] = graph_roberta[name]
    config.optimizer.learning_rate = 1e-3


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    config.encoder.segment.layers = 1
    config.source = load("graph_roberta", variant="demo").source
    config.batch = 64
    config.microbatch = 8
    config.epochs = 1


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    demo(config)
    graph_roberta = load("graph_roberta", variant="smoke")
    for name in ("source", "tokenizer", "batch", "steps", "epochs", "log_every"):
        config[name] = graph_roberta[name]
    config.checkpoint_every = graph_roberta.checkpoint_every
    config.encoder.update(graph_roberta.encoder)
    config.limits.segment_tokens = graph_roberta.limits.segment_tokens
