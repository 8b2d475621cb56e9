"""One page of what has been measured of DECA, self-contained, readable offline.

`write(folder, Contents(...))` makes `folder/index.html` with the bricks of
docjax/explain, and figures with their numbers in `folder/figures`; what has not been
measured is said to be missing.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import docjax
from benchmarks import baselines, deca_tables
from benchmarks.deca_tables import Found, Runs, Table
from docjax.data.vocabulary import vocabulary
from docjax.explain import figures, page, style, tsne
from docjax.explain import run_page as report
from docjax.model.document_model import DocumentModel
from docjax.run.prepare import Prepared
from docjax.run.report import nearest_words

MAP = 1000  # documents
WORDS = (
    "god space hockey windows car gun doctor encryption israel buy error bad".split()
)


@dataclasses.dataclass(frozen=True)
class Trained:
    """Models of words with the documents that they were trained on."""

    dataset: str
    prepared: Prepared
    models: Mapping[str, DocumentModel]  # by the name to show


@dataclasses.dataclass(frozen=True)
class Contents:
    """What the page says."""

    systems: Found  # by system and dataset
    weights: Mapping[float, Runs]  # by lambda
    paraphrases: Found  # by way and kind
    batches: Found  # by system and documents of a batch
    trained: Trained | None
    facts: Mapping[str, Any]  # of all runs, shown at the top
    commands: Mapping[str, str]  # what it does -> the command


def write(folder: Path, found: Contents) -> Path:
    """Writes `folder/index.html` and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = page.paragraph(
        'Published / ours: mean ± standard deviation over the seeds; "seeds" counts '
        "those that are in, by column where columns differ. The paper has further "
        "systems, and Ohsumed, which are not measured here."
    )
    sections = {
        "error": (
            "Test error (Table 3)",
            seeds + _tables(deca_tables.of_errors(found.systems)),
        ),
        "nmi": ("Clusters (Table 4)", _tables(deca_tables.of_nmi(found.systems))),
        "paraphrases": (
            "Paraphrases (Table 5)",
            _tables([deca_tables.of_paraphrases(found.paraphrases)]),
        ),
        "batches": (
            "Batches on BERT (Table 7)",
            _tables([deca_tables.of_batches(found.batches)]),
        ),
        "lambda": ("Lambda (Figure 3)", _weights(folder, found.weights)),
        "map": ("Map of the documents (Figure 2)", _map(folder, found.trained)),
        "words": ("Nearest words", _words(found.trained)),
        "reproduce": ("Reproduce", _reproduce(found.commands)),
    }
    path = folder / "index.html"
    html = page.sectioned(
        "docjax benchmark",
        "DECA, published and measured",
        found.facts,
        sections,
        f"Written by docjax {docjax.__version__}.",
    )
    path.write_text(html, encoding="utf-8")
    return path


def _tables(tables: Sequence[Table]) -> str:
    return "".join(map(_table, tables)) or page.missing("No dataset was asked for.")


def _table(table: Table) -> str:
    heading = f"<h3>{page.text(table.title)}</h3>"
    if not table.measured:
        return heading + page.missing("Not measured yet.")
    columns = {
        name: {row: page.text(cell) for row, cell in cells.items()}
        for name, cells in table.columns.items()
    }
    note = page.paragraph(table.note) if table.note else ""
    return heading + page.table(columns, table.corner) + note


def _weights(folder: Path, found: Mapping[float, Runs]) -> str:
    if not any(found.values()):
        return page.missing("Not measured yet: --study lambda does it.")
    png = draw_weights(folder / "figures/lambda", found)
    caption = (
        "Test error on R8 against the weight of the contrastive loss (0: Doc2vecC); "
        "bars are standard deviations over seeds, broken lines the published errors."
    )
    return page.figure(png, folder, caption) + _table(deca_tables.of_weights(found))


def draw_weights(path: Path, found: Mapping[float, Runs]) -> Path:
    """Error on R8 against lambda, over the published ones; the PNG."""
    errors = {w: deca_tables.errors(runs) for w, runs in found.items() if runs}
    values = {w: list(by_seed.values()) for w, by_seed in errors.items()}
    published = {
        f"{deca_tables.SYSTEMS[system]}, published": deca_tables.ERRORS[system, "r8"]
        for system in ("doc2vecc", "deca")
    }
    figure, (axis,) = style.grid(1, columns=1, width=6.4, height=3.6)
    style.plain(axis, "Test error on R8", x="lambda", y="error in %")
    axis.set_xlim(min(found) - 0.05, max(found) + 0.05)
    axis.errorbar(
        list(values),
        [np.mean(each) for each in values.values()],
        [np.std(each, ddof=1) if len(each) > 1 else 0 for each in values.values()],
        label="ours",
        color=style.COLOURS[0],
        marker=style.MARKERS[0],
        markersize=5,
        linewidth=1.6,
        capsize=3,
    )
    for number, (name, error) in enumerate(published.items(), 1):
        colour = style.COLOURS[number]
        axis.axhline(error, label=name, color=colour, linestyle="--", linewidth=1.4)
    style.legend(figure, axis)
    rows = [("ours", w, *pair) for w, each in errors.items() for pair in each.items()]
    rows += [(name, "", "", error) for name, error in published.items()]
    return style.save(figure, path, ("line", "lambda", "seed", "error"), rows)


def _map(folder: Path, trained: Trained | None) -> str:
    if trained is None:
        return page.missing("Not measured yet: the models are not trained.")
    corpus, documents = trained.prepared.corpus, list(trained.prepared.documents())
    chosen = tsne.sample(len(documents), MAP, seed=0)
    sample = [documents[i] for i in chosen]
    tfidf = baselines.tfidf(trained.prepared)
    panels = {"TF-IDF": tfidf[chosen]} | {
        name: model.encode(sample, normalize_embeddings=True)
        for name, model in trained.models.items()
    }
    labels, ids = ([of[i] for i in chosen] for of in (corpus.labels, corpus.ids))
    png = figures.tsne_panels(folder / "figures/map", panels, labels, ids=ids)
    caption = (
        f"t-SNE of the same {len(chosen):,} documents of {trained.dataset}, drawn at "
        "random, in each representation (vectors of length 1, seed 0), coloured by "
        "class. Documents of one class should lie together."
    )
    return page.figure(png, folder, caption)


def _words(trained: Trained | None) -> str:
    if trained is None:
        return page.missing("Not measured yet: the models are not trained.")
    known = vocabulary(trained.prepared.tokenizer, trained.prepared.corpus)
    columns = {}
    for name, model in trained.models.items():
        found = nearest_words(known, model.params["segment"]["words"], WORDS)
        columns[name] = {
            word: page.text(", ".join(near)) for word, near in found.items()
        }
    note = f"Words of {trained.dataset}, and those nearest by cosine (seed 0)."
    return page.table(columns, "word", "words") + page.paragraph(note)


def _reproduce(commands: Mapping[str, str]) -> str:
    found = {name: page.text(value) for name, value in report.versions().items()}
    return (
        "".join(
            page.paragraph(what) + page.pre(command)
            for what, command in commands.items()
        )
        + "<h3>Versions</h3>"
        + page.table({"version": found}, "software")
    )
