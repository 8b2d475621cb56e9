"""The tables of DECA: the published figures beside ours over seeds.

Luo et al., "Unsupervised Document Embedding via Contrastive Augmentation", 2021.
deca_runs.py measures the figures.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import scipy.stats

Runs = Mapping[int, Mapping[str, float]]  # seed -> metrics
Found = Mapping[tuple[str, str], Runs]  # row, column -> runs
Columns = dict[str, dict[str, str]]  # column -> row -> cell
DASH = "–"

DATASETS = {"r8": "R8", "r52": "R52", "mr": "MR", "20news": "20news", "imdb": "IMDB"}
CLUSTERED = ("r8", "r52", "20news")
SYSTEMS = {
    "tfidf": "TF-IDF",
    "lda": "LDA",
    "w2v_avg": "W2V-AVG",
    "pv_dbow": "PV-DBOW",
    "pv_dm": "PV-DM",
    "bert": "BERT",
    "bert_st": "BERT-ST",
    "doc2vecc": "Doc2vecC",
    "deca": "DECA (DC+SC)",
    "deca_ss": "DECA (DC+SS)",
    "deca_bert": "DECA (BT+SC)",
    "deca_bert_ss": "DECA (BT+SS)",
}
ON_BERT = ("deca_bert", "deca_bert_ss")
WAYS = {"contrastive": "DECA", "appended": "-Contrastive", "open": "-Dictionary"}
KINDS = {
    "WordNet": "WordNet",
    "Paraphrases": "PPDB",
    "Antonyms": "antonym",
    "Uninformative": "uninformative",
}
NAMES = DATASETS | SYSTEMS | WAYS | KINDS
# Tables 3 (test error in %, in the order of DATASETS) and 4 (NMI, of CLUSTERED).
PUBLISHED = {
    "tfidf": ((5.2, 12.4, 25.4, 17.2, 11.7), (0.358, 0.491, 0.340)),
    "lda": ((7.0, 17.5, 46.9, 33.9, 16.5), (0.360, 0.416, 0.410)),
    "w2v_avg": ((5.8, 15.3, 43.4, 43.5, 12.7), (0.511, 0.474, 0.208)),
    "pv_dbow": ((8.7, 18.4, 31.8, 32.2, 13.1), (0.385, 0.421, 0.443)),
    "pv_dm": ((12.7, 22.1, 43.8, 32.6, 13.3), (0.350, 0.353, 0.302)),
    "bert": ((5.1, 11.2, 18.7, 32.9, 10.8), (0.304, 0.358, 0.205)),
    "bert_st": ((5.1, 11.2, 18.7, 41.1, 11.1), (0.304, 0.358, 0.028)),
    "doc2vecc": ((3.0, 9.6, 29.3, 19.2, 10.5), (0.517, 0.529, 0.589)),
    "deca": ((2.4, 6.4, 28.1, 14.9, 9.8), (0.592, 0.533, 0.634)),
    "deca_ss": ((2.8, 9.2, 29.1, 17.2, 10.3), (0.541, 0.532, 0.601)),
    "deca_bert": ((6.6, 15.3, 20.9, 61.1, 42.3), (0.205, 0.255, 0.032)),
    "deca_bert_ss": ((4.9, 14.3, 21.0, 41.6, 50.0), (0.157, 0.225, 0.035)),
}
ERRORS = {
    (system, dataset): error
    for system, (errors, _) in PUBLISHED.items()
    for dataset, error in zip(DATASETS, errors, strict=True)
}
NMI = {
    (system, dataset): value
    for system, (_, values) in PUBLISHED.items()
    for dataset, value in zip(CLUSTERED, values, strict=True)
}
PARAPHRASES = {  # Table 5: error on R8 in %
    (way, kind): error
    for way, errors in {
        "contrastive": (2.74, 2.42, 2.38, 2.96),
        "appended": (3.02, 2.92, 2.92, 2.96),
        "open": (3.83, 3.15, 2.97),
    }.items()
    for kind, error in zip(KINDS, errors, strict=False)
}
BATCHES = {  # Table 7: error on MR in % by documents of a batch
    (system, size): error
    for system, errors in {
        "deca_bert": (21.69, 21.94, 19.61),
        "deca_bert_ss": (20.99, 20.65, 19.31),
    }.items()
    for size, error in zip(("2", "4", "8"), errors, strict=True)
}


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells under each column; the column "seeds" has the number of seeds."""

    title: str
    columns: Columns
    corner: str = ""
    note: str = ""

    @property
    def measured(self) -> bool:
        """Whether at least one cell has a measured seed."""
        return any(count != "0" for count in self.columns.get("seeds", {}).values())

    def markdown(self) -> str:
        rows = dict.fromkeys(row for cells in self.columns.values() for row in cells)
        lines = [[self.corner, *self.columns], ["---"] * (1 + len(self.columns))]
        for row in rows:
            cells = (cells.get(row, DASH) for cells in self.columns.values())
            lines.append([row, *cells])
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join(filter(None, (self.title, table, self.note)))


def of_errors(found: Found) -> list[Table]:
    """Table 3, by system and dataset; Table 3 on raw features; DECA minus Doc2vecC."""
    told = (
        "Logistic regression on features standardised by the training documents; those "
        "of TF-IDF, which are sparse, as they are. W2V-AVG, PV-DBOW and PV-DM: 20 passes "
        "over all words. BERT is the transformer of --bert, all-MiniLM-L6-v2 by default; "
        "so it is in BT."
    )
    standardised, raw = (
        _beside(found, ERRORS, functools.partial(errors, raw=raw), (1, 2))
        for raw in (False, True)
    )
    tables = [
        Table("Test error in %, published / ours", standardised, note=told),
        Table("Test error in % on raw features, published / ours", raw),
        _difference(found),
    ]
    return [table for table in tables if table.columns]


