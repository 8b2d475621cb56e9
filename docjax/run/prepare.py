"""What a config names, built: tokenizer, corpus, encoder and first parameters.

Training and evaluation start here; the fields of a config are listed in
`docs/design.md`.
"""

import dataclasses
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging

from docjax import config as config_lib
from docjax.data import corpus as tokens
from docjax.data import corpus_files, graphs, splits
from docjax.data.corpus import Corpus
from docjax.data.documents import full_text
from docjax.data.tokenizer import Tokenizer, check_fits, load_tokenizer
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.errors import UserError
from docjax.huggingface import files
from docjax.huggingface import weights as huggingface
from docjax.objectives.infonce import infonce
from docjax.run import dict_fields as fields
from docjax.storage import checkpoint, manifest
from docjax.storage.processes import wait
from docjax.types import Document, Views

# Of an encoder, what may differ from the run that it begins with.
TRAINING = ("dropout", "dtype", "attention", "sparse", "name", "parent")
PREDICTOR = "docjax.encoders.pooling.Predictor"
PARTS = ("views", "segments", "graph", "objective", "optimizer", "tasks")


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """The parts of a run; `config` is resolved: plain, nothing left to fill in."""

    config: dict[str, Any]
    run: Path
    tokenizer: Tokenizer
    corpus: Corpus
    classes: list[str]
    encoder: DocumentEncoder
    graph: graphs.Builder | None

    @functools.cached_property
    def views(self) -> Views:
        """Those that training reads, fitted to the words that it reads."""
        views = config_lib.build(self.config["views"])
        if not hasattr(views, "fitted"):
            return views
        return views.fitted(self.tokenizer, self.corpus, self.trained_on)

    def rows(self, part: str) -> np.ndarray:
        """The documents of the part "train", "validation" or "test", by number."""
        return splits.rows(self.config, self.corpus, part)

    @property
    def trained_on(self) -> np.ndarray:
        """The documents that training reads, by number."""
        return splits.trained_on(self.config, self.corpus)

    def documents(self) -> Iterator[Document]:
        """The source's documents again, with their texts."""
        return _source(self.config)()

    @property
    def labels(self) -> np.ndarray:
        """Class numbers of all documents, -1 without a known label."""
        numbers = {label: i for i, label in enumerate(self.classes)}
        return np.array([numbers.get(x, -1) for x in self.corpus.labels], np.int32)


def prepare(config: Any, run: Path) -> Prepared:
    """Builds everything a run needs but its parameters, and writes config.json.

    Raises:
      UserError: for an unknown field, name or keyword, bad documents, a tokenizer
        that does not fit, or a run directory of another config.
    """
    wait("start")  # a first meeting later would not wait for the tokenizer
    config = config_lib.plain(config)
    fields.check(config)
    config["init"] = _pinned(config["init"], run)
    built = {key: config_lib.build(config[key]) for key in PARTS}
    if not fields.begun(run):
        _check_parts(config, built["views"], built["objective"])
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--workdir {run}: {error.strerror}") from None
    tokenizer = _tokenizer(config, run)
    fields.fill_vocabulary(config, tokenizer.vocabulary)
    fields.check_same(config, run)
    rows = config["encoder"]["segment"]["vocabulary"]
    check_fits(tokenizer, rows, loaded=bool(config["init"]))
    corpus = _corpus(config, run, built["segments"], tokenizer)
    labels = {label for label in corpus.labels if label is not None}
    classes = sorted(labels)
    fields.fill_classes(config, classes)
    _log_splits(config, corpus)
    wait("config")
    if jax.process_index() == 0:
        config_lib.save(config, run / "config.json")
    encoder = config_lib.build(config["encoder"])
    return Prepared(config, run, tokenizer, corpus, classes, encoder, built["graph"])


def _pinned(init: str | None, run: Path) -> str | None:
    """`init` as NAME@COMMIT if it is a hub name: the commit that this run began with."""
    path = run / "config.json"
    before = config_lib.load(path).get("init") if path.exists() else None
    if before and init in (before, before.partition("@")[0]):
        return before
    return files.pinned(init) if init else None


def _check_parts(config: dict[str, Any], views: Any, objective: Any) -> None:
    """Raises UserError for what would be found only after the corpus is read."""
    # Of an objective that predicts words the paraphrases may be left out.
    contrastive = getattr(objective, "contrastive", objective)
    if contrastive is None or getattr(objective, "weight", 1) == 0:
        return
    if hasattr(views, "check"):
        views.check()
    head = (config["encoder"].get("head") or {}).get("fn")
    if head == PREDICTOR and getattr(contrastive, "func", None) is infonce:
        raise UserError(
            f"encoder.head {head} is for simsiam: infonce would take its predictions "
            "for other documents; leave the head out"
        )


def initial_params(prepared: Prepared) -> Any:
    """Parameters as the config's `init` says: fresh, of a folder, or of another run."""
    config = prepared.config
    params = fresh_params(prepared.encoder, config["seed"])
    init = config["init"]
    if not init:
        return params
    if fields.is_run(init):
        return _from_run(Path(init), prepared.encoder, params)
    found = huggingface.load(init)
    given = config["encoder"]["segment"]
    wrong = [
        f"{key} {given.get(key)!r} (it has {value!r})"
        for key, value in found.keywords.items()
        if key != "dropout"
        if given.get(key, _default(prepared.encoder.segment, key)) != value
    ]
    if wrong:
        raise UserError(
            f"init {init} does not fit encoder.segment: {', '.join(wrong)}; "
            "set these with --config.encoder.segment.KEY=VALUE"
        )
    return params | {"segment": jax.tree.map(jnp.asarray, found.params)}


