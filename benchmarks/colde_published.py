"""CoLDE's Table 1, and whether its figures fit together.

    python -m benchmarks.colde_published [DATASET ...]

Prints P, R, F1 and accuracy of each model, and what they imply: the share of similar
pairs, as printed and with P and R exchanged (0.5 in balanced test pairs), and the F1 of
P and R where another F1 was printed. P and R of CoLDE and S-LONG are probably exchanged:
compare F1 and accuracy. A config shows the rows of a data set beside its run with
`config.report.published = PUBLISHED["AAN"]`.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import tiny

MEASURES = ("precision", "recall", "f1", "accuracy")


def _rows(text: str) -> dict[str, dict[str, float]]:
    """Lines of a name and four digits for each measure."""
    rows = {}
    for line in text.strip().splitlines():
        name, _, values = line.strip().rpartition("  ")
        digits = (int(value) / 10_000 for value in values.split())
        rows[name.strip()] = dict(zip(MEASURES, digits, strict=True))
    return rows


# Dataset -> model -> measure. AAN: ACL papers; PAT: patents.
PUBLISHED = {
    "AAN": _rows("""
        DSSM            6763 7167 7112 6868
        ARC-I           6475 6837 6651 6557
        HAN             6415 7435 6887 6640
        S-BERT          6652 6667 6659 5663
        SMITH           7329 6038 6621 6918
        S-LONG          6331 7235 6752 6996
        CoLDE w/o Aug   6238 6294 6235 6166
        CoLDE w/o LSTM  7185 7016 7099 7063
        CoLDE w/o CL    5995 4999 5452 5955
        CoLDE           7199 7562 7344 7420
    """),
    "WIKI": _rows("""
        DSSM            7364 8306 7807 7886
        ARC-I           7996 6667 7271 7643
        HAN             6761 9546 7916 7486
        S-BERT          6651 6672 6661 4993
        SMITH           6402 9800 7749 7146
        S-LONG          7947 7331 7626 7527
        CoLDE w/o Aug   6061 5800 5928 6061
        CoLDE w/o LSTM  7803 7542 7668 7862
        CoLDE w/o CL    9439 5104 6589 5003
        CoLDE           8604 7678 8092 8006
    """),
    "PAT": _rows("""
        DSSM            5380 5380 5380 5212
        ARC-I           7824 6951 7362 7080
        HAN             5207 5207 5207 5381
        S-BERT          5362 4958 5152 5206
        SMITH           5241 4853 5023 5093
        S-LONG          8489 5334 6551 5213
        CoLDE w/o Aug   7787 8096 7903 7573
        CoLDE w/o LSTM  7954 8432 8186 7921
        CoLDE w/o CL    6142 5848 5954 5866
        CoLDE           8299 8491 8393 8333
    """),
}

# Of F1, if figures have four digits: at most twice the rounding of precision and recall,
# and its own.
TOLERANCE = 1.5e-4


class Consistency(NamedTuple):
    """What four figures say of each other; NaN where they say nothing.

    Attributes:
      similar: the share of similar pairs among the test pairs. It follows from
        precision, recall and accuracy; outside [0, 1] no test pairs have such figures.
      exchanged: the same share if precision and recall were exchanged.
      f1: the F1 of precision and recall, in whichever order.
      fits: whether the F1 that was given is that one.
    """

    similar: float
    exchanged: float
    f1: float
    fits: bool


def consistency(
    precision: float, recall: float, f1: float, accuracy: float
) -> Consistency:
    """Checks four figures in [0, 1] against each other.

    CoLDE's released code exchanges precision and recall and averages F1 over batches.
    Test pairs of which half are similar should give a share of 0.5.

    Raises:
      ValueError: for a figure outside [0, 1].
    """
    figures = precision, recall, f1, accuracy
    if not all(0 <= figure <= 1 for figure in figures):
        raise ValueError(f"{figures}: give fractions from 0 to 1, not percent")
    total = precision + recall
    expected = 2 * precision * recall / total if total else 0.0
    return Consistency(
        similar=_share(precision, recall, accuracy),
        exchanged=_share(recall, precision, accuracy),
        f1=expected,
        fits=abs(f1 - expected) <= TOLERANCE,
    )


def _share(precision: float, recall: float, accuracy: float) -> float:
    """The share s of similar pairs: 1 - accuracy is the share of wrong pairs.

    Of all pairs, s (1 - recall) are missed, and s recall (1 / precision - 1) are called
    similar though they are not.
    """
    if not precision:
        return math.nan
    wrong = 1 - recall + recall * (1 / precision - 1)
    return (1 - accuracy) / wrong if wrong > 0 else math.nan


def lines(datasets: Sequence[str]) -> Iterator[str]:
    """The table as Markdown."""
    yield "| | P | R | F1 | Acc | similar pairs | P and R exchanged | F1 by P and R |"
    yield "|---" * 8 + "|"
    for dataset in datasets:
        for model, figures in PUBLISHED[dataset].items():
            said = consistency(**figures)
            implied = [said.similar, said.exchanged, math.nan if said.fits else said.f1]
            cells = " | ".join(map(_cell, [*figures.values(), *implied]))
            yield f"| {dataset}: {model} | {cells} |"


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", metavar="DATASET")
    datasets = tiny.parse(parser, given).datasets or list(PUBLISHED)
    if unknown := set(datasets) - set(PUBLISHED):
        parser.error(f"no data set {min(unknown)}: give one of {', '.join(PUBLISHED)}")
    print("\n".join(lines(datasets)))


if __name__ == "__main__":
    main()
