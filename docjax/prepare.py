"""What a config names, built: tokenizer, corpus, encoder and first parameters.

Training and evaluation start here; the fields of a config are listed in
`docs/design.md`.
"""

import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging

from docjax import checkpoint
from docjax import config as config_lib
from docjax.config import UserError
from docjax.data import graphs, storage, tokens
from docjax.data.documents import full_text
from docjax.data.tokens import Corpus, Tokenizer
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.huggingface import load as huggingface
from docjax.processes import wait
from docjax.types import Document, Views

FIELDS = (
    *("seed", "source", "holdout", "splits", "tokenizer", "segments", "limits"),
    *("graph", "views", "encoder", "objective", "optimizer", "batch", "microbatch"),
    *("epochs", "steps", "log_every", "evaluate_every", "checkpoint_every", "tasks"),
    *("init", "select", "report", "tensorboard"),
)
PARTS = ("views", "segments", "graph", "objective", "optimizer", "tasks")
LIMITS = ("segment_tokens", "query_tokens", "training_segments", "inference_segments")
COUNTS = ("batch", "microbatch", "log_every")
EPOCHS = ("evaluate_every", "checkpoint_every")  # nothing: once an epoch
# Of an encoder, what may differ from the run that it begins with.
TRAINING = ("dropout", "dtype", "attention", "sparse", "name", "parent")
# What a run may be continued with another value of.
FREE = ("log_every", "evaluate_every", "checkpoint_every", "report", "tensorboard")


@dataclasses.dataclass(frozen=True, eq=False)
class Prepared:
    """The parts of a run; `config` is resolved: plain, nothing left to fill in."""

    config: dict[str, Any]
    run: Path
    tokenizer: Tokenizer
    corpus: Corpus
    classes: list[str]
    encoder: DocumentEncoder
    views: Views
    graph: graphs.Builder

    def rows(self, part: str) -> np.ndarray:
        """The documents of the part "train", "validation" or "test", by number."""
        name = self.config["splits"][part]
        splits = self.corpus.splits
        if part == "train":  # without splits, all documents are for training
            return np.flatnonzero([s in (name, None) for s in splits])
        return np.flatnonzero([name is not None and s == name for s in splits])

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
    _check_fields(config)
    built = {key: config_lib.build(config[key]) for key in PARTS}
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--workdir {run}: {error.strerror}") from None
    tokenizer = _tokenizer(config, run)
    _fill_vocabulary(config, tokenizer)
    rows = config["encoder"]["segment"]["vocabulary"]
    tokens.check_fits(tokenizer, rows, loaded=bool(config["init"]))
    corpus = _corpus(config, run, built["segments"], tokenizer)
    labels = {label for label in corpus.labels if label is not None}
    classes = sorted(labels)
    _fill_classes(config, classes)
    _check_same(config, run)
    _log_splits(config, corpus)
    wait("config")
    if jax.process_index() == 0:
        config_lib.save(config, run / "config.json")
    encoder = config_lib.build(config["encoder"])
    return Prepared(
        config,
        run,
        tokenizer,
        corpus,
        classes,
        encoder,
        built["views"],
        built["graph"],
    )


def initial_params(prepared: Prepared) -> Any:
    """Parameters as the config's `init` says: fresh, of a folder, or of another run."""
    config = prepared.config
    params = fresh_params(prepared.encoder, config["seed"])
    init = config["init"]
    if not init:
        return params
    if _is_run(init):
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


def _is_run(init: str) -> bool:
    return (Path(init) / "checkpoints").is_dir()


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


def _check_fields(config: dict[str, Any]) -> None:
    missing = [name for name in FIELDS if name not in config]
    unknown = [name for name in config if name not in (*FIELDS, "labels")]
    if missing or unknown:
        raise UserError(
            f"config has no field {', '.join(missing)}"
            if missing
            else f"config has unknown fields {', '.join(unknown)}; "
            f"the fields are {', '.join(FIELDS)}"
        )
    for name, keys in (("limits", LIMITS), ("tokenizer", ("path", "vocabulary"))):
        missing = [key for key in keys if key not in config[name]]
        if missing:
            raise UserError(f"config has no field {name}.{', '.join(missing)}")
    given = [name for name in ("epochs", "steps") if config[name] is not None]
    if not given:
        raise UserError("config has neither epochs nor steps: set one of them")
    intervals = [name for name in EPOCHS if config[name] is not None]
    for name in (*COUNTS, *given, *intervals):
        if not (isinstance(config[name], int) and config[name] > 0):
            raise UserError(f"{name} {config[name]!r} is not a number of at least 1")
    if not (isinstance(config["seed"], int) and config["seed"] >= 0):
        raise UserError(f"seed {config['seed']!r} is not a number of at least 0")


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
    made = path.exists() and (_begun(run) or _made_by(config, run))
    if jax.process_index() == 0 and not made:
        _make_tokenizer(config).save(path)
    wait("tokenizer")
    return tokens.load_tokenizer(path)


