"""CoLDE: sections of a document in chunks, chunk attention, BiLSTM, linked documents.

Jha et al., "Supervised Contrastive Learning for Interpretable Long-Form Document
Matching", 2023: two sections of each document, chunks of 512 tokens that know their
place (section and number), BERT, attention from the chunks of one section to the chunks
of the next section, a BiLSTM, and the supervised contrastive loss with temperature 0.5;
Adam 5e-5, weight decay 0.01, batches of 75, 25 epochs on the ACL papers (AAN).
Expected (Table 1, F1 and accuracy of matching): AAN .7344 and .7420, Wikipedia .8092
and .8006, patents .8393 and .8333.

Departures from the paper, and choices that it leaves open: two documents are related if
one links to the other ("links" of the source) or a table of pairs calls them similar,
so that papers need no labels; a batch has related documents together, since 75 random
papers have few. The first token is the vector of a chunk, without BERT's pooler and its
dropout, and `encoder.segment.attention_dropout` is 0 (BERT drops 0.1). The table of
chunk numbers has 10 rows, not 128: training reads 10 chunks of a section, and other
rows would stay random. A later chunk takes the last row.

  python -m docjax.main --config=configs/colde.py:acl --workdir=runs/colde \
      --config.source.path=papers.jsonl.xz --config.examples.path=pairs.tsv \
      --config.init=FOLDER

Variants, by corpus: `aan`: papers with "links", of which a tenth each tests and chooses the
threshold. `acl`: papers with a table of pairs. Neither reads "Abstract" and "References", as
in the paper. `wiki`: articles with a table of pairs, 35 epochs. `patents`: claims and
description, with a table, 200 epochs; scored vectors read every section but "Abstract".
`small`: a small encoder and its own tokenizer from scratch, without places and chunk
attention, temperature 0.1. `acl,small,beside_mean`: the vector begins as the mean of
the chunks, and CoLDE's layers begin at zero beside it (docs/results.md). `demo`:
`small` on the docstrings of the installed Python packages, linked by "See Also".
`smoke`: everything in seconds.

The paper's ablations: `acl,no_sections` (w/o Aug: a document is one view), `acl,no_lstm`
(the mean of the chunks, no chunk attention) and `acl,no_contrast` (w/o CL: the cosine of
labelled pairs). Its studies: `tokens1000`, `tokens4000` and `tokens8000` (tokens of a
section in training), `sections3`, `sections4` and `sections5` (not with `patents` and the
ablations without sections), `batch50`, `batch100` and `batch200`, and `shuffled`, which
scores documents with their sections, and with their chunks, in random order too; all go
with a corpus, as in `acl,sections5`. `encoder.frozen`
"segment/(?!embeddings/(sections|chunks))" freezes BERT, but not the tables of places,
which begin at random; "segment/(?!layer_11/|embeddings/(sections|chunks))" leaves out its
last layer too.

`acl,frozen`, also with further names but `tokens...`, as in `acl,no_contrast,frozen`:
the encoder in FOLDER reads all texts once and is not trained. It reads passages of at
most 350 words, in pieces of at most its length. The vector of a document begins as the
mean of their vectors. Word vectors of the corpus stand beside it, with a share that the
texts choose, as in `graph_roberta:frozen`. CoLDE's layers begin at zero. Passages know
no places.
"""

from collections.abc import Callable

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import load, vary
from docjax.errors import UserError

VARIANTS = (
    *("", "aan", "acl", "wiki", "patents", "small", "demo", "smoke"),
    *("acl,no_sections", "acl,no_lstm", "acl,no_contrast", "acl,shuffled"),
    *("acl,tokens4000", "acl,sections5", "acl,batch100"),
    *("acl,frozen", "acl,no_contrast,frozen", "acl,small,beside_mean"),
)
WHOLE = "docjax.views.whole.Whole"
NOT_READ = "Abstract", "References"  # sections of papers


