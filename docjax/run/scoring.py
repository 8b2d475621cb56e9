"""Runs the tasks that a config names on the documents of its run.

`plain_data` has the same documents with the vectors of the encoder `init` alone.
"""

import collections
import dataclasses
import functools
import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from docjax.data import documents as documents_lib
from docjax.data.prompts import document_prompt
from docjax.encoders.document import DocumentEncoder, param_shapes
from docjax.encoders.pooling import Mean
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.model.load import load, load_transformer
from docjax.model.reading import CHARACTERS_AT_ONCE, TEXTS_AT_ONCE
from docjax.model.task_data import FileData
from docjax.run.fields import Prompts, is_run
from docjax.run.parameters import start_params
from docjax.run.prepared import Prepared
from docjax.storage.arrays import digest
from docjax.tasks.embeddings import NoLabels
from docjax.tasks.runner import scores
from docjax.types import Document, Encoded, Segments, Task, TaskData

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, eq=False)
class Scoring:
    """The tasks of a run's config.

    `ready` maps each part that was checked to the tasks whose data are there;
    `compared` is as in `RunData`. `scored` has the vectors by id of the documents that
    were scored last, by a digest of the parameters.
    """

    prepared: Prepared
    mesh: jax.sharding.Mesh
    ready: dict[str, dict[str, Task]] = dataclasses.field(default_factory=dict)
    compared: dict[int, bytes] = dataclasses.field(default_factory=dict)
    scored: dict[str, dict[str, np.ndarray]] = dataclasses.field(default_factory=dict)

    def __call__(self, params: Any, part: str = "test") -> dict[str, float]:
        """Metrics named `eval/TASK/METRIC`, or `validation/TASK/METRIC` for validation."""
        data = self.data(params)
        found = scores(self.checked(data, part), data, part)
        self.scored.clear()
        if jax.process_count() == 1:
            self.scored[digest("", params)] = data.kept
        return found

    def checked(self, data: "RunData", part: str) -> dict[str, Task]:
        """The tasks whose data are there.

        The first call also checks the test part, because every run ends with it. A task
        that needs labels is left out with a warning if no document of a part has one.

        Raises:
          UserError: if a task lacks other data; no document is encoded before that.
        """
        for name in (part, "test"):
            if name not in self.ready:
                self.ready[name] = self._with_data(data, name)
        return self.ready[part]

    def check(self, mode: str) -> dict[str, dict[str, Task]]:
        """What `checked` finds for a run's mode, before the run has parameters. Raises
        UserError as `checked`."""
        validates = mode == "train" and self.prepared.config.splits.validation
        if mode != "export":
            data = self.data(param_shapes(self.prepared.encoder))
            self.checked(data, "validation" if validates else "test")
        metric = self.prepared.config.keep.built.metric
        scored = self.ready.get("validation", {})
        if mode == "train" and metric and metric.partition("/")[0] not in scored:
            raise UserError(
                f"keep.metric {metric!r}: no document of the split {validates!r} can be "
                "scored; give some, with labels where the task needs them, or make them "
                'of the training documents: --config.holdout=\'{"fn": '
                '"docjax.data.splits.holdout", "validation": 0.1}\''
            )
        return self.ready

    def data(self, params: Any) -> "RunData":
        """The run's documents as tasks read them, encoded with `params`."""
        return RunData(
            self.prepared.model(params, self.mesh),
            self.prepared.documents,
            folder=self.prepared.run,
            prepared=self.prepared,
            compared=self.compared,
        )

    def scored_data(self, params: Any) -> "RunData":
        """As `data`, without encoding again what was scored last with `params`."""
        vectors = self.scored.get(digest("", params), {}) if self.scored else {}
        return dataclasses.replace(self.data(params), kept=vectors)

    def _with_data(self, data: "RunData", part: str) -> dict[str, Task]:
        """The tasks that the data are enough for; warns of a task that lacks labels."""
        ready = {}
        for name, task in self.prepared.tasks.items():
            try:
                task.check(data, part)
                ready[name] = task
            except NoLabels as error:
                logger.warning("task %s is left out: %s", name, error)
        if ready:
            self._log_labels(part)
        return ready

    def _log_labels(self, part: str) -> None:
        """Logs how many documents of a part have no label, and how many are scored."""
        labels = self.prepared.corpus.labels
        for name in ("train", part) if part == "test" else (part,):
            rows, scored = self.prepared.rows(name), len(self.prepared.scored(name))
            labelled = sum(labels[row] is not None for row in rows)
            if name == part and labelled < len(rows):
                logger.info("%d %s documents have no label", len(rows) - labelled, part)
            if scored < labelled:
                logger.info(
                    "tasks that need labels read %d of the %d labelled %s documents, "
                    "drawn at random; docjax evaluate --data FILE reads all",
                    *(scored, labelled, name),
                )


