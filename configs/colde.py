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

Variants by data set: `aan`: papers with "links", of which a tenth each tests and chooses
the threshold. `acl`: papers with a table of pairs. Neither reads "Abstract" and
"References", as in the paper. `wiki`: articles with a table of pairs, 35 epochs.
`patents`: claims and description, with a table, 200 epochs; scored vectors read every
section but "Abstract".
By size: `small`: a small encoder and its own tokenizer from scratch, without places and
chunk attention, temperature 0.1. `demo`: `small` on the docstrings of the installed
Python packages, linked by "See Also". `smoke`: everything in seconds.

The paper's ablations: `acl,no_sections` (w/o Aug: a document is one view), `acl,no_lstm`
(the mean of the chunks, no chunk attention) and `acl,no_contrast` (w/o CL: the cosine of
labelled pairs). Its studies: `tokens1000`, `tokens4000` and `tokens8000` (tokens of a
section in training), `sections3`, `sections4` and `sections5` (not with `patents` and the
ablations without sections), `batch50`, `batch100` and `batch200`, and `shuffled`, which
scores documents with their sections, and with their chunks, in random order too; all go
with a data set and with each other, as in `acl,sections5` and `acl,no_lstm,tokens4000`.

`encoder.frozen` "segment/(?!embeddings/(sections|chunks))" freezes BERT, but not the
tables of places, which begin at random;
"segment/(?!layer_11/|embeddings/(sections|chunks))" leaves out its last layer too.

Recipes: `beside_mean`, as in `acl,small,beside_mean`: the vector begins as the mean of the
chunks, and CoLDE's layers begin at zero beside it (docs/results.md).
`frozen`, as in `acl,frozen`, also with further names but sizes and `tokens...`, as in
`acl,no_contrast,frozen`: the encoder in FOLDER reads all texts once and is not trained.
It reads passages of at most 350 words, in pieces of at most its length. The vector of a
document begins as the mean of their vectors. Word vectors of the corpus stand beside it,
with a share that the texts choose, as in `graph_roberta:frozen`. CoLDE's layers begin at
zero. Passages know no places.
"""

from collections.abc import Callable

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import base, vary

VARIANTS = (
    *("", "aan", "acl", "wiki", "patents", "small", "demo", "smoke"),
    *("acl,no_sections", "acl,no_lstm", "acl,no_contrast", "acl,shuffled"),
    *("acl,tokens4000", "acl,sections5", "acl,batch100"),
    *("acl,frozen", "acl,no_contrast,frozen", "acl,small,beside_mean"),
)
WHOLE = "docjax.views.whole.Whole"
NOT_READ = "Abstract", "References"  # sections of papers


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Sentences"),
        examples=dict(
            fn="docjax.data.examples.Documents", related="links", path=placeholder(str)
        ),
        views=dict(fn="docjax.views.sections.Sections", count=2),
        segments=dict(fn="docjax.data.segments.Chunks"),
        limits=dict(segment_tokens=512, query_tokens=512, training_segments=10),
        encoder=dict(
            segment=base().bert(sections=2, chunks=10),
            document=dict(
                fn="docjax.encoders.chunks.ChunkEncoder",
                width=256,
                heads=4,
                hidden=512,
                attention="literal",
                dropout=0.1,
            ),
        ),
        objective=dict(
            fn="docjax.objectives.supervised_contrastive.supervised_contrastive",
            temperature=0.5,
            by="document",
        ),
        optimizer=base().adamw(
            learning_rate=5e-5, warmup=0.0, weight_decay=0.01, decay=False
        ),
        batch=75,
        epochs=25,
        tasks=dict(matching=dict(fn="docjax.tasks.matching.Matching")),
        init="bert-base-uncased",
    )
    # The table of the examples, unless the task gets a table of its own.
    config.tasks.matching.path = config.examples.get_oneway_ref("path")
    sizes = small, demo, smoke
    return vary(
        config,
        variant,
        size=sizes,
        data_set=(aan, acl, wiki, patents, demo, smoke),
        recipe=(frozen, beside_mean),
        encoder=(frozen, *sizes),
        # Only two views of any sections become three, four or five.
        sections=(no_sections, *SECTIONS),
        views=(patents, *SECTIONS),
        pairs=(no_contrast, *SECTIONS),
        layers=(no_lstm,),
        tokens=(frozen, *TOKENS),
        batch=BATCHES,
        study=(shuffled,),
    )


def aan(config: ConfigDict) -> None:
    """Papers with "links"."""
    config.source.without = NOT_READ
    config.holdout = dict(fn="docjax.data.splits.holdout", test=0.1, validation=0.1)
    config.splits.validation = "validation"


def acl(config: ConfigDict) -> None:
    """Papers whose similar pairs stand in a table."""
    config.source.without = NOT_READ
    _pairs_of_table(config)


def wiki(config: ConfigDict) -> None:
    """Articles whose similar pairs stand in a table."""
    _pairs_of_table(config)
    config.epochs = 35


def patents(config: ConfigDict) -> None:
    """The claims and the description of patents, with pairs in a table."""
    config.source.without = ("Abstract",)
    _pairs_of_table(config)
    if config.views.fn != WHOLE:
        config.views = dict(
            fn="docjax.views.sections.NamedSections", names=("claims", "description")
        )
    config.epochs = 200


def _pairs_of_table(config: ConfigDict) -> None:
    if "related" in config.examples:  # not those of `no_contrast`, which are pairs
        config.examples.related = "pairs"


def no_sections(config: ConfigDict) -> None:
    """w/o Aug: one view, which knows no places, with as much text as two sections."""
    if config.views.fn == WHOLE:
        return
    for name in ("training_segments", "training_tokens"):
        if most := config.limits.get(name):
            config.limits[name] = 2 * most
    config.views = dict(fn=WHOLE)
    config.encoder.segment.update(sections=0, chunks=0)
    _layers(config).attention = "none"


def no_lstm(config: ConfigDict) -> None:
    """w/o LSTM: the mean of the chunks, without attention between sections."""
    _layers(config).update(hidden=0, attention="none")


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
    config.encoder.document = dict(
        fn="docjax.encoders.from_mean.FromMean",
        branch=config.encoder.document.to_dict(),
        normalize=True,
        turn=True,
    )


def frozen(config: ConfigDict) -> None:
    """Passages that the encoder reads once, and layers beside their mean."""
    base().frozen_encoder(config, branch=config.encoder.document.to_dict())
    config.encoder.segment.update(sections=0, chunks=0)
    config.units = dict(fn="docjax.data.units.Passages", words=350)
    config.segments = dict(fn="docjax.data.segments.OneEach")
    config.limits.training_segments = None
    config.optimizer.learning_rate = 1e-3
    config.evaluate_every = 0  # before training and at the end


def _layers(config: ConfigDict) -> ConfigDict:
    """CoLDE's own document encoder, also beside a mean."""
    document = config.encoder.document
    return document.get("branch", document)


