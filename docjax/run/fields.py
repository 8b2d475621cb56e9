"""The fields of a config: checked once, then handed on as typed, frozen sections.

`resolve` reads a config, and `RunConfig.to_json` turns it into `config.json`.
`docs/design.md` lists the fields; `continued.py` checks them when a run resumes.
"""

import dataclasses
import logging
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from docjax.errors import UserError
from docjax.objectives.facts import facts_of
from docjax.parts import named, outside
from docjax.parts.annotations import fits, shown, words
from docjax.run.places import Part, read_part
from docjax.storage import json_file
from docjax.types import ObjectiveOfWords, ReadLimits

logger = logging.getLogger(__name__)

Count = Annotated[int, 1]


@dataclasses.dataclass(frozen=True)
class Splits:
    """The name of each split in the documents; None: there is no such split."""

    train: str
    validation: str | None
    test: str | None


@dataclasses.dataclass(frozen=True)
class TokenizerFields:
    """A tokenizer's folder or name; without a path, `train` trains a tokenizer."""

    path: str | None
    train: Part


@dataclasses.dataclass(frozen=True)
class Limits:
    """Caps on what the model reads; None: no cap."""

    segment_tokens: Count  # special tokens included
    query_tokens: Count  # special tokens included
    training_units: Count | None  # of a document, before the view
    training_segments: Count | None  # of a view, after the cut
    inference_segments: Count | None  # of a document
    training_tokens: Count | None = None  # of a view, before the cut

    @property
    def query_segment(self) -> int:
        """As `ReadLimits.query_segment`."""
        return ReadLimits.of(dataclasses.asdict(self)).query_segment


@dataclasses.dataclass(frozen=True)
class Prompts:
    """Words before texts; None: as `init` says; "": none."""

    document: str | None = None  # before each segment of a document
    query: str | None = None

    def by_name(self) -> dict[str, str]:
        """The prompts that there are, by the names of sentence-transformers."""
        both = dataclasses.asdict(self)
        return {name: words for name, words in both.items() if words}

    def filled(self, others: "Prompts") -> "Prompts":
        """These prompts, with those of `others` in place of None."""
        document = others.document if self.document is None else self.document
        return Prompts(document, others.query if self.query is None else self.query)


@dataclasses.dataclass(frozen=True)
class ReportFields:
    """What the report shows beside the run."""

    compare: tuple[str, ...]  # other run directories
    # Figures from elsewhere, by row (such as a system) and metric, of the only task; of
    # several tasks by task, row and metric.
    published: Any = None

    def __post_init__(self) -> None:
        rows = Mapping[str, Mapping[str, float]]
        if not fits(self.published, rows | Mapping[str, rows] | None):
            raise UserError(
                f"report.published {shown(self.published)} is no figures: give "
                "dict(ROW=dict(METRIC=number)), or of several tasks "
                "dict(TASK=dict(ROW=dict(METRIC=number)))"
            )


