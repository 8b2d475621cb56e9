"""SimLTE: the same method as DocSplit, with the same values.

"Simple and effective long text embeddings by sentence splitting" (SimLTE): sections 3
and 4 give the views, the loss, the optimizer and the protocol of `docsplit.py`. The two
papers differ in what they report: SimLTE has the attention by part of speech (appendix
C) and no row of INSTRUCTOR, DocSplit has the citation links. Expected accuracy and macro
F1 of an MLP on the frozen encoder (BERT): FakeNews 60.04 and 50.14, 20 Newsgroups 76.89
and 74.85, arXiv 76.66 and 32.24, NYT 98.20 and 96.05, BBC 95.56 and 95.58; with few
examples of each class 27.79, 55.79, 35.79, 90.52 and 86.86. On average 3.9 % more than
SimCSE with all examples, 12.0 % with few.

  python -m docjax.main --config=configs/simlte.py --workdir=runs/simlte \
      --config.source.path='wikipedia/*.jsonl.zst'

Departures from the paper: those of `docsplit.py`; among them, the attention weights of the
encoder are not dropped (`encoder.segment.attention_dropout` is 0; the paper's backbones
drop 0.1).

Variants as in `docsplit.py`: by encoder `bert`, `longformer`; by size, in its place,
`small`, `demo`, `smoke`; with these `five` and `analyses`, as in `bert,analyses`.
"""

from ml_collections import ConfigDict

from docjax.config import load

VARIANTS = ("", "bert", "longformer", "five", "small", "demo", "smoke", "bert,analyses")


def get_config(variant: str = "") -> ConfigDict:
    return load("docsplit", variant)
