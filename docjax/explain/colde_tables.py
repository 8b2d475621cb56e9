"""What CoLDE published in Table 1, to stand beside the scores of `matching`."""

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
