"""The documents of a run: their source, the tokenizer, and the corpora on disk.

`begun` says that training has begun in the run.
"""

import contextlib
import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Int

from docjax.data import corpus as corpus_lib
from docjax.data import corpus_files, once, splits
from docjax.data.corpus import Corpus
from docjax.data.counted import check_names
from docjax.data.records import full_text
from docjax.data.seen import Seen
from docjax.data.sources.lines import check_again
from docjax.data.streams import shown
from docjax.data.tokenizer import Tokenizer, load_tokenizer
from docjax.data.units import Whole
from docjax.errors import UserError
from docjax.huggingface import weights
from docjax.parts import outside
from docjax.parts.outside import errors_named
from docjax.progress.bars import bar
from docjax.run.fields import RunConfig, is_run
from docjax.run.places import Part
from docjax.storage import json_file, manifest
from docjax.storage.digest import digest
from docjax.storage.processes import wait
from docjax.types import QUERY, Document

logger = logging.getLogger(__name__)

# Fields that the tokenizer of a run depends on.
OF_TOKENIZER = ("tokenizer", "init", "source", "holdout", "splits", "transductive")


def source(config: RunConfig) -> Callable[[], Iterator[Document]]:
    """A function that yields the source's documents, each with its split."""
    read = functools.partial(documents, config.source)
    split = config.holdout.built if config.holdout else _with_test
    return functools.partial(split, read)


def documents(part: Part) -> Iterator[Document]:
    """The documents that a source yields.

    Raises:
      UserError: for anything else that it yields, for an error that it raises, and for
        a stream.
    """
    check_again(str(part.keywords.get("path")))  # training reads several times
    place, is_ours = f"source {part.fn}", part.fn.startswith("docjax.")
    with (
        errors_named(part.allow, place),
        _file_named(part),
        contextlib.closing(Seen()) as ids,
    ):
        for document in part.built():
            if not isinstance(document, Document):
                raise UserError(
                    f"{place} yields a {type(document).__name__}, not a "
                    "docjax.types.Document"
                )
            if not is_ours:  # docjax's sources check what they read
                check_names(document, place, ids)
            yield document


@contextlib.contextmanager
def _file_named(part: Part) -> Iterator[None]:
    """Adds the field that mends it to the error of a source without its file."""
    try:
        yield
    except UserError as error:
        if str(error) != f"{part.keywords.get('path')}: no such file":
            raise
        raise UserError(
            f"{error}; name your documents with --config.source.path=FILE"
        ) from None


def _with_test(documents: Callable[[], Iterator[Document]]) -> Iterator[Document]:
    """The documents, with a test part if they have labels and no splits.

    Documents without a label keep their splits.
    """
    parts = splits.parts_of_labels(documents())
    if parts:
        # A run reads its source several times.
        once.say(splits.NO_SPLIT)
    for each in documents():
        is_known = each.id in parts
        yield dataclasses.replace(each, split=parts[each.id]) if is_known else each


def trained_on(config: RunConfig) -> Iterator[Document]:
    """The documents that training reads; a transductive run reads all. Raises UserError
    at the end if there is none."""
    counts: Counter = Counter()
    for document in source(config)():
        counts[document.split] += 1
        if config.transductive or document.split in (config.splits.train, None):
            yield document
    check_trained(config, counts)


def check_trained(config: RunConfig, counts: Counter[str | None]) -> None:
    """Raises UserError if no document trains; `counts` are the documents by split."""
    if config.transductive or counts[config.splits.train] or counts[None]:
        return
    there = ", ".join(f"{shown(split)} ({count})" for split, count in counts.items())
    field = "--config.holdout"
    whole = """='{"fn": "docjax.data.splits.holdout", "of": SPLIT}'"""
    mend = f"divide one with {field + '.of' if config.holdout else field + whole}"
    if config.holdout and not config.holdout.fn.startswith("docjax."):
        mend = f"let {config.holdout.fn} leave documents to train on"
    raise UserError(
        f"no document is in the split {config.splits.train}; the splits are {there}: "
        f"set --config.splits.train, or {mend}"
    )


def rows_trained_on(config: RunConfig, corpus: Corpus) -> Int[np.ndarray, " b"]:
    """The numbers of the documents that training reads."""
    if config.transductive:
        return np.arange(len(corpus))
    return splits.rows(corpus.splits, config.splits.train, with_none=True)


def tokenizer(config: RunConfig, run: Path, begun: bool) -> Tokenizer:
    """The tokenizer in RUN/tokenizer.json; made first if it is not this config's."""
    path = run / "tokenizer.json"
    is_current = lambda: path.exists() and (begun or _made_by(config, run))
    if jax.process_index() == 0 and not is_current():
        _make_tokenizer(config).save(path)
    wait("tokenizer")
    return load_tokenizer(path)