@dataclasses.dataclass(frozen=True)
class Profile:
    """The steps whose trace `jax.profiler` writes to RUN/profile."""

    start: Count
    steps: Count


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The fields of a run, and after them what docjax fills in.

    Attributes:
      batch: examples of a step; None follows the corpus: at most 256, and a power of two
        that is at most half of the documents.
      evaluate_every: steps between evaluations; 0: before training and at the end;
        None: each epoch.
      checkpoint_every: steps between checkpoints; None: each epoch.
      similarity: how the objective compares vectors.
      outside: the packages from outside of docjax, as `docjax.parts.outside` describes
        them; a resumed run keeps those of its begin.
      allow: the prefixes of foreign names that the caller allows; not in config.json.
    """

    seed: int
    source: Part
    holdout: Part | None
    splits: Splits
    transductive: bool
    tokenizer: TokenizerFields
    units: Part
    examples: Part
    views: Part
    segments: Part
    limits: Limits
    graph: Part | None
    encoder: Part
    objective: Part
    optimizer: Part
    batch: Count | None
    microbatch: Count | None
    epochs: Count | None
    steps: Count | None
    log_every: Count
    evaluate_every: int | None
    checkpoint_every: Count | None
    tasks: Mapping[str, Part]
    init: str | None
    keep: Part
    report: ReportFields
    tensorboard: bool
    prompts: Prompts = Prompts()
    profile: Profile | None = None
    labels: tuple[str, ...] | None = None
    similarity: str | None = None
    outside: tuple[Mapping[str, Any], ...] = ()
    allow: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    @property
    def reads_words(self) -> bool:
        """Whether the objective predicts words, so that training reads no segments."""
        return isinstance(self.objective.built, ObjectiveOfWords)

    @property
    def reads_views(self) -> bool:
        """Whether training reads the views; predicting words alone needs no views."""
        objective = self.objective.built
        if not self.reads_words:
            return True
        return objective.contrastive is not None and objective.weight > 0

    def files(self) -> list[Path]:
        """The files that examples and views read. Raises UserError for a missing file."""
        views = self.views.built.files() if self.reads_views else ()
        return [*self.examples.built.files(), *views]

    @property
    def parts(self) -> dict[str, Part]:
        """The parts by field; of each task, by "tasks.NAME"."""
        own = {name: getattr(self, name) for name in FIELDS}
        named_parts = {n: part for n, part in own.items() if isinstance(part, Part)}
        tasks = {f"tasks.{name}": task for name, task in self.tasks.items()}
        return named_parts | {"tokenizer.train": self.tokenizer.train} | tasks

    @property
    def class_count(self) -> int | None:
        """The number of classes of the encoder's head; None without such a head."""
        return (self.encoder.keywords.get("head") or {}).get("classes")

    @property
    def segment(self) -> Mapping[str, Any]:
        """The segment encoder's config; with towers, that of the encoder inside."""
        segment = self.encoder.keywords["segment"]
        return segment["encoder"] if self.has_towers else segment

    @property
    def has_towers(self) -> bool:
        """Whether several copies of one encoder make the segment encoder."""
        return getattr(self.encoder.built.segment, "has_towers", False)

    def with_encoder(self, **keywords: Any) -> "RunConfig":
        """The config with these keywords of the encoder changed."""
        encoder = self.encoder.with_keywords(**keywords)
        return dataclasses.replace(self, encoder=encoder)

    def with_segment(self, segment: Mapping[str, Any]) -> "RunConfig":
        """The config with another `segment`."""
        return self.with_encoder(segment=self._in_towers(segment))

    def _in_towers(self, segment: Mapping[str, Any]) -> Mapping[str, Any]:
        outer = self.encoder.keywords["segment"]
        return {**outer, "encoder": segment} if self.has_towers else segment

    def with_classes(self, count: int | None) -> "RunConfig":
        """The config with `count` classes in the encoder's head."""
        head = self.encoder.keywords["head"]
        return self.with_encoder(head={**head, "classes": count})

    def without_branch(self) -> "RunConfig":
        """The config with the mean of segments alone, without a branch and its graph."""
        document = {
            **self.encoder.keywords["document"],
            "branch": None,
            "nested": False,
        }
        return dataclasses.replace(self.with_encoder(document=document), graph=None)

    def with_vocabulary(self, size: int) -> "RunConfig":
        """The config with `size` rows in the word table of the segment encoder."""
        segment = self._in_towers({**self.segment, "vocabulary": size})
        built = self.encoder.built
        module = built.inner_segment.clone(vocabulary=size)
        if self.has_towers:
            module = built.segment.clone(encoder=module)
        encoder = self.encoder.as_built(built.clone(segment=module), segment=segment)
        return dataclasses.replace(self, encoder=encoder)

    def with_facts(self) -> "RunConfig":
        """The config with what its parts say: their packages, and the similarity."""
        says = facts_of(self.objective.built).similarity
        names = named.names([part.to_json() for part in self.parts.values()])
        packages = outside.packages(names)
        similarity = says or "cosine"
        if self.similarity not in (None, similarity):
            raise UserError(
                f"config has similarity {self.similarity!r}, but objective "
                f"{self.objective.fn} compares by {similarity!r}: leave similarity out; "
                "a loss says it itself, docjax's with objective.similarity"
            )
        return dataclasses.replace(self, similarity=similarity, outside=packages)

    def to_json(self) -> dict[str, Any]:
        """The config as `resolve` reads it, in JSON values."""
        node = _to_json(self)
        empty = {name for name in FILLED if not getattr(self, name)} | {"allow"}
        return {name: value for name, value in node.items() if name not in empty}


# The folders of a run that are not of tasks.
FOLDERS = (
    *("best", "checkpoints", "corpus", "export", "figures", "queries", "report"),
    "tensorboard",
)
FILLED = ("labels", "similarity", "outside", "allow")  # by docjax, not by a config
FIELDS = tuple(
    field.name for field in dataclasses.fields(RunConfig) if field.name not in FILLED
)
LARGEST_BATCH = 256  # examples, where the batch follows the corpus
KEEP = {"fn": "docjax.keep.Last"}  # of a config that does not say what to keep


def resolve(config: Any, allow: str | Sequence[str] = ()) -> RunConfig:
    """The typed config of a ConfigDict or of nested dicts; a RunConfig stays as it is.

    allow: prefixes of parts from outside of docjax.

    Raises:
      UserError: for a missing or unknown field, `allow` among the fields, a value of
        the wrong type, or a part that cannot be built or that its field does not take.
    """
    if isinstance(config, RunConfig):
        return config
    node = named.plain(config)
    if isinstance(node, dict):
        node = {"keep": KEEP} | node
        if "allow" in node:
            raise UserError(
                "config has allow: leave it out, and give --allow=PACKAGE. (in Python "
                "allow=('PACKAGE.',))"
            )
    return _resolved(node, allow)


