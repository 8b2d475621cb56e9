"""The fields of a config: checked, and those left open filled in.

They are listed in `docs/design.md`; what a config names is built in `prepare.py`.
"""

from pathlib import Path
from typing import Any

from docjax import config as config_lib
from docjax.errors import UserError

FIELDS = (
    *("seed", "source", "holdout", "splits", "transductive", "tokenizer", "segments"),
    "limits",
    *("graph", "views", "encoder", "objective", "optimizer", "batch", "microbatch"),
    *("epochs", "steps", "log_every", "evaluate_every", "checkpoint_every", "tasks"),
    *("init", "select", "report", "tensorboard"),
)
INNER = {
    "limits": (
        *("segment_tokens", "query_tokens"),
        *("training_segments", "inference_segments"),
    ),
    "tokenizer": ("path", "train"),
    "splits": ("train", "validation", "test"),
    "encoder": ("fn", "segment", "document"),
}
COUNTS = ("batch", "microbatch", "log_every")
INTERVALS = ("evaluate_every", "checkpoint_every")
# What a run may be continued with another value of.
FREE = ("log_every", "evaluate_every", "checkpoint_every", "report", "tensorboard")


def check(config: dict[str, Any]) -> None:
    """Raises UserError for a field that is missing, unknown or no sensible number.

    The runs that a report compares with must be there, too.
    """
    _check_names(config)
    _check_numbers(config)
    for other in (config["report"] or {}).get("compare") or ():
        if not begun(Path(other)):
            raise UserError(f"report.compare {other}: no run is there, train it first")


def _check_names(config: dict[str, Any]) -> None:
    missing = [name for name in FIELDS if name not in config]
    for name in filter(config.__contains__, INNER):
        found = config[name] or {}
        if not isinstance(found, dict):
            raise UserError(
                f"{name} {found!r} is not a dict of {', '.join(INNER[name])}"
            )
        missing += [f"{name}.{key}" for key in INNER[name] if key not in found]
    if missing:
        raise UserError(f"config has no field {', '.join(missing)}")
    unknown = [name for name in config if name not in (*FIELDS, "labels")]
    if unknown:
        raise UserError(
            f"config has unknown fields {', '.join(unknown)}; "
            f"the fields are {', '.join(FIELDS)}"
        )


def _check_numbers(config: dict[str, Any]) -> None:
    given = [name for name in ("epochs", "steps") if config[name] is not None]
    if not given:
        raise UserError("config has neither epochs nor steps: set one of them")
    numbers = {name: config[name] for name in (*COUNTS, *given)}
    optional = {name: config[name] for name in INTERVALS}
    for name, value in config["limits"].items():
        part = numbers if name.endswith("tokens") else optional
        part[f"limits.{name}"] = value
    numbers |= {name: value for name, value in optional.items() if value is not None}
    if numbers.get("evaluate_every") == 0:
        del numbers["evaluate_every"]  # at the end only
    for name, value in numbers.items():
        if not (isinstance(value, int) and value > 0):
            what = " or nothing" if name in optional else ""
            raise UserError(f"{name} {value!r} is not a number of at least 1{what}")
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
    before, now = config_lib.load(path), dict(config)
    head = config["encoder"].get("head")
    if head and head.get("classes") == 0:  # filled in later, from the same documents
        had = before["encoder"].get("head") or {}
        head = head | {"classes": had.get("classes")}
        now["encoder"] = config["encoder"] | {"head": head}
    changed = [
        name for name in FIELDS if name not in FREE and before.get(name) != now[name]
    ]
    if changed:
        name = changed[0]
        raise UserError(
            f"{run} is a run of another config: {', '.join(changed)} differ ({name} "
            f"was {before.get(name)}, is {now[name]}); use another --workdir"
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
    if not head or "classes" not in head:
        return
    if not head["classes"]:
        head["classes"] = len(classes)
    config["labels"] = classes
    if head["classes"] != len(classes) or len(classes) < 2:
        raise UserError(
            f"the head has {head['classes']} classes, the documents {len(classes)} "
            "labels: at least 2 are needed, and as many as encoder.head.classes"
        )
