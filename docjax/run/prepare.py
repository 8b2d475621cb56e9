"""Builds what a config names: tokenizer, corpora, examples, views and encoder.

Training and evaluation start here. `corpora.py` reads the documents, `parameters.py`
makes the parameters, and `docs/design.md` lists the fields of a config.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import logging

from docjax.data import splits
from docjax.data.corpus import Corpus
from docjax.data.examples import Examples, Known
from docjax.data.halved import MOST as MOST_HALVED
from docjax.data.halved import Halved, TrainingCorpus
from docjax.data.prompts import prompted
from docjax.data.segments import segments
from docjax.data.tokenizer import Tokenizer, check_fits, load_tokenizer
from docjax.encoders.document import DocumentEncoder
from docjax.encoders.from_mean import FromMean
from docjax.encoders.shapes import segment_is_frozen, segment_of
from docjax.encoders.token_encoder import TokenEncoder
from docjax.errors import UserError
from docjax.huggingface import files, weights
from docjax.model.document_model import DocumentModel
from docjax.objectives.similarity import similarity_of
from docjax.run import continued, corpora, fields, from_data, from_init, words
from docjax.run.check_parts import check_parts
from docjax.run.fields import RunConfig, begun, is_run
from docjax.storage import atomic, json_file
from docjax.storage.processes import wait
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

LEAST_JUDGED = 100  # with fewer training documents no judgement is possible
MOST_JUDGES = 500  # documents that judge
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
    graph: GraphBuilder | None
    cutter: SegmentCutter
    halved: Halved | None = None  # what training reads as two units, if the views ask

    @functools.cached_property
    def views(self) -> Views:
        """The views that training reads, fitted to the training documents."""
        views = self.config.views.build()
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
        return self.config.examples.build().among(known)

    @functools.cached_property
    def tasks(self) -> Mapping[str, Task]:
        """The tasks by name."""
        return {name: part.build() for name, part in self.config.tasks.items()}

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
            units=self.config.units.build(),
            segments=self.cutter,
            graph=self.graph,
            limits=ReadLimits.of(dataclasses.asdict(self.config.limits)),
            labels=self.config.labels or (),
            similarity_fn_name=similarity_of(self.config.objective.to_json()),
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
        return self.cutter.one_each and segment_is_frozen(self.encoder)

    @functools.cached_property
    def training_corpus(self) -> Corpus | TrainingCorpus:
        """The documents as the training views read them."""
        return TrainingCorpus(self.corpus, self.halved) if self.halved else self.corpus

    @property
    def is_judged(self) -> bool:
        """Whether a judgement without labels ends the run."""
        return self.has_teacher and not self.config.select

    @property
    def has_teacher(self) -> bool:
        """Whether the objective reads the vectors of the start."""
        return isinstance(self.config.objective.build(), ObjectiveWithTeacher)

    @functools.cached_property
    def judges(self) -> np.ndarray:
        """The documents whose excerpts judge a run or choose the share of the words.

        Empty if neither is asked for, or with too few documents.
        """
        rows, document = self.trained_on, self.encoder.document
        chooses = isinstance(document, FromMean) and document.chooses_share
        if not (self.is_judged or chooses) or len(rows) < LEAST_JUDGED:
            return rows[:0]
        count = min(MOST_JUDGES, max(len(rows) // 10, min(100, len(rows) // 4)))
        generator = np.random.default_rng((self.config.seed, 3))
        return np.sort(generator.permutation(rows)[:count])

    @property
    def searched(self) -> np.ndarray:
        """The documents in reach that do not judge; the excerpts search them."""
        return np.setdiff1d(self.in_reach, self.judges)

    @property
    def learns_alone(self) -> bool:
        """Whether a step reads single documents and the teacher's vectors of them."""
        examples = self.config.examples.build()
        alone = len(examples.kinds) == 1 and not getattr(examples, "related", None)
        return self.has_teacher and alone

    @functools.cached_property
    def in_reach(self) -> np.ndarray:
        """The training documents that the steps can read.

        With a teacher and a number of steps they are an even sample, large enough for
        the batches of all steps. It does not depend on the seed. Documents that are
        related stay together, so that they are not sampled.
        """
        config = self.config
        if not self.learns_alone or config.steps is None:
            return self.trained_on
        most = config.steps * max(config.batch or 0, from_data.LARGEST_BATCH)
        return splits.spread(self.trained_on, max(most, LEAST_IN_REACH))

    @property
    def learnt_from(self) -> np.ndarray:
        """The numbers of the documents that the steps learn from.

        Documents that judge the result are not among them.
        """
        rows = self.in_reach
        return np.setdiff1d(rows, self.judges) if self.is_judged else rows

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


