"""A dense retriever of long documents: queries, documents that answer them, negatives.

graph-roberta fine-tuned for retrieval (Xu et al., 2021, section 3.3): a query is a
single node, and a document is a graph of passages. The loss is a softmax over the
answers and the negatives of all queries of the batch, in one direction, with plain dot
products. The paper trains after `retriever_pretraining.py`; Adam, 5e-5, warm-up 0.1.

  pip install 'docjax[retrieval]'
  docjax mine bm25 --data msmarco --output negatives.jsonl
  python -m docjax.main --config=configs/retriever.py:msmarco --workdir=runs/first \
      --config.source.path=msmarco/corpus.tsv --config.examples.path=msmarco \
      --config.tasks.retrieval.path=msmarco \
      --config.examples.negatives=negatives.jsonl --config.init=runs/pretrained
  docjax mine runs/first --data msmarco --output own.jsonl

The last command mines the negatives of a second run, which takes `init=runs/first`.
Both steps can be repeated, as ANCE does. Without `examples.path` (training) and
`tasks.retrieval.path` (evaluation) the queries are the `query` fields of the documents.
Without `examples.negatives` BM25 mines the negatives before the first step;
"uniform" takes any documents.

`msmarco/` has corpus.tsv and queries.tsv as Microsoft gives them (id, url, title, body;
id, text), qrels/train.qrels, and the judgements of the dev queries or of TREC DL 2019
as qrels/test.qrels.

Variants by data set, with the paper's values where it gives them: `msmarco`: batches of
128, 5 epochs a run, one negative; rate and warm-up are ours, and start anew in the
second run, where the paper trains on; 100 training queries choose the fusion's weight,
as many as the paper holds out; expected (Table 4) MRR@100 34.85 %, with BM25 37.60 %, of
the dev queries; its nDCG@10 is of TREC DL 2019. `robust04`: batches of 32, 10 epochs, 8
uniform negatives, five runs with --workdir=runs/robust04_K, --config.examples.fold=K and
--config.tasks.retrieval.fold=K (0 to 4), each testing on its fold (K is fold K + 1 of
ir-datasets); expected (Table 3) nDCG@20 20.02 %, with BM25 43.90 %, over all folds (its
P@20 of 23.89 %, above the nDCG@20, may be a misprint):

  cat runs/robust04_*/retrieval/fused.trec > fused.trec
  docjax evaluate fused.trec --task retrieval --data robust04

`wikir` (queries are titles) and `wikirs` (first sentences): batches of 128, 5 epochs,
2e-5, one negative of BM25; expected: Table 5, whose BM25 is
probably --config.tasks.retrieval.words=wikir; its section graph is
--config.graph.fn=docjax.data.graphs.section.

Recipes: the paper's baselines, as in --config=configs/retriever.py:msmarco,ance_maxp:
`de`, one vector of the first 512 tokens; `me`, the best of 8 vectors, here of 8 segments
of 64 tokens; `ance_firstp` and `ance_maxp`, the first segment and the best of four, each of 512
tokens. Departures: they have this config's loss over the batch, warm-up and AdamW, and
begin with its RoBERTa, where Luan et al. have BERT. ANCE trains on pairs with one
negative each, from its own first 200 (`docjax mine --top 200`), by LAMB. An example
keeps its `each` negatives in all epochs.

The recipe for your own collection, `frozen`: a transformer such as a sentence encoder
reads the documents once; what is trained begins as the mean of its vectors, with word
vectors of the corpus. Of 200 steps the run keeps the best of six evaluations, perhaps
the start, by queries that choose: those of qrels/dev.tsv, or each tenth training query.
Queries of the documents themselves need documents of the split "validation". Data sets
of this recipe: `cisi`, `cranfield`: `frozen` on the first fold of the queries, for
collections without training queries. `nfcorpus`: `frozen` on the split "train".

  python -m docjax.main --config=configs/retriever.py:frozen --config.init=FOLDER \
      --config.source.path=mine/corpus.jsonl --config.examples.path=mine \
      --config.tasks.retrieval.path=mine

A collection of ir-datasets has a source of its own; where a dataset has no part called
test, the task takes another part, as
`tasks.retrieval.path=ir-datasets:msmarco-document/dev`:

  python -m docjax.main --config=configs/retriever.py:nfcorpus --config.init=FOLDER \
      --config.source='{"fn": "docjax.data.sources.ir_datasets.ir_datasets",
                        "name": "beir/nfcorpus"}' \
      --config.examples.path=ir-datasets:beir/nfcorpus \
      --config.tasks.retrieval.path=ir-datasets:beir/nfcorpus

Sizes: `small`: a small encoder and its own tokenizer from scratch, also of a baseline.
`demo`: `small` on the docstrings of the installed Python packages; their summary lines
are the queries, and their "See Also" name further answers. `smoke`: everything in
seconds.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import base, vary

VARIANTS = (
    *("", "msmarco", "robust04", "wikir", "wikirs"),
    *("de", "me", "ance_firstp", "ance_maxp"),
    *("frozen", "cisi", "cranfield", "nfcorpus", "small", "demo", "smoke"),
)


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Passages", words=100),
        examples=dict(
            fn="docjax.retrieval.judged_queries.JudgedQueries",
            path=placeholder(str),
            fold=placeholder(int),
            negatives=placeholder(str),
            each=1,
            words="docjax",
        ),
        views=dict(fn="docjax.views.whole.Whole"),
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
        batch=128,
        microbatch=128,
        epochs=10,
        tasks=dict(
            retrieval=dict(
                fn="docjax.tasks.retrieval.Retrieval",
                path=placeholder(str),
                max_bad_fraction=0.0,
                fold=placeholder(int),
                passages=False,
                words="docjax",
            )
        ),
        init="roberta-base",
    )
    published, own = (msmarco, robust04, wikir, wikirs), (cisi, cranfield, nfcorpus)
    sizes = small, demo, smoke
    return vary(
        config,
        variant,
        size=sizes,
        data_set=(*published, *own, demo, smoke),
        recipe=(de, me, ance_firstp, ance_maxp, frozen, *own),
        encoder=(frozen, *own, *sizes),
    )


def msmarco(config: ConfigDict) -> None:
    """The first of the paper's two runs; the second mines its own negatives."""
    config.epochs = 5
    config.report.published = {
        "BM25": {"mrr@100": 0.2587, "ndcg@10": 0.5297},
        "DE-Hybrid-E": {"mrr@100": 0.2870, "ndcg@10": 0.5950},
        "ME-Hybrid-E": {"mrr@100": 0.3100, "ndcg@10": 0.6100},
        "ANCE FirstP": {"mrr@100": 0.3740, "ndcg@10": 0.6150},
        "ANCE MaxP": {"mrr@100": 0.3838},
        "graph-roberta without pre-training": {"mrr@100": 0.3369, "ndcg@10": 0.5095},
        "graph-roberta": {"mrr@100": 0.3485, "ndcg@10": 0.5405},
        "graph-roberta + BM25": {"mrr@100": 0.3760, "ndcg@10": 0.6144},
    }


