"""DocSplit: sentences of a document in two views, BERT, InfoNCE and masked words.

Kim et al., "Simple and effective: learning document embeddings by sentence splitting"
(DocSplit; the same method as SimLTE), sections 2 and 3: cosine InfoNCE with temperature
0.05, one direction, plus 0.1 times the masked-language-model loss of both views; a tanh
layer over the first token, in training only; AdamW 5e-5 without warm-up, one epoch of
6.2M Wikipedia articles in batches of 36. The encoder reads 512 tokens of each view.
Expected accuracy of an MLP on the frozen encoder: 20 Newsgroups 76.89 %, with five
examples of each class 55.79 % (BERT 62.34 and 19.94, SimCSE 74.02 and 42.63).

Departures from the paper: `encoder.segment.attention_dropout` is 0, so that GPUs can
use fast attention kernels (the paper's backbones drop 0.1 of the attention weights); a
view ends with its last sentence that fits into 512 tokens, and inside of a sentence
only if this is longer than that. All random blocks of BigBird are the first block, in
training too, as transformers evaluates the published checkpoint. The last documents of
an epoch, which fill no batch, are left out: 172,745 steps, not 172,746. The papers name
no weight decay (here .01, AdamW's usual value), and do not say how they divided their
datasets, of which 20 Newsgroups has parts of its own: without splits, a fifth of each
label is the test part, nothing is the validation part, and the probe chooses its epoch
on a tenth of its training documents. Documents of one sentence have no two views: they
are counted and left out.

  python -m docjax.main --config=configs/docsplit.py --workdir=runs/docsplit \
      --config.source.path='wikipedia/*.jsonl.zst'

Variants by encoder, the model that `init` names: `bert` (the same), `roberta`, `longformer`
(the paper's: 20 Newsgroups 75.44 and 51.18 %), `bigbird`, and `modernbert` (views of up
to 4,096 tokens; the others read 512).
By size, in place of such an encoder: `small`: a small encoder and its own tokenizer from
scratch. `demo`: `small` on the docstrings of the installed Python packages. `smoke`:
everything in seconds.

Three more go with these, as in `bert,analyses`. `five`: five examples of each class in
the few-shot task, as the papers have for 20 Newsgroups, NYT and BBC (ten for FakeNews
and arXiv). `analyses`: the papers' analyses as further tasks: accuracy against examples
of a class, nearest neighbours, redundancy, similarity of sentences, and, for BERT and
RoBERTa, attention by part of speech. Two of them read NLTK's data:
`--config.tasks.redundancy.lexicons` and `--config.tasks.word_attention.lexicons` name its
folder, if NLTK does not find it. `links`: DocSplit's task of citation links;
`--config.tasks.links.path` is a table of pairs, such as `docjax pair` makes.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from docjax.config import base, vary

TRANSFORMER = "docjax.encoders.transformer.Transformer"
VARIANTS = (
    *("", "bert", "roberta", "longformer", "bigbird", "modernbert"),
    *("five", "small", "demo", "smoke", "bert,analyses", "longformer,analyses,links"),
)
PROBE = dict(
    fn="docjax.tasks.probe.Probe",
    hidden_layers=1,
    width=768,
    dropout=0.1,
    learning_rate=3e-4,
    weight_decay=0.01,
    batch=8,
    epochs=10,
    held_out=0.1,
)


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Sentences"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.sentence_split.SentenceSplit"),
        segments=dict(fn="docjax.data.segments.Joined"),
        limits=dict(
            segment_tokens=512,
            query_tokens=64,
            training_segments=1,
            inference_segments=1,
        ),
        encoder=dict(
            segment=base().bert(masked_lm=True),
            document=dict(fn="docjax.encoders.pooling.Mean"),
            head=dict(fn="docjax.encoders.pooling.TrainingHead"),
        ),
        objective=dict(
            fn="docjax.objectives.masked_lm.MaskedLM",
            weight=0.1,
            rate=0.15,
            contrastive=dict(
                fn="docjax.objectives.infonce.infonce",
                similarity="cosine",
                temperature=0.05,
                symmetric=False,
            ),
        ),
        optimizer=base().adamw(learning_rate=5e-5, warmup=0.0, weight_decay=0.01),
        batch=36,
        epochs=1,
        log_every=100,
        evaluate_every=1000,
        checkpoint_every=1000,
        tasks=dict(
            few_shot=dict(
                fn="docjax.tasks.few_shot.FewShot",
                shots=10,
                repeats=10,
                classifier=PROBE | dict(epochs=100, held_out=0.0),
            ),
            classification=PROBE,
            clustering=dict(fn="docjax.tasks.clustering.Clustering", normalize=True),
        ),
        init="bert-base-uncased",
    )
    sizes = small, demo, smoke
    return vary(
        config,
        variant,
        size=sizes,
        encoder=(bert, roberta, longformer, bigbird, modernbert, *sizes),
        shots=(five,),
        analyses=(analyses,),
        task=(links,),
    )


def bert(config: ConfigDict) -> None:
    """The values above."""


def roberta(config: ConfigDict) -> None:
    sizes = dict(vocabulary=50265, positions=514, position_offset=2, types=1)
    config.encoder.segment.update(sizes | dict(epsilon=1e-5))
    config.init = "roberta-base"


def longformer(config: ConfigDict) -> None:
    """The paper's second backbone: batches of 12; 512 tokens, as all its models."""
    _backbone(config, "longformer.Longformer", 512)
    config.batch = 12
    config.init = "allenai/longformer-base-4096"