def of_nmi(found: Found) -> list[Table]:
    """Table 4, by system and dataset; Table 4 with vectors that are not normalised."""
    unit, raw = (
        _beside(found, NMI, functools.partial(nmi, raw=raw), (3, 3))
        for raw in (False, True)
    )
    title = "NMI of all documents{}, published / ours"
    tables = [
        Table(title.format(""), unit, note="k-means on vectors of length 1."),
        Table(
            title.format(", vectors as they are"),
            raw,
            note="k-means on vectors as they are; those of TF-IDF have length 1.",
        ),
    ]
    return [table for table in tables if table.columns]


def of_paraphrases(found: Found) -> Table:
    """Table 5, by way and kind."""
    return Table(
        "Test error on R8 in %, published / ours",
        _beside(found, PARAPHRASES, errors, (2, 2)),
        note="Paraphrases in the contrastive loss; appended to the documents of "
        "Doc2vecC; the same with replacements from outside the vocabulary. The paper's "
        "fifth kind, back-translation (2.97 and 3.15), is not measured.",
    )


def of_batches(found: Found) -> Table:
    """Table 7, by system and documents of a batch."""
    return Table(
        "Test error on MR in % by documents of a batch, published / ours",
        _beside(found, BATCHES, errors, (2, 2)),
        note="The first 64 tokens of each document.",
    )


def of_weights(found: Mapping[float, Runs]) -> Table:
    """The points of Figure 3, from runs by lambda."""
    columns: Columns = {}
    for weight, runs in found.items():
        cells = {
            "error in %": spread(errors(runs), 2),
            "error, raw features": spread(errors(runs, raw=True), 2),
            "NMI": spread(nmi(runs), 3),
            "NMI, vectors as they are": spread(nmi(runs, raw=True), 3),
            "seeds": str(len(runs)),
        }
        for name, cell in cells.items():
            columns.setdefault(name, {})[str(weight)] = cell
    return Table("R8 against the weight of the contrastive loss", columns, "lambda")


def errors(runs: Runs, raw: bool = False) -> dict[int, float]:
    """The test error in %, by seed."""
    found = _metric(runs, "classification", "accuracy", raw)
    return {seed: 100 * (1 - accuracy) for seed, accuracy in found.items()}


def nmi(runs: Runs, raw: bool = False) -> dict[int, float]:
    """The NMI, by seed."""
    return _metric(runs, "clustering", "nmi", raw)


def _metric(runs: Runs, task: str, name: str, raw: bool) -> dict[int, float]:
    """One metric by seed; sparse vectors have the same metric raw and scaled."""
    asked = f"{task}_raw/{name}" if raw else f"{task}/{name}"
    return {
        seed: found.get(asked, found[f"{task}/{name}"]) for seed, found in runs.items()
    }


def spread(values: Mapping[int, float], digits: int) -> str:
    """Mean and standard deviation over seeds."""
    if not values:
        return DASH
    found = f"{np.mean(list(values.values())):.{digits}f}"
    if len(values) > 1:
        found += f" ± {np.std(list(values.values()), ddof=1):.{digits}f}"
    return found


def interval(differences: Sequence[float]) -> str:
    """Mean, and the 95 % interval of Student's t."""
    count = len(differences)
    if not count:
        return DASH
    mean = np.mean(differences)
    if count < 2:
        return f"{mean:+.2f}"
    half = scipy.stats.t.ppf(0.975, count - 1) * scipy.stats.sem(differences)
    return f"{mean:+.2f} [{mean - half:+.2f}, {mean + half:+.2f}]"


def _beside(
    found: Found,
    published: Mapping[tuple[str, str], float],
    read: Callable[[Runs], dict[int, float]],
    digits: tuple[int, int],
) -> Columns:
    """Cells "published / ours", each with its `digits`; only published cells."""
    columns: Columns = {}
    counts: dict[str, list[int]] = {}
    for (row, column), runs in found.items():
        if (row, column) in published:
            cell = f"{published[row, column]:.{digits[0]}f} / "
            cell += spread(read(runs), digits[1])
            columns.setdefault(NAMES.get(column, column), {})[NAMES[row]] = cell
            counts.setdefault(NAMES[row], []).append(len(runs))
    if not columns:
        return {}
    return columns | {"seeds": {row: _count(each) for row, each in counts.items()}}


def _count(seeds: Sequence[int]) -> str:
    """The number of seeds, once if all columns have the same number."""
    return ", ".join(map(str, seeds if len(set(seeds)) > 1 else seeds[:1]))


def _difference(found: Found) -> Table:
    """The differences for the seeds that both systems have."""
    columns: Columns = {}
    for system, dataset in found:
        if system == "deca" and ("doc2vecc", dataset) in found:
            ours, other = (errors(found[s, dataset]) for s in ("deca", "doc2vecc"))
            pairs = [ours[seed] - other[seed] for seed in ours if seed in other]
            for name, cell in (
                ("difference", interval(pairs)),
                ("seeds", str(len(pairs))),
            ):
                columns.setdefault(name, {})[DATASETS[dataset]] = cell
    title = "Error of DECA minus that of Doc2vecC, paired over seeds, 95 % interval"
    return Table(title, columns)