@dataclasses.dataclass(frozen=True, eq=False)
class RunTexts(FileData):
    """The documents of a run, in the parts that `config.splits` names; of the labelled
    documents those that `Prepared.scored` names."""

    prepared: Prepared = dataclasses.field(kw_only=True)

    def documents(self, part: str) -> Iterator[Document]:
        rows = set(self.prepared.rows(part).tolist())
        return (document for row, document in enumerate(self.source()) if row in rows)

    @functools.cached_property
    def label_of(self) -> dict[str, dict[str, str]]:
        corpus = self.prepared.corpus
        return {
            part: {
                corpus.ids[row]: corpus.labels[row]
                for row in self.prepared.scored(part).tolist()
            }
            for part in ("train", "validation", "test")
        }


@dataclasses.dataclass(frozen=True, eq=False)
class RunData(RunTexts):
    """The documents of a run; their tokens come from the run's corpus.

    `compared` has a digest of each text that was found to be that of a row of the
    corpus: it is not tokenised again.
    """

    compared: dict[int, bytes] = dataclasses.field(default_factory=dict)

    def missing(self, ids: Iterable[str]) -> list[str]:
        return sorted(set(ids).difference(self.prepared.corpus.ids))

    def read(self, ids: list[str]) -> Iterator[tuple[str, Float[np.ndarray, " d"]]]:
        known = [name for name in ids if name in self._rows]
        documents = (self._document(self._rows[name]) for name in known)
        encode = self.model.inference().encode
        vectors = encode(self.model.params, documents, len(known))
        return zip(known, vectors, strict=True)

    def encode_once(
        self,
        documents: Iterable[Document],
        counts: dict[str, Any],
        *,
        passages: bool = False,
    ) -> Iterator[Encoded]:
        """As `FileData` does; a document that the corpus has with the vectors of its
        segments is not read again."""
        if not self.prepared.corpus.vectors:
            yield from super().encode_once(documents, counts, passages=passages)
            return
        names: collections.deque[str] = collections.deque()

        def with_names_kept() -> Iterator[Document]:
            for document in documents:
                names.append(document.id)
                yield document

        known = self._read(with_names_kept(), counts)
        inference, params = self.model.inference(), self.model.params
        if passages:
            pairs = inference.with_passages(params, known)
        else:
            pairs = ((vector, None) for vector in inference.encode(params, known))
        for vector, parts in pairs:
            counts["width"] = len(vector)
            yield Encoded(names.popleft(), vector, parts)

    def segments(self, part: str) -> Iterator[Segments]:
        return (self._document(row) for row in self.prepared.rows(part).tolist())

    def _read(
        self, documents: Iterable[Document], counts: dict[str, int]
    ) -> Iterator[Segments]:
        """What the model reads of each document, with the vectors that are known."""
        self.model.read((), counts)  # names all counts, also of no documents
        for part in documents_lib.parts(documents, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE):
            rows = [self._rows.get(document.id) for document in part]
            texts = [_digest(document) for document in part]
            is_known = [
                self.compared.get(row) == text
                for row, text in zip(rows, texts, strict=True)
            ]
            new = [each for each, known in zip(part, is_known) if not known]
            cut = self.model.read(new, counts)
            for row, text, known in zip(rows, texts, is_known, strict=True):
                if known:
                    whole = self.prepared.all_segments(self.prepared.corpus[row])
                    order = self.model.order
                    yield self.model.capped(order(whole) if order else whole, counts)
                else:
                    yield self._with_vectors(row, text, next(cut))

    def _with_vectors(
        self, row: int | None, text: bytes, segments: Segments
    ) -> Segments:
        """The segments of a text; those of the row, with vectors, if they are equal."""
        if row is None:
            return segments
        known, arrays = self._document(row), ("tokens", "offsets", "places", "edges")
        for name in arrays:
            if not np.array_equal(getattr(known, name), getattr(segments, name)):
                return segments
        self.compared[row] = text
        return known

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.prepared.corpus.ids)}

    def _document(self, row: int) -> Segments:
        return self.prepared.segments(self.prepared.corpus[row], self.model.order)


def _digest(document: Document) -> bytes:
    """A digest of the text that a model reads of a document."""
    read = repr((document.title, document.sections, document.edges))
    return hashlib.blake2b(read.encode(errors="replace"), digest_size=8).digest()