def trained_params(prepared: Prepared) -> Any:
    """The parameters that a run ended with."""
    shapes = jax.eval_shape(lambda: fresh_params(prepared.encoder, 0))
    return checkpoint.restore_params(prepared.run, shapes)


def _from_run(run: Path, encoder: DocumentEncoder, params: Any) -> Any:
    """The encoder of another run; the head, if there is one, stays fresh."""
    other = config_lib.build(config_lib.load(run / "config.json")["encoder"])
    wrong = [
        f"{part}.{field.name} {ours!r} (it has {theirs!r})"
        for part in ("segment", "document")
        for field in dataclasses.fields(getattr(encoder, part))
        if field.name not in TRAINING
        for ours in [getattr(getattr(encoder, part), field.name)]
        for theirs in [getattr(getattr(other, part), field.name, None)]
        if ours != theirs
    ]
    if wrong:
        raise UserError(
            f"init {run} does not fit the encoder: {', '.join(wrong)}; "
            "set these with --config.encoder.PART.KEY=VALUE"
        )
    expected = jax.eval_shape(lambda: fresh_params(other, 0))
    found = checkpoint.restore_params(run, expected)
    return params | {name: found[name] for name in params if name != "head"}


def _source(config: dict[str, Any]) -> Callable[[], Iterator[Document]]:
    source = config_lib.build(config["source"])
    try:
        inspect.signature(source).bind()
    except TypeError as error:
        name = config["source"]["fn"]
        raise UserError(f"{name}: {error}; set it with --config.source.KEY") from None
    if not config["holdout"]:
        return source
    holdout = config_lib.build(config["holdout"])
    return lambda: holdout(source)


def _tokenizer(config: dict[str, Any], run: Path) -> Tokenizer:
    """The run's own tokenizer.json, made first unless this config has made it."""
    path = run / "tokenizer.json"
    made = path.exists() and (fields.begun(run) or _made_by(config, run))
    if jax.process_index() == 0 and not made:
        _make_tokenizer(config).save(path)
    wait("tokenizer")
    return load_tokenizer(path)


def _made_by(config: dict[str, Any], run: Path) -> bool:
    """Whether the run's config.json asks for the same tokenizer."""
    if not (run / "config.json").exists():
        return False
    before = config_lib.load(run / "config.json")
    names = ("tokenizer", "init", "source", "holdout", "splits", "transductive")
    return all(before.get(name) == config[name] for name in names)


def _make_tokenizer(config: dict[str, Any]) -> Tokenizer:
    """The one that is named, that of `init`, or one trained on the documents.

    Raises:
      UserError: if it is not the one that the run `init` was trained with.
    """
    path, init = config["tokenizer"]["path"], config["init"]
    if path or init:
        tokenizer = load_tokenizer(path) if path else _tokenizer_of(init)
        of_run = path and init and fields.is_run(init)
        if of_run and load_tokenizer(init).sha256 != tokenizer.sha256:
            raise UserError(
                f"tokenizer {path} is not that of init {init}: leave "
                "--config.tokenizer.path out"
            )
        return tokenizer
    train = config_lib.build(config["tokenizer"]["train"])
    logging.info("training a tokenizer: %s", config["tokenizer"]["train"])
    texts = (
        full_text(document)
        for document in _source(config)()
        if config["transductive"] or document.split in (config["splits"]["train"], None)
    )
    return train(texts)


def _tokenizer_of(init: str) -> Tokenizer:
    if fields.is_run(init):
        return load_tokenizer(init)
    found = huggingface.load(init)
    return load_tokenizer(found.folder, found.lowercase)


def _corpus(config, run: Path, segments, tokenizer: Tokenizer) -> Corpus:
    """The tokenised corpus in the run directory, made by the first process."""
    limit = config["limits"]["segment_tokens"]
    documents, source = _source(config), config_lib.build(config["source"])

    @functools.cache
    def print_(content: bool) -> str:
        found = tokens.fingerprint(source, segments, tokenizer, limit, content)
        return found + repr(config["holdout"])

    quick, contents = print_(False), functools.partial(print_, True)
    if jax.process_index() == 0:
        folder = run / "corpus"
        facts = corpus_files.read_facts(folder)
        if fields.begun(run) and facts and not manifest.agrees(facts, quick, contents):
            raise UserError(
                f"{run}: its documents have changed since training began (other files "
                "or package versions); train anew in another --workdir"
            )
        Corpus.build(folder, documents(), segments, tokenizer, limit, quick, contents)
    wait("corpus")
    return Corpus.open(run / "corpus")


def _log_splits(config: dict[str, Any], corpus: Corpus) -> None:
    """Warns of documents whose split is none of the config's.

    They are trained on all the same if the run is transductive.
    """
    names = set(config["splits"].values())
    counts = Counter(s for s in corpus.splits if s is not None and s not in names)
    for split, count in counts.items():
        logging.warning(
            "%d documents are in the split %r: %s; set --config.splits",
            count,
            split,
            "in no task" if config["transductive"] else "not used",
        )


def _default(module: Any, key: str) -> Any:
    field = type(module).__dataclass_fields__.get(key)
    return field.default if field else None
