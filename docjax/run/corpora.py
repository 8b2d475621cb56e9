"""The documents of a run: their source, the tokenizer, and the corpora on disk."""

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import jax
import numpy as np
from absl import logging
from jaxtyping import Int

from docjax.data import corpus as corpus_lib
from docjax.data import corpus_files, splits
from docjax.data.corpus import Corpus
from docjax.data.records import full_text
from docjax.data.sources.lines import check_again
from docjax.data.streams import shown
from docjax.data.tokenizer import Tokenizer, load_tokenizer
from docjax.data.units import Whole
from docjax.errors import UserError
from docjax.parts import outside
from docjax.parts.outside import errors_named
from docjax.run.fields import RunConfig, is_run
from docjax.run.places import Part
from docjax.storage import json_file, manifest
from docjax.storage.digest import digest
from docjax.storage.processes import wait
from docjax.types import QUERY, Document

# Fields that the tokenizer of a run depends on.
OF_TOKENIZER = ("tokenizer", "init", "source", "holdout", "splits", "transductive")


def source(config: RunConfig) -> Callable[[], Iterator[Document]]:
    """A function that yields the source's documents, each with its split."""
    read = functools.partial(documents, config.source)
    if config.holdout is not None:
        holdout = config.holdout.built
        return lambda: holdout(read)
    return functools.partial(_with_test, read)


def documents(part: Part) -> Iterator[Document]:
    """The documents that a source yields.

    Raises:
      UserError: for anything else that it yields, for an error that it raises, and for
        a stream.
    """
    check_again(str(part.keywords.get("path")))  # training reads several times
    with errors_named(part.allow, f"source {part.fn}"), _file_named(part):
        for document in part.built():
            if not isinstance(document, Document):
                raise UserError(
                    f"source {part.fn} yields a {type(document).__name__}, not a "
                    "docjax.types.Document"
                )
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
        logging.log_first_n(logging.INFO, splits.NO_SPLIT, 1)
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
    raise UserError(
        f"no document is in the split {config.splits.train}; the splits are {there}: "
        "set --config.splits.train, or divide one with "
        f"{field + '.of' if config.holdout else field + whole}"
    )


def rows_trained_on(config: RunConfig, corpus: Corpus) -> Int[np.ndarray, " b"]:
    """The numbers of the documents that training reads."""
    if config.transductive:
        return np.arange(len(corpus))
    return splits.rows(corpus.splits, config.splits.train, with_none=True)


def tokenizer(
    config: RunConfig, run: Path, begun: bool, of_weights: Callable[[str], Tokenizer]
) -> Tokenizer:
    """The tokenizer in RUN/tokenizer.json; made first if it is not this config's.

    Args:
      begun: training has begun in the run.
      of_weights: gives the tokenizer of a Hugging Face folder or name, for `init`.
    """
    path = run / "tokenizer.json"
    is_current = lambda: path.exists() and (begun or _made_by(config, run))
    if jax.process_index() == 0 and not is_current():
        _make_tokenizer(config, of_weights).save(path)
    wait("tokenizer")
    return load_tokenizer(path)


def corpus(config: RunConfig, run: Path, begun: bool, tokenizer: Tokenizer) -> Corpus:
    """The tokenised corpus in the run directory, which the first process makes.

    begun: training has begun in the run.

    Raises:
      UserError: if the documents have changed since training began.
    """
    units, limit = config.units.built, config.limits.segment_tokens
    if jax.process_index() == 0:
        fingerprint = functools.cache(
            functools.partial(_fingerprint, config, tokenizer)
        )
        quick, contents = fingerprint(False), functools.partial(fingerprint, True)
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

    begun: training has begun in the run.

    Raises:
      UserError: if a file has changed since training began.
    """
    if jax.process_index():
        return
    path = run / "inputs.json"
    views = config.views.built.files() if config.reads_views else ()
    digests = _digests([*config.examples.built.files(), *views])
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
        logging.warning(
            "%d of %d queries are cut: they have more than %d tokens, the smaller of "
            "limits.query_tokens and limits.segment_tokens",
            too_long,
            len(query_corpus),
            limit,
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
    made = functools.partial(
        _fingerprint, config, load_tokenizer(run / "tokenizer.json")
    )
    return bool(facts) and manifest.agrees(facts, made(False), lambda: made(True))


def _make_tokenizer(
    config: RunConfig, of_weights: Callable[[str], Tokenizer]
) -> Tokenizer:
    """The tokenizer of `tokenizer.path`, else of `init`, else trained on the documents.

    Raises:
      UserError: if `tokenizer.path` is not the tokenizer of the run `init`.
    """
    path, init = config.tokenizer.path, config.init
    if path or init:
        named = path or (init if is_run(init) else None)
        loaded = load_tokenizer(named) if named else of_weights(init)
        of_run = path and init and is_run(init)
        if of_run and load_tokenizer(init).sha256 != loaded.sha256:
            raise UserError(
                f"tokenizer.path {path} is not the tokenizer of init {init}; leave "
                "--config.tokenizer.path out"
            )
        return loaded
    logging.info("training a tokenizer: %s", config.tokenizer.train.to_json())
    return config.tokenizer.train.built(map(full_text, trained_on(config)))