def robust04(config: ConfigDict) -> None:
    config.batch = config.microbatch = 32
    config.epochs = 10
    config.examples.update(negatives="uniform", each=8, fold=0)
    config.tasks.retrieval.fold = 0
    config.report.published = {
        "BM25": {"ndcg@20": 0.4163, "p@20": 0.3568},
        "graph-roberta without pre-training": {"ndcg@20": 0.1397, "p@20": 0.1139},
        "graph-roberta": {"ndcg@20": 0.2002, "p@20": 0.2389},
        "graph-roberta + BM25": {"ndcg@20": 0.4390, "p@20": 0.3721},
    }


def wikir(config: ConfigDict) -> None:
    """WIKIR62K: queries are titles."""
    rows = {
        "BM25": (0.2866, 0.2217, 0.1662),
        "MatchPyramid": (0.2076, 0.1683, 0.1311),
        "ConvKNRM": (0.1746, 0.1487, 0.1216),
        "graph-roberta without pre-training": (0.2068, 0.1666, 0.1286),
        "graph-roberta": (0.2298, 0.1846, 0.1419),
        "graph-roberta + BM25": (0.3938, 0.3052, 0.2198),
        "section graph without pre-training": (0.2016, 0.1607, 0.1256),
        "section graph": (0.2332, 0.1869, 0.1416),
        "section graph + BM25": (0.3970, 0.3064, 0.2213),
    }
    _wikipedia(config, rows)


