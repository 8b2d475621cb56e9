"""What the report explains of a run's model: attention, words, similar documents."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from docjax.data import graphs
from docjax.data.vocabulary import Vocabulary, vocabulary
from docjax.errors import UserError
from docjax.explain import figures, run_page, similarity_maps
from docjax.model import compare as comparison
from docjax.model.document_model import DocumentModel
from docjax.run.prepared import Prepared
from docjax.types import Document, EncoderOfWords, Section, TaskData, TaskOfPairs

WORDS, NEAREST = 12, 8  # words on the page, and the nearest words of each
PAIRS = 3  # similar pairs of documents whose maps are shown
Data = Callable[[Any], TaskData]  # parameters -> the run's documents, encoded with them


def maps(prepared: Prepared, data: Data, params, folder: Path) -> dict[str, Path]:
    """Draws the similarities of the documents of the first similar pairs that a task on
    pairs scores; none without such a task. A pair stands side by side."""
    tasks = prepared.tasks.values()
    of_pairs = [task for task in tasks if isinstance(task, TaskOfPairs)]
    if not of_pairs:
        return {}
    similar = of_pairs[0].similar(data(params), "test")[:PAIRS]
    names = list(dict.fromkeys(name for pair in similar for name in pair))
    chosen = {each.id: each for each in prepared.documents() if each.id in names}
    similarities = prepared.model(params).similarities([chosen[name] for name in names])
    return similarity_maps.write(folder / "similarities", similarities)


def words(prepared: Prepared, params) -> dict[str, list[str]]:
    """Words with their nearest words, if the model averages words; else none."""
    segment = prepared.encoder.segment
    if not isinstance(segment, EncoderOfWords):
        return {}
    known = vocabulary(prepared.tokenizer, prepared.corpus)
    return nearest_words(known, segment.word_vectors(params["segment"]))


def nearest_words(known: Vocabulary, vectors: Any) -> dict[str, list[str]]:
    """Frequent and rarer words, each with the words whose vectors are nearest (cosine).

    vectors: the words' vectors, by id.
    """
    ids = [i for i, word in enumerate(known.words) if word and word.isalpha()]
    order = sorted(ids, key=lambda i: -known.counts[i])
    names = [known.words[i] for i in order]
    table, neighbours = comparison.unit(np.asarray(vectors)[order]), {}
    step = max(len(order) // (20 * WORDS), 1)
    for row in range(0, len(order), step)[:WORDS]:
        nearest = np.argsort(-(table @ table[row]), kind="stable")
        closest = [other for other in nearest if other != row][:NEAREST]
        neighbours[names[row]] = [names[other] for other in closest]
    return neighbours


def attention(
    prepared: Prepared, folder: Path, params, documents: Sequence[Document]
) -> list[run_page.Attention]:
    """The attention over each document; none for a model without attention."""
    if not prepared.encoder.document.explains(params):
        return []
    if not documents:
        raise UserError("no labelled documents to explain")
    model = prepared.model(params)
    return [
        _attention_over(model, document, folder, number)
        for number, document in enumerate(documents, 1)
    ]


def _attention_over(
    model: DocumentModel, document: Document, folder: Path, number: int
) -> run_page.Attention:
    """The attention with the full and, of sections, the section graph; beside a mean,
    that of the model and the share of each segment in the mean."""
    kinds = {"full graph": graphs.full}
    if len(document.sections) > 1:
        kinds["section graph"] = graphs.section
    begins_as_mean = model.encoder.document.begins_as_mean
    if begins_as_mean:
        kinds = {"attention": model.graph}
    explanations = {
        name: dataclasses.replace(model, graph=graph).explain(document)
        for name, graph in kinds.items()
    }
    weights = {n: _of_last_layer(each.weights) for n, each in explanations.items()}
    first = next(iter(explanations.values()))
    sections = [segment.section for segment in first.segments]
    heat = figures.node_attention(
        folder / f"node_attention_{number}", weights, sections
    )
    if begins_as_mean:
        mean = np.zeros_like(weights["attention"])
        mean[0, 1:] = np.array(first.lengths) / sum(first.lengths)
        weights["share of the tokens in the mean"] = mean
    rows = {name: matrix[0] for name, matrix in weights.items()}
    return run_page.Attention(
        document=document.title or document.id,
        passages=[
            Section(heading, segment.text)
            for heading, segment in zip(first.headings, first.segments, strict=True)
        ],
        weights=weights,
        bars=figures.document_attention(folder / f"document_attention_{number}", rows),
        heat=heat,
    )


def _of_last_layer(weights: Any) -> np.ndarray:
    """The mean over the heads of the last layer (Fig. 7 of graph-roberta).

    [layers heads nodes nodes] to [nodes nodes]; a row is a receiver, and node 0 is the
    document.
    """
    return np.asarray(weights[-1], np.float32).mean(axis=0)