def bigbird(config: ConfigDict) -> None:
    _backbone(config, "bigbird.BigBird", 512)
    config.init = "google/bigbird-roberta-base"


def modernbert(config: ConfigDict) -> None:
    """No paper has it; its views have up to 4,096 tokens."""
    _backbone(config, "modernbert.ModernBert", 4096)
    config.encoder.segment.dropout = 0.0  # as the published models
    config.init = "answerdotai/ModernBERT-base"


def _backbone(config: ConfigDict, name: str, tokens: int) -> None:
    """An encoder for long texts, with the sizes of its published model."""
    config.encoder.segment = dict(
        fn=f"docjax.encoders.{name}",
        dropout=0.1,
        attention_dropout=0.0,
        pooling="first",
        dtype="bfloat16",
        masked_lm=True,
    )
    config.limits.segment_tokens = tokens
    if "word_attention" in config.tasks:  # of `analyses`
        del config.tasks.word_attention


def five(config: ConfigDict) -> None:
    config.tasks.few_shot.shots = 5


def small(config: ConfigDict) -> None:
    base().small(config)


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    base().demo(config)


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    base().smoke(config)
    config.tasks.few_shot.update(shots=5, repeats=2)
    if "shots" in config.tasks:  # of `analyses`
        config.tasks.shots.repeats = 2


def analyses(config: ConfigDict) -> None:
    """The papers' analyses, as far as the segment encoder has them."""
    few = config.tasks.few_shot
    config.tasks.update(
        shots=dict(
            fn="docjax.tasks.few_shot.ShotsCurve",
            shots=(5, 10, 20, 50),
            repeats=few.repeats,
            few=few.classifier.to_dict(),
            full=config.tasks.classification.to_dict(),
        ),
        k_nearest=dict(fn="docjax.tasks.knn.KNearest", neighbours=10),
        redundancy=dict(
            fn="docjax.tasks.redundancy.Redundancy",
            most=1000,
            broad=False,
            lexicons=placeholder(str),
        ),
        sentence_similarity=dict(
            fn="docjax.tasks.sentence_similarity.SentenceSimilarity",
            most=1000,
            pairs=10_000,
        ),
    )
    if config.encoder.segment.fn == TRANSFORMER:
        config.tasks.word_attention = dict(
            fn="docjax.tasks.word_attention.WordAttention",
            most=1000,
            of_word="sum",
            lexicons=placeholder(str),
        )


def links(config: ConfigDict) -> None:
    """A probe on the vectors of two documents: does one cite the other?"""
    config.tasks.links = dict(
        fn="docjax.tasks.links.Links",
        path="pairs.tsv",
        features="concat",
        classifier=config.tasks.classification.to_dict(),
    )
