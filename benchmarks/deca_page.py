"""One page with all measured figures of DECA, self-contained, readable offline.

`write(folder, Contents(...))` makes `folder/index.html` with the templates of
docjax/explain, and figures with their numbers in `folder/figures`. The page says which
figures are missing.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import baselines, deca_tables
from benchmarks.deca_tables import Found, Runs
from docjax.data.vocabulary import vocabulary
from docjax.explain import figures, page, run_page, style, tsne
from docjax.model.document_model import DocumentModel
from docjax.run.prepared import Prepared
from docjax.run.report import nearest_words
from docjax.types import Document

MAP = 1000  # documents
WORDS = (
    "god space hockey windows car gun doctor encryption israel buy error bad".split()
)
SECTIONS = {
    "error": "Test error (Table 3)",
    "nmi": "Clusters (Table 4)",
    "paraphrases": "Paraphrases (Table 5)",
    "batches": "Batches on BERT (Table 7)",
    "lambda": "Lambda (Figure 3)",
    "map": "Map of the documents (Figure 2)",
    "words": "Nearest words",
    "reproduce": "Reproduce",
}
TEMPLATE = page.template(
    Path(__file__).with_name("deca_page.html.jinja"),
    script=page.FOLDER / "run_page.js",
)


@dataclasses.dataclass(frozen=True)
class Trained:
    """Word models with their training documents."""

    dataset: str
    prepared: Prepared
    models: Mapping[str, DocumentModel]  # by the name to show


@dataclasses.dataclass(frozen=True)
class Contents:
    """The content of the page."""

    systems: Found  # by system and dataset
    weights: Mapping[float, Runs]  # by lambda
    paraphrases: Found  # by way and kind
    batches: Found  # by system and documents of a batch
    trained: Trained | None
    facts: Mapping[str, Any]  # of all runs, shown at the top
    commands: Mapping[str, str]  # what it does -> the command


def write(folder: Path, contents: Contents) -> Path:
    """Writes `folder/index.html` and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(html(contents, folder), encoding="utf-8")
    return path


def html(contents: Contents, folder: Path) -> str:
    """The page; its figures are drawn into `folder`."""
    trained = contents.trained
    return TEMPLATE.render(
        title="DECA, published and measured",
        facts=contents.facts,
        sections=SECTIONS,
        errors=deca_tables.of_errors(contents.systems),
        nmi=deca_tables.of_nmi(contents.systems),
        paraphrases=deca_tables.of_paraphrases(contents.paraphrases),
        batches=deca_tables.of_batches(contents.batches),
        weights=deca_tables.of_weights(contents.weights),
        curve=page.picture(_curve(folder, contents.weights), folder),
        **(_trained(folder, trained) if trained else dict(map=None, words=None)),
        commands=contents.commands,
        versions=run_page.versions(),
    )


def _curve(folder: Path, weights: Mapping[float, Runs]) -> Path | None:
    measured = any(weights.values())
    return draw_weights(folder / "figures/lambda", weights) if measured else None


def draw_weights(path: Path, found: Mapping[float, Runs]) -> Path:
    """Draws the error on R8 against lambda, ours and published; returns the PNG."""
    errors = {w: deca_tables.errors(runs) for w, runs in found.items() if runs}
    values = {w: list(by_seed.values()) for w, by_seed in errors.items()}
    published = {
        f"{deca_tables.SYSTEMS[system]}, published": deca_tables.ERRORS[system, "r8"]
        for system in ("doc2vecc", "deca")
    }
    figure, (axis,) = style.grid(1, columns=1, width=6.4, height=3.6)
    style.plain(axis, "Test error on R8", x="lambda", y="error in %")
    axis.set_xlim(min(found) - 0.05, max(found) + 0.05)
    ours = axis.errorbar(
        list(values),
        [np.mean(each) for each in values.values()],
        [np.std(each, ddof=1) if len(each) > 1 else 0 for each in values.values()],
        color=style.COLOURS[0],
        marker=style.MARKERS[0],
        markersize=5,
        linewidth=1.6,
        capsize=3,
    )
    handles = {"ours": ours}
    for number, (name, error) in enumerate(published.items(), 1):
        colour = style.COLOURS[number]
        handles[name] = axis.axhline(error, color=colour, linestyle="--", linewidth=1.4)
    style.legend(figure, handles)
    rows = [("ours", w, *pair) for w, each in errors.items() for pair in each.items()]
    rows += [(name, "", "", error) for name, error in published.items()]
    return style.save(figure, path, ("line", "lambda", "seed", "error"), rows)


def _trained(folder: Path, trained: Trained) -> dict[str, Any]:
    """The page's part about trained models: a map of documents, and nearest words."""
    documents = list(trained.prepared.documents())
    chosen = tsne.sample(len(documents), MAP, seed=0)
    png = _map(folder, trained, [documents[i] for i in chosen], chosen)
    known = vocabulary(trained.prepared.tokenizer, trained.prepared.corpus)
    return {
        "dataset": trained.dataset,
        "shown": len(chosen),
        "map": page.picture(png, folder),
        "words": {
            name: nearest_words(known, model.params["segment"]["words"], WORDS)
            for name, model in trained.models.items()
        },
    }


def _map(
    folder: Path, trained: Trained, documents: Sequence[Document], rows: np.ndarray
) -> Path:
    """Draws the documents at `rows` of the corpus; returns the PNG."""
    corpus = trained.prepared.corpus
    panels = {"TF-IDF": baselines.tfidf(trained.prepared)[rows]} | {
        name: model.encode(documents, normalize_embeddings=True)
        for name, model in trained.models.items()
    }
    labels, ids = ([of[i] for i in rows] for of in (corpus.labels, corpus.ids))
    return figures.tsne_panels(folder / "figures/map", panels, labels, ids=ids)
