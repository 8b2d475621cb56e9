"""How well does a probe read labels off vectors when few documents have labels?"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from docjax.data import once
from docjax.errors import UserError
from docjax.tasks.classification import LINEAR, Classifier, Linear
from docjax.tasks.embeddings import NoLabels, check, check_classes, check_train
from docjax.tasks.probe import FEW, PROBE, Probe
from docjax.tasks.task import TaskDefaults, option
from docjax.types import Drawing, Embeddings, Outcome, Rows, Table, TaskData

ALL = "all"  # in the names of `ShotsCurve`: all training documents
DRAWS = "draws of documents (10)"


@dataclasses.dataclass(frozen=True)
class FewShot(Classifier):
    """A classifier of a few labelled training documents, several times.

    A draw takes `shots` documents of each class (SimLTE, section 4).
    The papers' classifier is `docjax.tasks.probe.Probe(epochs=100, held_out=0.0)`.
    """

    command = "few_shot"

    shots: int = option(10, "documents of each class (10)", type=int)
    repeats: int = option(10, DRAWS, type=int)
    seed: int = 0
    classifier: Linear | Probe = option(
        LINEAR,
        "what reads the labels (linear)",
        choices=("linear", "probe"),
        value={"linear": LINEAR, "probe": FEW}.__getitem__,
    )

    def check(self, data: TaskData, part: str) -> None:
        super().check(data, part)
        rows_by_class(data.labels("train"), self.shots, self.repeats)

    def score(self, train: Embeddings, test: Embeddings) -> dict[str, float]:
        """`accuracy` and `macro_f1` of all test documents, means over the draws;
        `accuracy_std` and `macro_f1_std` are deviations over draws.

        Raises:
          UserError: for a class of fewer than `shots` train documents, a single class,
            or vectors that are not finite or differ in width.
        """
        check(train, test)
        check_classes("train", train.labels)
        draws = [self.classifier.score(few, test) for few in self.draws(train)]
        scores = {name: [draw[name] for draw in draws] for name in draws[0]}
        means = {name: float(np.mean(values)) for name, values in scores.items()}
        return means | {f"{name}_std": float(np.std(v)) for name, v in scores.items()}

    def outcomes(self, data: TaskData, part: str) -> dict[str, Outcome]:
        draws, test = self.draws(data.labelled("train")), data.labelled(part)
        right = [self.classifier.right(few, test) for few in draws]
        name = f"accuracy from {self.shots} examples"
        meaning = (
            f"the same after {self.shots} labelled training documents of each label, "
            f"mean of {self.repeats} draws of these documents"
        )
        use, values = "few labels", np.mean(right, axis=0)
        return {"accuracy": Outcome(name, use, meaning, values.tolist(), True)}

    def draws(self, train: Embeddings) -> Iterator[Embeddings]:
        """The few training documents of each draw."""
        rows = rows_by_class(train.labels, self.shots, self.repeats)
        for repeat in range(self.repeats):
            generator = np.random.default_rng((self.seed, repeat))
            drawn = [generator.choice(each, self.shots, replace=False) for each in rows]
            few = [int(row) for row in np.concatenate(drawn)]
            yield Embeddings(train.vectors[few], [train.labels[row] for row in few])

    def is_score(self, metric: str) -> bool:
        return not metric.endswith("_std")

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        return [
            dataclasses.replace(
                table,
                title=f"{table.title} with few documents",
                note="Accuracy and macro-F1 in percent, mean over random draws. The gain "
                "is in percent of the macro-F1 before training.",
            )
            for table in self.classifier.tables(measured, published)
        ]


@dataclasses.dataclass(frozen=True)
class ShotsCurve(TaskDefaults):
    """`FewShot` for each number of `shots`, and a classifier of all training documents
    (SimLTE and DocSplit, Fig. 2).

    The metrics are those of `FewShot` after "5/", "10/", ...; "all/" has no deviation.
    A number of `shots` for which a class has too few documents is left out; the log
    names the class.
    """

    command = "shots"
    reads = "labels"

    shots: tuple[int, ...] = option(
        (5, 10, 20, 50), "documents of each class (5 10 20 50)", type=int, nargs="+"
    )
    repeats: int = option(10, DRAWS, type=int)
    seed: int = 0
    few: Linear | Probe = FEW
    full: Linear | Probe = PROBE

    def check(self, data: TaskData, part: str) -> None:
        check_train(data, part)
        self.possible(data.labels("train"))

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        train, test = data.labelled("train"), data.labelled(part)
        points = {
            str(n): FewShot(n, self.repeats, self.seed, self.few).score(train, test)
            for n in self.possible(train.labels)
        } | {ALL: self.full.score(train, test)}
        return {
            f"{shots}/{metric}": value
            for shots, scores in points.items()
            for metric, value in scores.items()
        }

    def is_score(self, metric: str) -> bool:
        return False  # a table of its own has them

    def tables(self, measured: Rows, published: Rows) -> list[Table]:
        own, printed = map(_accuracies, (measured, published))
        rows = {**own, **printed}
        counts = {count for row in rows.values() for count in row}
        drawing = Drawing(
            "lines",
            "shots",
            own,
            title="few documents with labels",
            x="documents of a class",
            y="accuracy",
            deviations=_accuracies(measured, "_std"),
            caption="Accuracy of a classifier on the frozen vectors, against the number "
            "of training documents of each class. Bars are deviations over random draws.",
        )
        names = sorted(counts, key=lambda count: (count == ALL, len(count), count))
        title, note = "Few documents with labels", "Accuracy, as a fraction of 1."
        corner = "documents of a class"
        return [Table(title, rows, names, note, corner, decimals=4, drawing=drawing)]

    def possible(self, labels: list[str]) -> list[int]:
        """The numbers of shots that every class has documents for.

        One warning names the smallest class and the numbers that are left out.

        Raises:
          NoLabels: if no number is left.
          UserError: for a number below 1.
        """
        rows = rows_by_class(labels, min(self.shots, default=1), self.repeats)
        fewest = min(rows, key=len)
        left_out = [shots for shots in self.shots if shots > len(fewest)]
        if left_out:
            once.warn(
                "the class %r has %d train documents: the scores with %s documents of "
                "each class are left out",
                *(labels[fewest[0]], len(fewest), ", ".join(map(str, left_out))),
            )
        return [shots for shots in self.shots if shots <= len(fewest)]


def _accuracies(rows: Rows, end: str = "") -> dict[str, dict[str, float]]:
    """The accuracy of each row by number of documents, or its deviation."""
    end = f"/accuracy{end}"
    return {
        name: {
            metric.removesuffix(end): value
            for metric, value in values.items()
            if metric.endswith(end)
        }
        for name, values in rows.items()
    }


def rows_by_class(labels: list[str], shots: int, repeats: int) -> list[np.ndarray]:
    """The rows of each class.

    Raises:
      NoLabels: if a class has fewer than `shots` documents.
      UserError: for a number below 1.
    """
    names = np.array(labels)
    rows = [np.flatnonzero(names == name) for name in sorted(set(labels))]
    if min(shots, repeats) < 1:
        raise UserError(f"shots={shots} and repeats={repeats}: give 1 or more of both")
    fewest = min(rows, key=len)
    if len(fewest) < shots:
        raise NoLabels(
            f"the class {labels[fewest[0]]!r} has {len(fewest)} train documents, but "
            f"shots={shots} are drawn from each class: lower shots, or add documents"
        )
    return rows