def prepare(config: Any, run: Path) -> Prepared:
    """Builds all parts of a run except its parameters, and writes config.json.

    Raises:
      UserError: for a mistake in a field, bad documents, a tokenizer that does not fit,
        or a run directory of another config.
    """
    wait("start")  # a later first wait would not outlast the tokenizer
    config = checked(config, run)
    _make(run)
    tokenizer = corpora.tokenizer(config, run, _tokenizer_of)
    config = from_data.fill_vocabulary(config, tokenizer.vocabulary)
    continued.check_same(config, run)
    vocabulary = config.encoder.build().segment.vocabulary
    check_fits(tokenizer, vocabulary, loaded=bool(config.init))
    corpus = corpora.corpus(config, run, prompted(tokenizer, config.prompts.document))
    of_queries = prompted(tokenizer, config.prompts.query)
    classes = sorted({label for label in corpus.labels if label is not None})
    config = from_data.fill_classes(config, classes)
    prepared = Prepared(
        config=config,
        run=run,
        tokenizer=tokenizer,
        corpus=corpus,
        queries=corpora.queries(config, run, of_queries),
        classes=classes,
        encoder=config.encoder.build(),
        graph=config.graph and config.graph.build(),
        cutter=config.segments.build(),
    )
    _check_splits(prepared)
    config = from_data.fill_batch(config, run, lambda: len(prepared.examples))
    special, reads_queries = prepared.frames[DOCUMENT].special, bool(prepared.queries)
    config = from_data.fill_microbatch(config, run, special, reads_queries)
    prepared = prepared.changed(config=config, halved=_halved(prepared))
    _fit_words(prepared)
    wait("config")
    if jax.process_index() == 0:
        json_file.write(run / "config.json", prepared.config.to_json())
    return prepared


def _make(run: Path) -> None:
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"--workdir {run}: cannot be made ({error.strerror}); name another folder"
        ) from None


def checked(config: Any, run: Path) -> RunConfig:
    """The config's fields, checked before any document is read.

    Raises:
      UserError: for a mistake in a field, and for parts that cannot be trained.
    """
    resolved = fields.resolve(config)
    resolved = dataclasses.replace(resolved, init=_pinned(resolved.init, run))
    resolved = from_init.filled(resolved, run, weights.describe)
    continued.check_compared(resolved)
    if not begun(run):
        continued.check_encoder(resolved)
        check_parts(resolved)
    return resolved


def _tokenizer_of(init: str) -> Tokenizer:
    """The tokenizer of a Hugging Face folder or name."""
    facts = weights.describe(init)
    return load_tokenizer(facts.folder, facts.lowercase)


def _pinned(init: str | None, run: Path) -> str | None:
    """`init`; a hub name becomes NAME@COMMIT, the commit that this run began with."""
    saved = fields.read(run).init if (run / "config.json").exists() else None
    if saved and init in (saved, saved.partition("@")[0]):
        return saved
    return files.pinned(init) if init else None


def _halved(prepared: Prepared) -> Halved | None:
    """The documents that training reads as two units, or None; logs what training reads.

    They do not depend on the seed, so that runs on one corpus can share their vectors.
    """
    _log_reach(prepared)
    tokens = prepared.config.reads_views and prepared.config.views.build().halve_from
    if not tokens:
        return None
    most = MOST_HALVED if prepared.is_read_once else None
    halved = Halved.of(prepared.corpus, prepared.in_reach, tokens, most)
    rows = prepared.learnt_from
    single = rows[prepared.corpus.counts[rows] == 1]
    in_two = int(np.isin(single, halved.rows).sum())
    logging.info(
        "training reads %d documents as two halves; both views of %d others of one unit "
        "are the whole text",
        *(in_two, len(single) - in_two),
    )
    return halved


def _fit_words(prepared: Prepared) -> None:
    """Writes RUN/words.npy, if the segment encoder has word vectors without `init`."""
    segment, init = segment_of(prepared.encoder), prepared.config.init
    if not isinstance(segment, TokenEncoder) or not segment.words:
        return
    path = prepared.run / "words.npy"
    if jax.process_index() or (init and is_run(init)):
        return
    if begun(prepared.run) and path.exists():  # else it may be of another config
        return
    rows = np.setdiff1d(prepared.trained_on, prepared.judges)
    document = prepared.encoder.document
    alone = isinstance(document, FromMean) and document.words_alone
    sizes = segment.vocabulary, rows, segment.words
    table = words.fitted(prepared.corpus, *sizes, alone)
    # Words of a prompt would count in every text, so their vectors are zero.
    table[np.concatenate([frame.prefix for frame in prepared.frames.values()])] = 0
    atomic.write_array(path, table)


def _log_reach(prepared: Prepared) -> None:
    """Says how many documents the steps learn from, if they cannot read all."""
    rows, count = prepared.learnt_from, len(prepared.trained_on)
    if len(prepared.in_reach) < count:
        logging.info(
            "the steps learn from %d of %d training documents, evenly spread, because "
            "they cannot read all",
            *(len(rows), count),
        )


def _check_splits(prepared: Prepared) -> None:
    """Checks that there are documents to train on; warns of splits without a name in
    the config.

    A transductive run trains on all documents all the same.

    Raises:
      UserError: if no document is left to train on.
    """
    config = prepared.config
    known = {None, *dataclasses.asdict(config.splits).values()}
    counts = Counter(split for split in prepared.corpus.splits if split not in known)
    if not len(prepared.trained_on):
        sizes = Counter(prepared.corpus.splits)
        there = ", ".join(f"{split!r} ({count})" for split, count in sizes.items())
        field = "--config.holdout"
        whole = """='{"fn": "docjax.data.splits.holdout", "of": SPLIT}'"""
        raise UserError(
            f"no document is in the split {config.splits.train!r}, but in {there}: set "
            "--config.splits.train, or divide one with "
            f"{field + '.of' if config.holdout else field + whole}"
        )
    for split, count in counts.items():
        logging.warning(
            "%d documents are in the split %r: %s; set --config.splits",
            count,
            split,
            "in no task" if config.transductive else "not used",
        )
