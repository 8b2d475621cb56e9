"""What SimLTE and DocSplit published, in their tables' layout, to stand beside a run.

Kim et al. print the same numbers in both papers; rows of INSTRUCTOR are DocSplit's.
`average_improvement` is how the papers compare two rows.
"""

from collections.abc import Collection, Mapping

import numpy as np

DATASETS = ("FakeNews", "20News", "arXiv", "NYT", "BBC")
Row = dict[str, float]  # dataset -> percent


def _rows(text: str) -> dict[str, Row]:
    """Lines of a name and a number for each dataset."""
    rows = {}
    for line in text.strip().splitlines():
        name, *values = line.split()
        rows[name] = dict(zip(DATASETS, map(float, values), strict=True))
    return rows


# Macro-F1 with all training documents; DocSplit_long starts from Longformer.
FULL_F1 = _rows("""
    BERT          42.17 54.19 20.46 92.65 90.34
    CT-BERT       42.53 63.37 26.09 91.59 88.87
    SimCSE        47.46 72.57 30.01 94.69 93.86
    SimCSE_long   47.56 72.05 29.41 93.83 94.30
    INSTRUCTOR    47.92 78.72 30.46 93.66 95.16
    DocSplit      50.14 74.85 32.24 96.05 95.58
    Longformer    57.66 72.47 25.92 88.39 94.75
    BigBird       47.87 68.91 25.05 94.33 94.62
    DocSplit_long 61.66 74.38 33.26 95.43 95.91
""")
# Macro-F1 with few: 5 documents a class for 20News, NYT and BBC, 10 for the others.
FEW_F1 = _rows("""
    BERT          23.73 18.71 10.14 43.90 52.73
    CT-BERT       23.06 23.53 13.53 36.83 58.95
    SimCSE        22.68 41.42 17.19 78.41 83.75
    SimCSE_long   23.26 47.81 12.66 75.90 83.96
    INSTRUCTOR    23.97 58.09 17.12 27.60 48.78
    DocSplit      24.65 55.43 18.52 83.71 86.31
    Longformer    25.12 42.41 13.36 54.87 85.47
    BigBird       23.28 39.06 10.18 78.96 76.63
    DocSplit_long 27.13 50.96 18.80 82.88 86.66
""")
# Accuracy on 20News, with 5 documents a class and with all.
NEWS_ACCURACY = {
    "BERT": {"5": 0.1994, "all": 0.6234},
    "CT-BERT": {"5": 0.2411, "all": 0.6576},
    "SimCSE": {"5": 0.4263, "all": 0.7402},
    "SimCSE_long": {"5": 0.4865, "all": 0.7351},
    "DocSplit": {"5": 0.5579, "all": 0.7689},
}
_BINS = ("1-50", "51-100", "101-200", "201-300", "301-", "all")
REDUNDANCY = {
    name: dict(zip(_BINS, values, strict=True))
    for name, values in {
        "FakeNews": (1.06, 1.21, 1.29, 1.35, 1.52, 1.37),  # printed as "29"
        "20News": (1.12, 1.18, 1.24, 1.31, 1.50, 1.28),
        "arXiv": (1.12, 1.25, 1.36, 1.49, 1.62, 1.34),
        "NYT": (1.00, 1.14, 1.21, 1.31, 1.48, 1.45),
        "BBC": (1.05, 1.14, 1.20, 1.29, 1.46, 1.19),
    }.items()
}
# Cosines of SimCSE's vectors.
SENTENCE_SIMILARITY = {
    "FakeNews": {"inner": 0.28, "inter": 0.06},
    "20News": {"inner": 0.21, "inter": 0.07},
    "arXiv": {"inner": 0.51, "inter": 0.35},
    "NYT": {"inner": 0.30, "inter": 0.11},
    "BBC": {"inner": 0.32, "inter": 0.09},
}
NOUNS = 1.4  # more than so many times BERT's and SimCSE's attention to a noun


def average_improvement(
    scores: Mapping[str, float],
    baseline: Mapping[str, float],
    leave_out: Collection[str] = (),
) -> float:
    """The mean over the datasets of `scores / baseline - 1`, in percent.

    It is neither a ratio nor a difference of means: "3.9 %" of SimLTE is this mean of
    the macro-F1 of five datasets.

    Raises:
      ValueError: if the datasets differ, or none is left.
    """
    if scores.keys() != baseline.keys() or not scores.keys() - set(leave_out):
        raise ValueError(
            f"scores of {', '.join(scores)} and of {', '.join(baseline)} without "
            f"{', '.join(leave_out) or 'none'}: give both for the same datasets"
        )
    names = [name for name in scores if name not in leave_out]
    return 100 * float(np.mean([scores[n] / baseline[n] - 1 for n in names]))
