"""graph-roberta pre-trained for retrieval: one passage is a query for the rest.

Xu et al., 2021, section 3.3: the query is the first passage with probability 0.5,
otherwise any passage; for each query a softmax over the documents of the batch; 10
epochs in batches of 1,024 documents of OpenWebText, Adam 5e-5, warm-up 0.1.

  python -m docjax.main --config=configs/retriever_pretraining.py \
      --workdir=runs/pretrained --config.source.path='openwebtext/*.jsonl.zst'

`frozen`: for your own collection: as `retriever.py:frozen`, which may then take this run
as its `init`.

  python -m docjax.main --config=configs/retriever_pretraining.py:frozen \
      --config.init=FOLDER --config.source.path=mine/corpus.jsonl \
      --config.tasks.retrieval.path=mine

`small`, `demo` and `smoke`: as in `graph_roberta.py`.
"""

from ml_collections import ConfigDict

from docjax.config import load

VARIANTS = ("", "frozen", "small", "demo", "smoke")


def get_config(variant: str = "") -> ConfigDict:
    if variant == "frozen":
        config = load("retriever", variant)
        config.examples = dict(fn="docjax.data.examples.Documents")
    else:
        config = load("graph_roberta", variant)
        config.objective.symmetric = False
    config.views = dict(fn="docjax.views.one_against_rest.OneAgainstRest", first=0.5)
    if not variant:
        config.batch = 1024
    return config
