"""CoLDE: sections of a document in chunks, chunk attention, BiLSTM, linked documents.

Jha et al., "Supervised Contrastive Learning for Interpretable Long-Form Document
Matching", 2023: two sections of each document, chunks of 512 tokens that know their place
(section and number), BERT, attention of the chunks of one section to those of the next, a
BiLSTM, and the supervised contrastive loss with temperature 0.5; Adam 5e-5, weight decay
0.01, batches of 75 documents, 25 epochs on the ACL papers (AAN).
Expected (Table 1, F1 and accuracy of matching): AAN .7344 and .7420, Wikipedia .8092 and
.8006, patents .8393 and .8333.

Otherwise than the paper says or leaves open: relatedness is that of linked documents
("links" of the source), so that no set of papers has to share a label; the first token
stands for a chunk, without BERT's pooler; the table of chunk numbers has 10 rows and not
128: training reads 10 chunks of a section, a later one takes the last row, and the rest
would stay random.

  python -m docjax.main --config=configs/colde.py --workdir=runs/colde \
      --config.source.path=papers.jsonl

Variants: `small`, a small encoder and its own tokenizer from scratch; `demo`, that on the
docstrings of the installed Python packages, whose "See Also" are the links; `smoke`,
everything in seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import load, vary

VARIANTS = ("", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = load("graph_roberta")
    config.units = dict(fn="docjax.data.units.Sentences")
    config.segments = dict(fn="docjax.data.segments.Chunks")
    config.examples = dict(fn="docjax.data.examples.Documents", related="links")
    config.views = dict(fn="docjax.views.sections.Sections", count=2)
    config.limits.update(
        segment_tokens=512,
        query_tokens=512,
        training_units=None,
        training_segments=10,
        inference_segments=None,
    )
    config.graph = None
    config.encoder.segment.update(
        vocabulary=30522,
        positions=512,
        position_offset=0,
        types=2,
        epsilon=1e-12,
        sections=2,
        chunks=10,
    )
    config.encoder.document = dict(
        fn="docjax.encoders.chunks.ChunkEncoder",
        width=256,
        heads=4,
        hidden=512,
        attention="literal",
        dropout=0.1,
    )
    config.objective = dict(
        fn="docjax.objectives.supervised_contrastive.supervised_contrastive",
        temperature=0.5,
        by="document",
    )
    config.optimizer.update(
        learning_rate=5e-5, warmup=0.0, weight_decay=0.01, decay=False
    )
    config.batch = 75
    config.microbatch = 75
    config.epochs = 25
    config.evaluate_every = config.checkpoint_every = None
    config.tasks = dict(
        matching=dict(fn="docjax.tasks.matching.Matching", path=placeholder(str))
    )
    config.init = "bert-base-uncased"
    return vary(config, variant, small, demo, smoke)


def small(config: ConfigDict) -> None:
    """A small encoder from scratch; from random weights, means of tokens learn sooner.

    From random weights chunk attention teaches a section to recognise the other one by
    what it has read there, and little else (docs/trials.md): it is left out.
    """
    own = load("graph_roberta", variant="small")
    config.encoder.segment.update(own.encoder.segment)
    config.encoder.segment.update(positions=514, position_offset=2, types=1)
    config.encoder.document.update(width=128, hidden=128, attention="none")
    config.objective.temperature = 0.1
    for name in ("tokenizer", "batch", "microbatch", "epochs", "init", "log_every"):
        config[name] = own[name]
    config.optimizer.learning_rate = 1e-3


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    config.encoder.segment.layers = 1
    config.source = load("graph_roberta", variant="demo").source
    config.limits.segment_tokens = 128
    config.batch = 64
    config.microbatch = 8
    config.epochs = 4


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus, with links."""
    demo(config)
    own = load("graph_roberta", variant="smoke")
    config.source.packages = ("numpy",)
    for name in ("tokenizer", "batch", "steps", "epochs", "log_every"):
        config[name] = own[name]
    config.checkpoint_every = own.checkpoint_every
    config.encoder.segment.update(own.encoder.segment)
    config.encoder.document.update(width=32, hidden=32, attention="literal")