def get_config(variant: str = "") -> ConfigDict:
    config = load("graph_roberta")
    config.units = dict(fn="docjax.data.units.Sentences")
    config.segments = dict(fn="docjax.data.segments.Chunks")
    config.examples = dict(
        fn="docjax.data.examples.Documents", related="links", path=placeholder(str)
    )
    config.views = dict(fn="docjax.views.sections.Sections", count=2)
    config.limits.update(
        segment_tokens=512,
        query_tokens=512,
        training_units=None,
        training_segments=10,
        inference_segments=None,
    )
    config.graph = placeholder(object)
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
    config.microbatch = placeholder(int)  # as many as have 8,192 tokens a device
    config.epochs = 25
    config.evaluate_every = config.checkpoint_every = None
    config.tasks = dict(matching=dict(fn="docjax.tasks.matching.Matching"))
    # The table of the examples, unless the task gets a table of its own.
    config.tasks.matching.path = config.examples.get_oneway_ref("path")
    config.init = "bert-base-uncased"
    return vary(
        config,
        variant,
        *(aan, acl, wiki, patents, small, demo, smoke, *STUDIES),
        *(no_sections, no_lstm, no_contrast, beside_mean, shuffled, frozen),
    )


def aan(config: ConfigDict) -> None:
    """Papers with "links"."""
    config.source = config.source.to_dict() | {"without": NOT_READ}
    config.holdout = ConfigDict(
        dict(fn="docjax.data.splits.holdout", test=0.1, validation=0.1)
    )
    config.splits.validation = "validation"


def acl(config: ConfigDict) -> None:
    """Papers whose similar pairs stand in a table."""
    config.source = config.source.to_dict() | {"without": NOT_READ}
    config.examples.related = "pairs"


def wiki(config: ConfigDict) -> None:
    """Articles whose similar pairs stand in a table."""
    config.examples.related = "pairs"
    config.epochs = 35


def patents(config: ConfigDict) -> None:
    """The claims and the description of patents, with pairs in a table."""
    config.source = config.source.to_dict() | {"without": ("Abstract",)}
    config.examples.related = "pairs"
    config.views = dict(
        fn="docjax.views.sections.NamedSections", names=("claims", "description")
    )
    config.epochs = 200


def no_sections(config: ConfigDict) -> None:
    """w/o Aug: one view, which knows no places, with as much text as two sections."""
    if config.views.fn == WHOLE:
        return
    if config.views.get("count", 2) != 2:
        raise UserError(
            f"no_sections reads documents whole, sections{config.views.count} makes "
            f"{config.views.count} views: give one of the two"
        )
    for name in ("training_segments", "training_tokens"):
        if most := config.limits.get(name):
            config.limits[name] = 2 * most
    config.views = dict(fn=WHOLE)
    config.encoder.segment.update(sections=0, chunks=0)
    config.encoder.document.attention = "none"


def no_lstm(config: ConfigDict) -> None:
    """w/o LSTM: the mean of the chunks, without attention between sections."""
    config.encoder.document.update(hidden=0, attention="none")


def no_contrast(config: ConfigDict) -> None:
    """w/o CL: 1 - cosine of similar pairs, the cosine above 0 of other pairs."""
    no_sections(config)
    config.examples = dict(
        fn="docjax.data.examples.Pairs", path=placeholder(str), dissimilar=True
    )
    for task in config.tasks.values():
        task.path = config.examples.get_oneway_ref("path")
    config.objective = dict(
        fn="docjax.objectives.pair_similarity.pair_similarity", margin=0.0
    )


def beside_mean(config: ConfigDict) -> None:
    """The mean of the chunks, turned, and CoLDE's layers beside it, from zero."""
    branch = config.encoder.document.to_dict()
    config.encoder.document = dict(
        fn="docjax.encoders.from_mean.FromMean",
        branch=branch,
        normalize=True,
        turn=True,
    )


