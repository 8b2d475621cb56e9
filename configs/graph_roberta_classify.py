"""graph-roberta fine-tuned end to end for classification.

Xu et al., 2021, Table 6: batches of 32 documents, warm-up 0.1, weight decay 0.01;
learning rate and epochs depend on the dataset. The run keeps the epoch with the best
validation accuracy. `init` is a run of `graph_roberta.py`, or `roberta-base` without
contrastive pre-training (Table 2, 20 Newsgroups: 86.66 % with, 85.36 % without).

  python -m docjax.main --config=configs/graph_roberta_classify.py:newsgroup \
      --workdir=runs/newsgroup --config.source.path=20news.jsonl.xz \
      --config.init=runs/pretrain

Variants, one at a time: `newsgroup` (the default), `arxiv`, `imdb`, `hyperpartisan`: the
paper's values. `small`, `demo` and `smoke`: as in `graph_roberta.py`.
"""

from ml_collections import ConfigDict

from docjax.config import load
from docjax.errors import UserError

# Learning rate, epochs, and the share of training documents for validation (0: the data
# has a validation part).
DATASETS = dict(
    arxiv=(1e-4, 20, 0.0),
    newsgroup=(5e-5, 20, 0.1),
    imdb=(5e-5, 20, 0.04),
    hyperpartisan=(3e-5, 15, 0.0),
)
VARIANTS = (*DATASETS, "small", "demo", "smoke")


def get_config(variant: str = "newsgroup") -> ConfigDict:
    if variant not in VARIANTS:
        raise UserError(f"variant {variant!r} is none of {', '.join(VARIANTS)}")
    small = variant not in DATASETS
    config = load("graph_roberta", variant if small else "")
    config.views = dict(fn="docjax.views.whole.Whole")
    config.encoder.head = dict(fn="docjax.encoders.pooling.Classifier", classes=0)
    config.objective = dict(fn="docjax.objectives.cross_entropy.cross_entropy")
    config.tasks = dict(classification=dict(fn="docjax.tasks.classification.EndToEnd"))
    config.optimizer.weight_decay = 0.01
    config.splits.validation = "dev" if variant == "hyperpartisan" else "validation"
    config.keep = dict(fn="docjax.keep.Best", metric="classification/accuracy")
    config.evaluate_every = config.checkpoint_every = None  # once an epoch
    holdout = ConfigDict(dict(fn="docjax.data.splits.holdout", of="train", test=0.0))
    if small:
        config.holdout = holdout
        config.holdout.validation = 0.1
        return config
    rate, epochs, validation = DATASETS[variant]
    if validation:
        config.holdout = holdout
        config.holdout.validation = validation
    config.optimizer.learning_rate = rate
    config.epochs = epochs
    config.batch = 32
    config.microbatch = 32
    return config
