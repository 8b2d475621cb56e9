"""The parts of a run, and which of its documents each step and task reads."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from docjax.data import splits
from docjax.data.corpus import Corpus
from docjax.data.examples import Examples, Known
from docjax.data.halved import Halved, TrainingCorpus
from docjax.data.prompts import prompted
from docjax.data.segments import segments
from docjax.data.tokenizer import Tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.run import corpora
from docjax.run.fields import LARGEST_BATCH, RunConfig
from docjax.types import (
    DOCUMENT,
    QUERY,
    Document,
    Frame,
    GraphBuilder,
    ObjectiveWithTeacher,
    Order,
    ReadLimits,
    SegmentCutter,
    Segments,
    Task,
    Units,
    Views,
)

LEAST_IN_REACH = 20_000  # documents that a sample for the steps has at least
MOST_SCORED = 50_000  # labelled documents of a part that the tasks of a run read


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """The parts of a run; `config` is complete."""

    config: RunConfig
    run: Path
    tokenizer: Tokenizer
    corpus: Corpus
    queries: Corpus | None  # None if the examples have no queries
    classes: list[str]
    encoder: DocumentEncoder
    begun: bool = False  # training had begun in an earlier start of the run
    halved: Halved | None = None  # what training reads as two units, if the views ask

    @functools.cached_property
    def views(self) -> Views:
        """The views that training reads, fitted to the training documents."""
        views = self.config.views.built
        return views.fitted(self.tokenizer, self.corpus, self.trained_on)

    @functools.cached_property
    def examples(self) -> Examples:
        """What training compares."""
        known = Known(
            run=self.run,
            source=self.documents,
            corpus=self.corpus,
            queries=self.queries,
            documents=self.learnt_from,
            labels=self.labels,
            seed=self.config.seed,
        )
        return self.config.examples.built.among(known)

    @property
    def graph(self) -> GraphBuilder | None:
        return self.config.graph and self.config.graph.built

    @property
    def cutter(self) -> SegmentCutter:
        return self.config.segments.built

    @functools.cached_property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks by name."""
        return {name: part.built for name, part in self.config.tasks.items()}

    def changed(self, **fields: Any) -> "Prepared":
        """A copy with other fields that keeps the views and examples if they are known.

        They must not depend on these fields, as they do not on the vectors of a corpus.
        """
        copy = dataclasses.replace(self, **fields)
        known = {k: v for k, v in vars(self).items() if k in ("views", "examples")}
        vars(copy).update(known)
        return copy

    def model(
        self, params: Any, mesh: jax.sharding.Mesh | None = None
    ) -> DocumentModel:
        """The run's model with the parameters `params`."""
        return DocumentModel(
            encoder=self.encoder,
            params=params,
            tokenizer=self.tokenizer,
            units=self.config.units.built,
            segments=self.cutter,
            graph=self.graph,
            limits=ReadLimits.of(dataclasses.asdict(self.config.limits)),
            labels=self.config.labels or (),
            similarity_fn_name=self.config.similarity,
            mesh=mesh,
            prompts=self.config.prompts.by_name(),
        )

    def rows(self, part: str) -> np.ndarray:
        """The numbers of the documents in the part "train", "validation" or "test"."""
        name = getattr(self.config.splits, part)
        return splits.rows(self.corpus.splits, name, with_none=part == "train")

    @property
    def trained_on(self) -> np.ndarray:
        """The numbers of the documents that training reads; all if transductive."""
        return corpora.rows_trained_on(self.config, self.corpus)

    @functools.cached_property
    def frames(self) -> Mapping[str, Frame]:
        """The special tokens and the prompt around a segment of each kind."""
        limits, prompts = self.config.limits, self.config.prompts
        of_documents = prompted(self.tokenizer, prompts.document)
        of_queries = prompted(self.tokenizer, prompts.query)
        return {
            DOCUMENT: of_documents.frame(limits.segment_tokens),
            QUERY: of_queries.frame(limits.query_segment),
        }

    @property
    def is_read_once(self) -> bool:
        """Whether the segment encoder reads units before the first step and not again:
        it is not trained, and every unit is one segment."""
        return self.cutter.one_each and self.encoder.segment_is_frozen

    @functools.cached_property
    def training_corpus(self) -> Corpus | TrainingCorpus:
        """The documents as the training views read them."""
        return TrainingCorpus(self.corpus, self.halved) if self.halved else self.corpus

    @functools.cached_property
    def held_out(self) -> np.ndarray:
        """The training documents that the steps must not learn from."""
        keep, rows = self.config.keep.built, self.trained_on
        held_out = keep.held_out(rows, self.config.seed)
        if not len(np.setdiff1d(rows, held_out)):
            raise UserError(
                f"keep {self.config.keep.fn} holds out all {len(rows)} training documents, "
                "so that the steps have none: held_out must return some of the rows"
            )
        return held_out

    @property
    def samples(self) -> bool:
        """Whether the steps may learn from a sample: they read single documents and a
        teacher's vectors of them."""
        has_teacher = isinstance(self.config.objective.built, ObjectiveWithTeacher)
        return has_teacher and self.config.examples.says("independent")

    @functools.cached_property
    def in_reach(self) -> np.ndarray:
        """The training documents that the steps can read.

        If the steps may learn from a sample and their number is known, they are an even
        sample, large enough for the batches of all steps. It does not depend on the
        seed.
        """
        config = self.config
        if not self.samples or config.steps is None:
            return self.trained_on
        most = config.steps * max(config.batch or 0, LARGEST_BATCH)
        return splits.spread(self.trained_on, max(most, LEAST_IN_REACH))

    @property
    def learnt_from(self) -> np.ndarray:
        """The numbers of the documents that the steps learn from."""
        return np.setdiff1d(self.in_reach, self.held_out)

    def scored(self, part: str) -> np.ndarray:
        """The numbers of the labelled documents of a part that tasks read.

        Of more than MOST_SCORED they are drawn at random, the same for every seed.
        """
        labels = self.corpus.labels
        rows = [row for row in self.rows(part) if labels[row] is not None]
        drawn = np.random.default_rng(0).permutation(np.array(rows, int))
        return np.sort(drawn[:MOST_SCORED])

    def segments(self, units: Units, order: Order | None = None) -> Segments:
        """The segments of a document that the run's model reads.

        Args:
          order: puts them in another order first. With limits, a frozen encoder has not
            read all of them, so that they come without vectors.
        """
        limits = self.config.limits
        whole = self.all_segments(units)
        if order:
            limited = None not in (limits.training_units, limits.inference_segments)
            vectors = None if limited else whole.vectors
            whole = order(dataclasses.replace(whole, vectors=vectors))
        return whole.first(limits.inference_segments)

    def all_segments(self, units: Units) -> Segments:
        """The segments of a document, those that the model does not read too."""
        return segments(units, self.cutter, self.frames[DOCUMENT])

    def documents(self) -> Iterator[Document]:
        """Reads the source's documents again, with their texts."""
        return corpora.source(self.config)()

    @property
    def labels(self) -> np.ndarray:
        """The class number of each training document; -1 without a known label.

        Also -1 for documents of other splits, whose texts a transductive run reads.
        """
        numbers = {label: i for i, label in enumerate(self.classes)}
        labels = np.full(len(self.corpus), -1, np.int32)
        for row in self.rows("train").tolist():
            labels[row] = numbers.get(self.corpus.labels[row], -1)
        return labels