def _tokens(most: int) -> Callable[[ConfigDict], None]:
    """`most` tokens of a section in training; a whole document is two sections."""

    def study(config: ConfigDict) -> None:
        views = 1 if config.views.fn == WHOLE else 2
        config.limits.update(training_tokens=2 * most // views, training_segments=None)
        if config.encoder.segment.chunks:
            config.encoder.segment.chunks = -(-most // 510)

    study.__name__ = f"tokens{most}"
    return study


def _sections(count: int) -> Callable[[ConfigDict], None]:
    """`count` sections of a document in training."""

    def study(config: ConfigDict) -> None:
        config.views.count = count
        if config.encoder.segment.sections:
            config.encoder.segment.sections = count

    study.__name__ = f"sections{count}"
    return study


def _batch(size: int) -> Callable[[ConfigDict], None]:
    def study(config: ConfigDict) -> None:
        config.batch = size

    study.__name__ = f"batch{size}"
    return study


TOKENS = tuple(map(_tokens, (1000, 4000, 8000)))
SECTIONS = tuple(map(_sections, (3, 4, 5)))
BATCHES = tuple(map(_batch, (50, 100, 200)))


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
    base().small(config)
    _sizes(config, 128)
    config.encoder.segment.update(sections=0, chunks=0)
    _layers(config).attention = "none"
    config.checkpoint_every = None  # each epoch


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    base().demo(config)
    config.limits.segment_tokens = 128
    config.microbatch = 8
    config.checkpoint_every = None


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus, with links; with places and attention."""
    base().smoke(config)
    _sizes(config, 32)
    config.source = dict(fn=base().PYDOCS, packages=("numpy",))
    config.limits.segment_tokens = 64  # few widths to compile
    config.microbatch = 8


def _sizes(config: ConfigDict, width: int) -> None:
    layers = _layers(config)
    layers.update(width=width, hidden=min(width, layers.hidden))
    if "temperature" in config.objective:
        config.objective.temperature = 0.1
