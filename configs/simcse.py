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

Variants: `long`: DocSplit's ablation SimCSE_long: whole documents of up to 512 tokens,
batches of 36, AdamW 5e-5, with 0.1 times the masked-language-model loss (20 Newsgroups
73.51 % and 48.65 %). `five`: five examples of each class in the few-shot task. `small`:
a small encoder and its own tokenizer from scratch, on documents. `demo`: `small` on the
docstrings of the installed Python packages. `smoke`: everything in seconds.
"""

from ml_collections import ConfigDict

from docjax.config import load, vary

VARIANTS = ("", "long", "five", "small", "demo", "smoke", "five,small")


def get_config(variant: str = "") -> ConfigDict:
    config = load("docsplit")
    config.units = dict(fn="docjax.data.units.Whole")
    config.segments = dict(fn="docjax.data.segments.OneEach")
    config.views = dict(fn="docjax.views.twice.Twice")
    config.objective = config.objective.contrastive
    config.encoder.segment.masked_lm = False
    config.optimizer.learning_rate = 3e-5
    config.batch = 64
    return vary(config, variant, long, small, demo, smoke, five)


def long(config: ConfigDict) -> None:
    """Documents, with masked language modelling."""
    docsplit = load("docsplit")
    for name in ("objective", "optimizer", "batch"):
        config[name] = docsplit[name]
    config.encoder.segment.masked_lm = True


def five(config: ConfigDict) -> None:
    config.tasks.few_shot.shots = 5


def small(config: ConfigDict) -> None:
    """DocSplit's small encoder, without its masked language model."""
    _as_docsplit(config, "small")


def demo(config: ConfigDict) -> None:
    """The built-in corpus."""
    _as_docsplit(config, "demo")


def smoke(config: ConfigDict) -> None:
    """A few documents of the built-in corpus."""
    _as_docsplit(config, "smoke")


def _as_docsplit(config: ConfigDict, variant: str) -> None:
    docsplit = load("docsplit", variant)
    for name in ("source", "tokenizer", "limits", "optimizer", "tasks", "init"):
        config[name] = docsplit[name]
    for name in ("batch", "microbatch", "epochs", "steps"):
        config[name] = docsplit[name]
    for name in ("log_every", "checkpoint_every"):
        config[name] = docsplit[name]
    masked = config.encoder.segment.masked_lm
    config.encoder.segment = docsplit.encoder.segment
    config.encoder.segment.masked_lm = masked