def corpus(config: RunConfig, run: Path, begun: bool, tokenizer: Tokenizer) -> Corpus:
    """The tokenised corpus in the run directory, which the first process makes.

    Raises:
      UserError: if the documents have changed since training began.
    """
    units, limit = config.units.built, config.limits.segment_tokens
    if jax.process_index() == 0:
        quick = _fingerprint(config, tokenizer, False)
        contents = functools.cache(lambda: _fingerprint(config, tokenizer, True))
        folder = run / "corpus"
        facts = corpus_files.read_facts(folder)
        changed = facts and not manifest.agrees(facts, quick, contents)
        if begun and changed:
            raise UserError(
                f"{run}: the documents have changed since training began (other files "
                "or package versions); start a new run in another --workdir"
            )
        split_documents = source(config)()
        Corpus.build(folder, split_documents, units, tokenizer, limit, quick, contents)
    wait("corpus")
    return Corpus.open(run / "corpus")


def _fingerprint(config: RunConfig, tokenizer: Tokenizer, content: bool) -> str:
    """What the corpus was made from, or with `content` what is in it.

    Foreign code may read anything. Its contents are therefore the documents and units
    that it yields, and so is its state if its module has no `stamp`.
    """
    documents, units, holdout = config.source.built, config.units.built, config.holdout
    parts = documents, units, tokenizer, config.limits.segment_tokens, content
    with _file_named(config.source):
        facts = corpus_lib.fingerprint(*parts) + repr(holdout and holdout.to_json())
    code = outside.code_of(documents, units, holdout and holdout.built)
    if not code:
        return facts
    if content or not corpus_lib.stamp_of(documents):
        facts += corpus_lib.contents_of(source(config)(), units)
    return facts if content else facts + code


def check_inputs(config: RunConfig, run: Path, begun: bool) -> None:
    """Records the sha256 of the files that examples and views read in RUN/inputs.json.

    Raises:
      UserError: if a file has changed since training began.
    """
    if jax.process_index():
        return
    path = run / "inputs.json"
    digests = _digests(config.files())
    if not begun:
        json_file.write(path, digests)
        return
    before = json_file.read(path) if path.exists() else {}
    changed = sorted(dict(digests.items() ^ before.items()))
    if changed:
        raise UserError(
            f"{run}: {', '.join(changed)} changed since training began; start a new run "
            "in another --workdir"
        )


def queries(config: RunConfig, run: Path, tokenizer: Tokenizer) -> Corpus | None:
    """A corpus of the queries that the examples name; each query is one unit.

    Queries longer than the limit are cut, and a warning counts them.
    """
    examples = config.examples.built
    if QUERY not in examples.kinds:
        return None
    limit, folder = config.limits.query_segment, run / "queries"
    if jax.process_index() == 0:
        facts = corpus_files.read_facts(run / "corpus") or {}
        parts = [examples, Whole(), _digests(examples.files())]
        settings = corpus_lib.fingerprint(None, parts, tokenizer, limit)
        documents = examples.queries(source(config))
        code = outside.code_of(examples)
        fingerprint = f"{settings} {facts.get('fingerprint')}{code}"
        Corpus.build(folder, documents, Whole(), tokenizer, limit, fingerprint)
    wait("queries")
    query_corpus = Corpus.open(folder)
    too_long = int((query_corpus.counts > 1).sum())
    if too_long:
        logger.warning(
            "%d of %d queries are cut: they have more than %d tokens, the smaller of "
            "limits.query_tokens and limits.segment_tokens",
            *(too_long, len(query_corpus), limit),
        )
    return query_corpus


def _digests(files: Iterable[Path]) -> dict[str, str]:
    """The sha256 of each file."""
    return {str(file): digest(file) or "unreadable" for file in files}


def _made_by(config: RunConfig, run: Path) -> bool:
    """Whether the run's config.json asks for the same tokenizer, and the documents that
    it was trained on, if any, are those of the corpus."""
    if not (run / "config.json").exists():
        return False
    saved, now = json_file.read(run / "config.json"), config.to_json()
    if any(saved.get(name) != now[name] for name in OF_TOKENIZER):
        return False
    if config.tokenizer.path or config.init:
        return True
    facts = corpus_files.read_facts(run / "corpus")
    tokenizer = load_tokenizer(run / "tokenizer.json")
    made = functools.partial(_fingerprint, config, tokenizer)
    return bool(facts) and manifest.agrees(facts, made(False), lambda: made(True))


def _make_tokenizer(config: RunConfig) -> Tokenizer:
    """The tokenizer of `tokenizer.path`, else of `init`, else trained on the documents.
    Raises UserError if `tokenizer.path` is not the tokenizer of the run `init`."""
    path, init = config.tokenizer.path, config.init
    of_run = load_tokenizer(init) if init and is_run(init) else None
    if path:
        loaded = load_tokenizer(path)
        if of_run and of_run.sha256 != loaded.sha256:
            raise UserError(
                f"tokenizer.path {path} is not the tokenizer of init {init}; leave "
                "--config.tokenizer.path out"
            )
        return loaded
    if of_run:
        return of_run
    if init:
        facts = weights.describe(init)
        return load_tokenizer(facts.folder, facts.lowercase)
    with bar("tokenizer", unit="document") as read:
        texts = map(full_text, read.each(trained_on(config)))
        return config.tokenizer.train.built(texts)