def plain_data(
    prepared: Prepared, mesh: jax.sharding.Mesh
) -> dict[str, Callable[[], TaskData]]:
    """The vectors that a user has of `init` alone: cut at its limit, and of all words.

    Empty unless `init` is a Hugging Face model. If `init` has read all words of the
    run's corpus, the vectors of its segments are taken from there; otherwise it reads
    the documents when the data are asked for. Where the run cuts texts at sections or
    passages, "all words" is the mean of the run's own segments, and `init` reads the
    text cut at its limit. If `init` does not say how it pools, it pools as the
    run does, provided that the run begins as the mean of its vectors.
    """
    init = prepared.config.init
    if not init or is_run(init):
        return {}
    try:
        facts = weights.describe(init)
    except UserError as error:  # the folder has moved since training began
        logger.warning("the report does without the vectors of init: %s", error)
        return {}
    if not facts.says_pooling and prepared.encoder.document.begins_as_mean:
        pooling = prepared.encoder.inner_segment.pooling
        facts = dataclasses.replace(facts, pooling=pooling)
    of_texts = functools.partial(_of_texts, prepared, facts)
    of_run = functools.partial(_of_run, prepared, mesh, facts)
    has_read = _init_has_read_all(facts, prepared)
    pieces = _pieces_in_words(prepared) if has_read else ""
    cut = of_run if has_read and not pieces else of_texts
    return {
        f"cut at {facts.max_tokens} tokens": functools.partial(cut, 1),
        f"all words{pieces}": functools.partial(of_run if has_read else of_texts, None),
    }


def _pieces_in_words(prepared: Prepared) -> str:
    """How the run cuts texts, for the name of a row; "" where the limit alone cuts."""
    if words := prepared.config.units.says("cut_in_words"):
        return f", {words}"
    return ", section by section" if prepared.corpus.has_sections else ""


def _init_has_read_all(facts: Any, prepared: Prepared) -> bool:
    """Whether the corpus has the vectors that `init` alone gives to all its segments."""
    config, segment = prepared.config, prepared.encoder.segment
    limits, cut = config.limits, config.units.says("cut_in_words")
    as_long = limits.segment_tokens == facts.max_tokens
    return (
        bool(prepared.corpus.vectors)
        and None in (limits.training_units, limits.inference_segments)
        and (config.prompts.document or "") == _own_prompts(prepared, facts).document
        and cut is not None
        and (bool(cut) or as_long)
        and segment.reads_prompts
        and segment.pooling == facts.pooling
        and not segment.normalize
    )


def _of_run(
    prepared: Prepared, mesh: jax.sharding.Mesh, facts: Any, most: int | None
) -> RunData:
    """The mean of the vectors of the first `most` segments, from the run's corpus."""
    config, corpus = prepared.config, prepared.corpus
    limits = dataclasses.replace(config.limits, inference_segments=most)
    own = _own_prompts(prepared, facts)
    segment = prepared.encoder.segment.clone(words=0)
    alone = dataclasses.replace(
        prepared,
        config=dataclasses.replace(config, limits=limits, prompts=own, graph=None),
        corpus=corpus.with_vectors(corpus.vectors[0], rows=corpus.rows_with_vectors),
        encoder=DocumentEncoder(segment, Mean(facts.normalize)),
    )
    params = start_params(config, alone.encoder, prepared.run)
    model, documents = alone.model(params, mesh), prepared.documents
    return RunData(model, documents, prepared=alone, warns=most is None)


def _own_prompts(prepared: Prepared, facts: Any) -> Prompts:
    """The prompts for `init` alone: its own; those of the config where it has none."""
    own = document_prompt(facts.prompts, facts.default_prompt_name)
    asked = prepared.config.prompts.filled(Prompts("", ""))
    return Prompts(own or asked.document, facts.prompts.get("query") or asked.query)


def _of_texts(prepared: Prepared, facts: Any, most: int | None) -> RunTexts:
    """The vectors of the first `most` segments that `init` reads of each document."""
    init = prepared.config.init
    says = facts.says_pooling
    alone = load(init) if says else load_transformer(init, facts.pooling)
    model = dataclasses.replace(
        alone,
        limits=alone.limits._replace(inference_segments=most),
        prompts=_own_prompts(prepared, facts).by_name(),
        default_prompt_name=None,
    )
    documents, warns = prepared.documents, most is None
    return RunTexts(model, documents, prepared=prepared, warns=warns)
