"""The fields of a config: checked, and those left open filled in.

They are listed in `docs/design.md`; what a config names is built in `prepare.py`.
"""

from pathlib import Path
from typing import Any

from docjax import config as config_lib
from docjax.config import UserError

FIELDS = (
    *("seed", "source", "holdout", "splits", "tokenizer", "segments", "limits"),
    *("graph", "views", "encoder", "objective", "optimizer", "batch", "microbatch"),
    *("epochs", "steps", "log_every", "evaluate_every", "checkpoint_every", "tasks"),
    *("init", "select", "report", "tensorboard"),
)
INNER = {
    "limits": (
        *("segment_tokens", "query_tokens"),
        *("training_segments", "inference_segments"),
    ),
    "tokenizer": ("path", "vocabulary"),
    "splits": ("train", "validation", "test"),
    "encoder": ("fn", "segment", "document"),
}
COUNTS = ("batch", "microbatch", "log_every")
EPOCHS = ("evaluate_every", "checkpoint_every")  # nothing: once an epoch
# What a run may be continued with another value of.
FREE = ("log_every", "evaluate_every", "checkpoint_every", "report", "tensorboard")


def check(config: dict[str, Any]) -> None:
    """Raises UserError for a field that is missing, unknown or no sensible number."""
    unknown = [name for name in config if name not in (*FIELDS, "labels")]
    missing = [name for name in FIELDS if name not in config]
    missing += [
        f"{name}.{key}"
        for name, keys in INNER.items()
        for key in keys
        if isinstance(config.get(name), dict) and key not in config[name]
    ]
    if missing:
        raise UserError(f"config has no field {', '.join(missing)}")
    if unknown:
        raise UserError(
            f"config has unknown fields {', '.join(unknown)}; "
            f"the fields are {', '.join(FIELDS)}"
        )
    given = [name for name in ("epochs", "steps") if config[name] is not None]
    if not given:
        raise UserError("config has neither epochs nor steps: set one of them")
    numbers = {name: config[name] for name in (*COUNTS, *given)}
    numbers |= {name: config[name] for name in EPOCHS if config[name] is not None}
    numbers |= {
        f"limits.{key}": value
        for key, value in config["limits"].items()
        if value is not None or key.endswith("tokens")  # segments: nothing, then all
    }
    for name, value in numbers.items():
        if not (isinstance(value, int) and value > 0):
            raise UserError(f"{name} {value!r} is not a number of at least 1")
    for other in (config["report"] or {}).get("compare") or ():
        if not begun(Path(other)):
            raise UserError(f"report.compare {other}: no run is there, train it first")
    if not (isinstance(config["seed"], int) and config["seed"] >= 0):
        raise UserError(f"seed {config['seed']!r} is not a number of at least 0")


def is_run(init: str) -> bool:
    """Whether `init` is a run directory, not a Hugging Face name or folder."""
    return (Path(init) / "checkpoints").is_dir()


def begun(run: Path) -> bool:
    """Whether training has begun in this directory."""
    return (run / "metrics.jsonl").exists()


def check_same(config: dict[str, Any], run: Path) -> None:
    """Raises UserError if training has begun in `run` with another config."""
    path = run / "config.json"
    if not path.exists() or not begun(run):
        return
    before, head = config_lib.load(path), config["encoder"].get("head")
    if head and not head.get("classes"):  # filled in later, from the same documents
        had = before["encoder"].get("head") or {}
        config["encoder"]["head"] = head | {"classes": had.get("classes")}
    changed = [
        name for name in FIELDS if name not in FREE and before.get(name) != config[name]
    ]
    if changed:
        name = changed[0]
        raise UserError(
            f"{run} is a run of another config: {', '.join(changed)} differ ({name} "
            f"was {before.get(name)}, is {config[name]}); use another --workdir"
        )


def fill_vocabulary(config: dict[str, Any], trained: int) -> None:
    """Sets the size of the word table: that of the run `init`, or of a tokenizer.

    A word table of a Hugging Face folder may be larger than its tokenizer: there the
    config's own number stays. `trained` is the size of a tokenizer trained here.
    """
    path, init = config["tokenizer"]["path"], config["init"]
    segment = config["encoder"]["segment"]
    if init and is_run(init):
        other = config_lib.load(Path(init) / "config.json")["encoder"]["segment"]
        segment["vocabulary"] = other["vocabulary"]
    elif not path and not init:
        segment["vocabulary"] = trained


def fill_classes(config: dict[str, Any], classes: list[str]) -> None:
    """Sets the head's `classes` to the labels there are, or checks them."""
    head = config["encoder"].get("head")
    if not head:
        return
    if not head.get("classes"):
        head["classes"] = len(classes)
    config["labels"] = classes
    if head["classes"] != len(classes) or len(classes) < 2:
        raise UserError(
            f"the head has {head['classes']} classes, the documents {len(classes)} "
            "labels: at least 2 are needed, and as many as encoder.head.classes"
        )