def wikirs(config: ConfigDict) -> None:
    """WIKIRS62K: queries are first sentences."""
    rows = {
        "BM25": (0.2220, 0.1674, 0.1265),
        "MatchPyramid": (0.2074, 0.1676, 0.1289),
        "ConvKNRM": (0.1894, 0.1651, 0.1305),
        "graph-roberta without pre-training": (0.2092, 0.1739, 0.1351),
        "graph-roberta": (0.2402, 0.1965, 0.1539),
        "graph-roberta + BM25": (0.3524, 0.2753, 0.1974),
        "section graph without pre-training": (0.2198, 0.1793, 0.1386),
        "section graph": (0.2378, 0.1978, 0.1527),
        "section graph + BM25": (0.3540, 0.2745, 0.1986),
    }
    _wikipedia(config, rows)


def _wikipedia(config: ConfigDict, rows: dict[str, tuple[float, ...]]) -> None:
    """The values of the paper for WIKIR, and P@5, 10 and 20 of its Table 5."""
    config.epochs = 5
    config.optimizer.learning_rate = 2e-5
    metrics = "p@5", "p@10", "p@20"
    config.report.published = {
        name: dict(zip(metrics, values, strict=True)) for name, values in rows.items()
    }


def de(config: ConfigDict) -> None:
    """A dual encoder: the first tokens of query and document (Luan et al., 2021)."""
    _first_segments(config, parts=1, tokens=512, projected=False)
    config.epochs = 5


def me(config: ConfigDict) -> None:
    """Several vectors of a document (Luan et al., 2021), here of its first segments."""
    _first_segments(config, parts=8, tokens=64, projected=False)
    config.epochs = 5


def ance_firstp(config: ConfigDict) -> None:
    """ANCE (Xiong et al., 2021); `docjax mine` refreshes the negatives."""
    _first_segments(config, parts=1, tokens=512, projected=True)
    config.epochs = 5
    config.optimizer.learning_rate = 5e-6


def ance_maxp(config: ConfigDict) -> None:
    _first_segments(config, parts=4, tokens=512, projected=True)
    config.epochs = 5
    config.optimizer.learning_rate = 1e-5


def _first_segments(
    config: ConfigDict, parts: int, tokens: int, projected: bool
) -> None:
    config.units = dict(fn="docjax.data.units.Whole")
    config.graph = None
    config.encoder.document = dict(
        fn="docjax.encoders.first_segments.FirstSegments",
        parts=parts,
        projected=projected,
    )
    config.objective.parts = parts
    config.limits.update(
        segment_tokens=tokens, training_units=parts, inference_segments=parts
    )


def frozen(config: ConfigDict) -> None:
    """A user's sentence encoder reads the documents once; docs/log has more."""
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
    config.batch = None  # follows the corpus
    config.microbatch = None  # as many as have 8,192 tokens a device
    config.epochs = None
    config.steps = 200
    config.evaluate_every = config.checkpoint_every = 40
    config.splits.validation = "validation"  # these queries choose among the steps
    config.keep = dict(fn="docjax.keep.Best", metric="retrieval/dense/ndcg@10")
    config.tasks.retrieval.passages = True


def cisi(config: ConfigDict) -> None:
    """A collection with test queries only: their first fold tests."""
    frozen(config)
    config.examples.fold = config.tasks.retrieval.fold = 0


def cranfield(config: ConfigDict) -> None:
    """Two of its documents are empty."""
    cisi(config)
    config.source.max_bad_fraction = config.tasks.retrieval.max_bad_fraction = 0.01


def nfcorpus(config: ConfigDict) -> None:
    frozen(config)


def small(config: ConfigDict) -> None:
    """A small encoder from scratch, compared by cosine; a baseline stays a baseline."""
    base().small(config)
    config.objective.update(similarity="cosine", temperature=0.05)
    config.checkpoint_every = None  # each epoch


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    small(config)
    base().demo(config)
    config.microbatch = 8
    config.epochs = 1
    config.checkpoint_every = None
    config.tasks.retrieval.passages = True


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    demo(config)
    base().smoke(config)
    config.microbatch = 8