def _resolved(node: Any, allow: str | Sequence[str]) -> RunConfig:
    """The typed config of a user or of a run, from plain values."""
    prefixes = outside.prefixes(allow)
    resolved = _section(RunConfig, node, "", prefixes)
    if resolved.epochs is None and resolved.steps is None:
        raise UserError("config has neither epochs nor steps: set one of them")
    _check_tasks(resolved.tasks)
    _check_metric(resolved)
    return dataclasses.replace(resolved, allow=prefixes)


def _check_metric(config: RunConfig) -> None:
    """Raises UserError for a validation metric that no task can have."""
    metric = config.keep.built.metric
    if metric is None:
        return
    if metric.partition("/")[0] not in config.tasks:
        raise UserError(
            f"keep.metric {metric!r} is not a metric of a task, such as TASK/accuracy; "
            f"the tasks are {', '.join(config.tasks) or 'missing'}"
        )
    if config.splits.validation is None:
        raise UserError(
            f"keep.metric {metric!r} needs validation documents: name their split with "
            "--config.splits.validation"
        )


def _check_tasks(tasks: Iterable[str]) -> None:
    """Raises UserError for a task that cannot have a folder of its name in the run."""
    for name in tasks:
        if not re.fullmatch(r"[\w-]+", name) or name in FOLDERS:
            raise UserError(
                f"tasks.{name}: a task has a folder of its name in the run; give it a "
                f"name of letters and digits, but none of {', '.join(FOLDERS)}"
            )


def warn_of_epochs(config: RunConfig) -> None:
    """Warns if `steps` makes `epochs` useless."""
    if config.steps and config.epochs:
        logger.warning(
            "training ends after steps=%d, so epochs=%d has no effect: set "
            "--config.steps=None",
            *(config.steps, config.epochs),
        )


def read(run: Path, allow: str | Sequence[str] = ()) -> RunConfig:
    """The config of a run directory.

    Raises:
      UserError: if there is no run, or its config is invalid for this docjax.
    """
    path = run / "config.json"
    node = json_file.read(path)
    try:
        return _resolved(node, allow)
    except UserError as error:
        raise UserError(
            f"{path}: {error}; if an earlier docjax made this run, train it again"
        ) from None


def is_run(init: str) -> bool:
    """Whether `init` is a run directory, not a Hugging Face name or folder."""
    return (Path(init) / "checkpoints").is_dir()


def begun(run: Path) -> bool:
    """Whether training has begun in this directory."""
    return (run / "metrics.jsonl").exists()


def begun_with(run: Path, allow: Sequence[str] = ()) -> RunConfig | None:
    """The config of a run whose training has begun; None before."""
    has_begun = begun(run) and (run / "config.json").exists()
    return read(run, allow) if has_begun else None


def _section(kind: type, node: Any, path: str, allow: Sequence[str]) -> Any:
    """`node` as an instance of the dataclass `kind`; `path` is its field."""
    section = {field.name: field for field in dataclasses.fields(kind)}
    if not isinstance(node, Mapping):
        raise UserError(
            f"{path or 'config'} {shown(node)} is not a dict of {', '.join(section)}"
        )
    prefix = f"{path}." if path else ""
    needed = [n for n, field in section.items() if field.default is dataclasses.MISSING]
    missing = [prefix + name for name in needed if name not in node]
    unknown = [prefix + name for name in node if name not in section]
    faults = [f"no field {', '.join(missing)}"] if missing else []
    if unknown:
        known = ", ".join(name for name in section if name not in FILLED)
        names = f"the fields of {path or 'a config'} are {known}"
        faults.append(f"unknown fields {', '.join(unknown)}; {names}")
    if faults:
        raise UserError(f"config has {' and '.join(faults)}")
    hints = get_type_hints(kind, include_extras=True)
    values = {
        name: _value(hints[name], node[name], prefix + name, allow) for name in node
    }
    return kind(**values)


def _value(hint: Any, node: Any, path: str, allow: Sequence[str]) -> Any:
    """The value of one field. Raises UserError if the value has the wrong type."""
    if node is None and hint in (Part | None, Profile | None):
        return None
    if hint in (Part, Part | None):
        return read_part(node, path, allow)
    if hint == Mapping[str, Part]:
        if not isinstance(node, Mapping):
            raise UserError(f"{path} {shown(node)} is not a dict of names and parts")
        parts = {n: read_part(node[n], f"{path}.{n}", allow) for n in node}
        return types.MappingProxyType(parts)
    if hint == Profile | None:
        hint = Profile
    if dataclasses.is_dataclass(hint):
        return _section(hint, node, path, allow)
    if not fits(node, hint):
        raise UserError(f"{path} {shown(node)} is not {words(hint)}")
    return tuple(node) if isinstance(node, list) else node


def _to_json(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_json()
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: _to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return {name: _to_json(part) for name, part in value.items()}
    return named.plain(value)
