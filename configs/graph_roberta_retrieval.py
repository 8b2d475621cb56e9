"""graph-roberta pre-trained for retrieval: one passage is a query for the rest.

Xu et al., 2021, section 3.3: the query is the first passage with probability 0.5,
otherwise any passage; for each query a softmax over the documents of the batch; 10
epochs in batches of 1,024 documents of OpenWebText, Adam 5e-5, warm-up 0.1.

  python -m docjax.main --config=configs/graph_roberta_retrieval.py \
      --workdir=runs/retrieval --config.source.path='openwebtext/*.jsonl.zst'

Variants: `small`, `demo` and `smoke`: as in `graph_roberta.py`.
"""

from ml_collections import ConfigDict

from docjax.config import load

VARIANTS = ("", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    config = load("graph_roberta", variant)
    config.views = dict(fn="docjax.views.one_against_rest.OneAgainstRest", first=0.5)
    config.objective.symmetric = False
    if not variant:
        config.batch = 1024
    return config