def frozen(config: ConfigDict) -> None:
    """Passages that the encoder reads once, and layers beside their mean."""
    recipe = load("graph_roberta", variant="frozen")
    config.init = None  # the user's
    config.units = dict(fn="docjax.data.units.Passages", words=350)
    config.segments = dict(fn="docjax.data.segments.OneEach")
    config.limits.training_segments = None
    config.encoder.frozen = recipe.encoder.frozen
    words = recipe.encoder.segment.words
    config.encoder.segment.update(pooling=None, dtype="float32", words=words)
    config.encoder.segment.update(sections=0, chunks=0)
    branch = config.encoder.document.to_dict()
    branch = branch.get("branch", branch)  # of `beside_mean`
    config.encoder.document = recipe.encoder.document
    config.encoder.document.branch = branch
    config.optimizer.learning_rate = recipe.optimizer.learning_rate
    config.evaluate_every = recipe.evaluate_every


def _study(name: str, **fields) -> Callable[[ConfigDict], None]:
    """Sets the fields; None leaves a number out. An encoder without places stays so."""

    def study(config: ConfigDict) -> None:
        given = fields | {name: placeholder(int) for name in fields if not fields[name]}
        if not config.encoder.segment.sections:
            for place in ("sections", "chunks"):
                given.pop(f"encoder.segment.{place}", None)
        config.update_from_flattened_dict(given)

    study.__name__ = name
    return study


def _tokens(most: int) -> Callable[[ConfigDict], None]:
    fields = {
        "limits.training_tokens": most,
        "limits.training_segments": None,
        "encoder.segment.chunks": -(-most // 510),
    }
    return _study(f"tokens{most}", **fields)


def _sections(count: int) -> Callable[[ConfigDict], None]:
    fields = {"views.count": count, "encoder.segment.sections": count}
    return _study(f"sections{count}", **fields)


STUDIES = (
    *map(_tokens, (1000, 4000, 8000)),
    *map(_sections, (3, 4, 5)),
    *(_study(f"batch{size}", batch=size) for size in (50, 100, 200)),
)


def shuffled(config: ConfigDict) -> None:
    """Also scores documents with their sections, or their chunks, in random order.

    Before training and at the end: the documents are encoded for each order.
    """
    config.evaluate_every = 0
    for pieces in ("sections", "segments"):
        config.tasks[f"shuffled_{pieces}"] = dict(
            fn="docjax.tasks.matching.Matching",
            path=config.examples.get_oneway_ref("path"),
            shuffled=pieces,
        )


def small(config: ConfigDict) -> None:
    """A small encoder from scratch: from random weights, token means learn sooner.

    Without chunk attention: a section that attends to the other section recognises its
    pair by what it has read, and learns little else from random weights. Without places:
    beside the mean of random token vectors they are all that a section's vector says.
    """
    graph_roberta = load("graph_roberta", variant="small")
    config.encoder.segment.update(graph_roberta.encoder.segment)
    sizes = dict(positions=514, position_offset=2, types=1, sections=0, chunks=0)
    config.encoder.segment.update(sizes)
    config.encoder.document.update(width=128, hidden=128, attention="none")
    config.objective.temperature = 0.1
    for name in ("tokenizer", "batch", "microbatch", "epochs", "init", "log_every"):
        config[name] = graph_roberta[name]
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
    graph_roberta = load("graph_roberta", variant="smoke")
    config.source.packages = ("numpy",)
    for name in ("tokenizer", "batch", "steps", "epochs", "log_every"):
        config[name] = graph_roberta[name]
    config.checkpoint_every = graph_roberta.checkpoint_every
    config.encoder.segment.update(graph_roberta.encoder.segment)
    config.encoder.segment.update(sections=2, chunks=10)
    config.encoder.document.update(width=32, hidden=32, attention="literal")
    config.limits.segment_tokens = 64  # few widths to compile