def _made_by(config: dict[str, Any], run: Path) -> bool:
    """Whether the run's config.json asks for the same tokenizer."""
    if not (run / "config.json").exists():
        return False
    before = config_lib.load(run / "config.json")
    names = ("tokenizer", "init", "source", "holdout", "splits")
    return all(before.get(name) == config[name] for name in names)


def _make_tokenizer(config: dict[str, Any]) -> Tokenizer:
    """The one that is named, that of `init`, or one trained on the documents.

    Raises:
      UserError: if it is not the one that the run `init` was trained with.
    """
    path, init = config["tokenizer"]["path"], config["init"]
    if path or init:
        tokenizer = tokens.load_tokenizer(path or init)
        of_run = path and init and _is_run(init)
        if of_run and tokens.load_tokenizer(init).sha256 != tokenizer.sha256:
            raise UserError(
                f"tokenizer {path} is not that of init {init}: leave "
                "--config.tokenizer.path out"
            )
        return tokenizer
    vocabulary = config["tokenizer"]["vocabulary"]
    logging.info("training a tokenizer of %d tokens", vocabulary)
    texts = (
        full_text(document)
        for document in _source(config)()
        if document.split in (config["splits"]["train"], None)
    )
    return tokens.train_tokenizer(texts, vocabulary)


def _fill_vocabulary(config: dict[str, Any], tokenizer: Tokenizer) -> None:
    """The size of the word table: of a trained tokenizer, or of the run `init`."""
    path, init = config["tokenizer"]["path"], config["init"]
    if init and _is_run(init):
        other = config_lib.load(Path(init) / "config.json")
        config["encoder"]["segment"]["vocabulary"] = other["encoder"]["segment"][
            "vocabulary"
        ]
    elif not path and not init:
        config["encoder"]["segment"]["vocabulary"] = tokenizer.vocabulary


def _corpus(config, run: Path, segments, tokenizer: Tokenizer) -> Corpus:
    """The tokenised corpus in the run directory, made by the first process."""
    limit = config["limits"]["segment_tokens"]
    documents, source = _source(config), config_lib.build(config["source"])
    print_ = tokens.fingerprint(source, segments, tokenizer, limit)
    print_ += repr(config["holdout"])
    if jax.process_index() == 0:
        folder = run / "corpus"
        facts = storage.read_facts(folder)
        if _begun(run) and facts and facts["fingerprint"] != print_:
            raise UserError(
                f"{run}: its documents have changed since training began (other files "
                "or package versions); train anew in another --workdir"
            )
        Corpus.build(folder, documents(), segments, tokenizer, limit, print_)
    wait("corpus")
    return Corpus.open(run / "corpus")


def _begun(run: Path) -> bool:
    """Whether training has begun in this directory."""
    return (run / "metrics.jsonl").exists()


def _fill_classes(config: dict[str, Any], classes: list[str]) -> None:
    """Sets the head's `classes` to the labels there are, or checks them."""
    head = config["encoder"].get("head")
    if not head:
        return
    if head.get("classes") in (None, 0):
        head["classes"] = len(classes)
    config["labels"] = classes
    if head["classes"] != len(classes) or len(classes) < 2:
        raise UserError(
            f"the head has {head['classes']} classes, the documents {len(classes)} "
            "labels: at least 2 are needed, and as many as encoder.head.classes"
        )


def _log_splits(config: dict[str, Any], corpus: Corpus) -> None:
    """Warns of documents whose split is none of the config's."""
    names = set(config["splits"].values())
    counts = Counter(s for s in corpus.splits if s is not None and s not in names)
    for split, count in counts.items():
        logging.warning(
            "%d documents are in the split %r: not used; set --config.splits",
            count,
            split,
        )


def _check_same(config: dict[str, Any], run: Path) -> None:
    """Raises UserError if the run directory belongs to another config."""
    path = run / "config.json"
    if not path.exists() or not _begun(run):
        return
    before, now = config_lib.load(path), config
    changed = [
        name for name in FIELDS if name not in FREE and before.get(name) != now[name]
    ]
    if changed:
        name = changed[0]
        raise UserError(
            f"{run} is a run of another config: {', '.join(changed)} differ ({name} "
            f"was {before.get(name)}, is {now[name]}); use another --workdir"
        )


def _default(module: Any, key: str) -> Any:
    return type(module).__dataclass_fields__[key].default
