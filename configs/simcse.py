"""SimCSE: every text twice, with different dropout masks, against the other texts.

Gao et al., 2021, unsupervised: the first token of bert-base-uncased, a tanh layer in
training only, cosine InfoNCE with temperature 0.05 in one direction; AdamW 3e-5, one
epoch of a million sentences of Wikipedia in batches of 64. Each line of the source is a
sentence. Expected accuracy of an MLP on the frozen encoder (the DocSplit paper): 20
Newsgroups 74.02 %, with five examples of each class 42.63 %.

Departures from the paper: sentences are cut at 512 tokens, not at 32, so that the model
reads documents too; the last parameters are kept, not the best ones on STS-B; attention
weights are not dropped (`encoder.segment.attention_dropout` is 0; BERT drops 0.1), so
that GPUs can use fast attention kernels.

  python -m docjax.main --config=configs/simcse.py --workdir=runs/simcse \
      --config.source.path='sentences/*.jsonl.zst'

Variants: a recipe, `long`: DocSplit's ablation SimCSE_long: whole documents of up to 512
tokens, batches of 36, AdamW 5e-5, with 0.1 times the masked-language-model loss (20
Newsgroups 73.51 % and 48.65 %). `five`: five examples of each class in the few-shot task.
By size: `small`: a small encoder and its own tokenizer from scratch, on documents. `demo`:
`small` on the docstrings of the installed Python packages. `smoke`: everything in
seconds. They go together, as in `long,small` and `five,small`.
"""

from ml_collections import ConfigDict

from docjax.config import base, load, vary

VARIANTS = ("", "long", "five", "small", "demo", "smoke", "five,small")


def get_config(variant: str = "") -> ConfigDict:
    config = base().config(
        units=dict(fn="docjax.data.units.Whole"),
        examples=dict(fn="docjax.data.examples.Documents"),
        views=dict(fn="docjax.views.twice.Twice"),
        segments=dict(fn="docjax.data.segments.OneEach"),
        limits=dict(
            segment_tokens=512,
            query_tokens=64,
            training_segments=1,
            inference_segments=1,
        ),
        encoder=dict(
            segment=base().bert(masked_lm=False),
            document=dict(fn="docjax.encoders.pooling.Mean"),
            head=dict(fn="docjax.encoders.pooling.TrainingHead"),
        ),
        objective=dict(
            fn="docjax.objectives.infonce.infonce",
            similarity="cosine",
            temperature=0.05,
            symmetric=False,
        ),
        optimizer=base().adamw(learning_rate=3e-5, warmup=0.0, weight_decay=0.01),
        batch=64,
        epochs=1,
        log_every=100,
        evaluate_every=1000,
        checkpoint_every=1000,
        tasks=load("docsplit").tasks,
        init="bert-base-uncased",
    )
    sizes = small, demo, smoke
    return vary(config, variant, recipe=(long,), size=sizes, shots=(five,))


def long(config: ConfigDict) -> None:
    """Documents, with masked language modelling."""
    config.objective = dict(
        fn="docjax.objectives.masked_lm.MaskedLM",
        weight=0.1,
        rate=0.15,
        contrastive=config.objective,
    )
    config.encoder.segment.masked_lm = True
    config.optimizer.learning_rate = 5e-5
    config.batch = 36


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
