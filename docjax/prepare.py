"""What a config names, built: tokenizer, corpus, encoder and first parameters.

Training and evaluation start here; the fields of a config are listed in
`docs/design.md`.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from docjax import checkpoint
from docjax import config as config_lib
from docjax.config import UserError
from docjax.data import graphs, storage, tokens
from docjax.data.documents import full_text
from docjax.data.tokens import Corpus, Tokenizer
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.huggingface import load as huggingface
from docjax.types import Document, Views

FIELDS = (
    *("seed", "source", "holdout", "splits", "tokenizer", "segments", "limits"),
    *("graph", "views", "encoder", "objective", "optimizer", "batch", "microbatch"),
    *("epochs", "steps", "log_every", "evaluate_every", "checkpoint_every", "tasks"),
    *("init", "select", "report", "tensorboard"),
)
COUNTS = ("batch", "microbatch", "log_every", "evaluate_every", "checkpoint_every")
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
    config = config_lib.plain(config)
    _check_fields(config)
    built = {
        key: config_lib.build(config[key]) for key in ("views", "segments", "graph")
    }
    run.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(config, run)
    if not config["tokenizer"]["path"]:
        config["encoder"]["segment"]["vocabulary"] = tokenizer.vocabulary
    rows = config["encoder"]["segment"]["vocabulary"]
    tokens.check_fits(tokenizer, rows, loaded=bool(config["init"]))
    corpus = _corpus(config, run, built["segments"], tokenizer)
    labels = {label for label in corpus.labels if label is not None}
    classes = sorted(labels)
    _fill_classes(config, classes)
    _check_same(config, run)
    _wait("config")
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
    if (Path(init) / "checkpoints").is_dir():
        return _from_run(Path(init), params)
    found = huggingface.load(init)
    given = config["encoder"]["segment"]
    wrong = [
        f"{key} {given.get(key)!r} (it has {value!r})"
        for key, value in found.keywords.items()
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


def _from_run(run: Path, params: Any) -> Any:
    """The encoder of another run; the head, if there is one, stays fresh."""
    shapes = {name: part for name, part in params.items() if name != "head"}
    other = config_lib.load(run / "config.json")
    encoder = config_lib.build(other["encoder"])
    expected = jax.eval_shape(lambda: fresh_params(encoder, 0))
    bare = {name: part for name, part in expected.items() if name != "head"}
    if jax.tree.map(jnp.shape, bare) != jax.tree.map(jnp.shape, shapes):
        raise UserError(
            f"init {run}: its encoder has other sizes than this config's; "
            f"its config is {run / 'config.json'}"
        )
    found = checkpoint.restore_params(run, expected)
    return params | {name: found[name] for name in shapes}


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
    if not config["epochs"] and not config["steps"]:
        raise UserError("config has neither epochs nor steps: set one of them")
    for name in COUNTS:
        if not (isinstance(config[name], int) and config[name] > 0):
            raise UserError(f"{name} {config[name]!r} is not a number of at least 1")


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
    """The run's own tokenizer.json, made first if there is none."""
    path = run / "tokenizer.json"
    keywords = config["tokenizer"]
    if not path.exists() and jax.process_index() == 0:
        if keywords["path"]:
            tokenizer = tokens.load_tokenizer(keywords["path"])
        else:
            logging.info("training a tokenizer of %d tokens", keywords["vocabulary"])
            texts = (
                full_text(document)
                for document in _source(config)()
                if document.split in (config["splits"]["train"], None)
            )
            tokenizer = tokens.train_tokenizer(texts, keywords["vocabulary"])
        tokenizer.save(path)
    _wait("tokenizer")
    return tokens.load_tokenizer(path)


def _corpus(config, run: Path, segments, tokenizer: Tokenizer) -> Corpus:
    """The tokenised corpus in the run directory, made by the first process."""
    limit = config["limits"]["segment_tokens"]
    source = config_lib.build(config["source"])
    print_ = tokens.fingerprint(source, segments, tokenizer, limit)
    print_ += repr(config["holdout"])
    if jax.process_index() == 0:
        folder = run / "corpus"
        trained = (run / "metrics.jsonl").exists()
        facts = storage.read_facts(folder) or {}
        if trained and facts.get("fingerprint") != print_:
            raise UserError(
                f"{run}: its documents have changed since training began (other files "
                "or package versions); train anew in another --workdir"
            )
        Corpus.build(folder, _source(config)(), segments, tokenizer, limit, print_)
    _wait("corpus")
    return Corpus.open(run / "corpus")


def _wait(what: str) -> None:
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)


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


def _check_same(config: dict[str, Any], run: Path) -> None:
    """Raises UserError if the run directory belongs to another config."""
    path = run / "config.json"
    if not path.exists():
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
