"""The model card of an exported folder: README.md, with the header of the hub."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2

from docjax.export.libraries import adds_to_transformers, is_stock
from docjax.huggingface.family import Family

SHOWN = (  # the fields of a run's config on the card, without the run's source
    *("init", "units", "segments", "limits", "graph", "examples", "views", "encoder"),
    *("objective", "optimizer", "batch", "microbatch", "epochs", "steps", "seed"),
)
OF_FACTS = ("units", "segments", "limits", "graph", "encoder")  # without a run
COUNTS = {  # counts in a corpus's summary -> their names on the card
    "most_units": "most units of a document",
    "longest": "most tokens of a unit",
}
PATHS = ("init", "path", "negatives", "lexicons")  # keywords that may name a file
HUB = r"[\w.-]+(/[\w.-]+)?@[0-9a-f]{40}"  # a pinned hub name
METRICS = r"eval/([^/]+)/(.+)"


def card(
    name: str,
    facts: Mapping[str, Any],
    folder: Path,
    family: Family,
    run: Mapping[str, Any],
) -> str:
    """The text of the model card; `card.md.jinja` has its words.

    Args:
      facts: the content of docjax.json of `folder`.
      family: of the segment encoder.
      run: `config`, `metrics` and `corpus` of the run that trained the model; empty
        without a run.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"short": _short, "grouped": "{:,}".format}
    config = run.get("config", {})
    shown = {name: config[name] for name in SHOWN if name in config}
    shown = shown or {name: facts[name] for name in OF_FACTS}
    differences = facts["measured"]["differences"].items()
    return environment.get_template("card.md.jinja").render(
        name=name,
        facts=facts,
        family=family,
        run=run,
        header=_header(name, run, facts.get("base")),
        stock=is_stock(folder),
        in_transformers=family.in_transformers and not adds_to_transformers(folder),
        scores=[(*key, f"{value:.4f}") for *key, value in _scores(run)],
        data=_data(run) if run else (),
        configuration=json.dumps(_public(shown), indent=2),
        differences=[(k, f"{value:.1e}" if value else 0) for k, value in differences],
        **_cuts(config, facts["width"]),
    )


def _header(name: str, run: Mapping[str, Any], base: str | None) -> str:
    from huggingface_hub import EvalResult, ModelCardData  # slow to import

    source = _source(run["config"]) if run else "unknown"
    results = [
        EvalResult(
            task_type=task,
            dataset_type="custom",
            dataset_name=source,
            metric_type=metric,
            metric_value=value,
        )
        for task, metric, value in _scores(run)
    ]
    kinds = "sentence-transformers feature-extraction sentence-similarity docjax jax"
    data = ModelCardData(
        library_name="sentence-transformers",
        base_model=base and base.partition("@")[0],
        pipeline_tag="sentence-similarity",
        tags=kinds.split(),
        model_name=name if results else None,
        eval_results=results or None,
    )
    return data.to_yaml()


def _cuts(config: Mapping[str, Any], width: int) -> dict[str, Any]:
    """Why the vectors may be cut, in words, and to how many numbers."""
    trained = config.get("objective", {}).get("widths") or ()
    widths = [each for each in trained if each <= width]
    document = config.get("encoder", {}).get("document") or {}
    reasons = []
    if widths:
        reasons.append(f"is trained for {', '.join(map(str, widths))} numbers")
    if document.get("components"):
        reasons.append("has the principal components of its documents first")
    return {"reasons": reasons, "first": max(widths, default=width // 2)}


def _scores(run: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Task, metric and value of each score."""
    metrics = run.get("metrics", {}).items()
    matches = [(re.fullmatch(METRICS, key), value) for key, value in metrics]
    return [(match[1], match[2], float(value)) for match, value in matches if match]


def _data(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The source of a run, and the counts of its corpus."""
    yield "source", _source(run["config"])
    for key, value in run["corpus"].items():
        if isinstance(value, Mapping):
            counts = [f"{_cell(name)}: {count:,}" for name, count in value.items()]
            yield key, ", ".join(counts) or "none"
        else:
            yield COUNTS.get(key, key), f"{value:,}"


def _source(config: Mapping[str, Any]) -> str:
    """The kind of source, and the name of its file without the folders above it."""
    source = config["source"]
    path = source.get("path")
    return _short(source) + (f" {Path(str(path)).name}" if path else "")


def _public(node: Any) -> Any:
    """A config that names files and folders without the folders above them."""
    if not isinstance(node, Mapping):
        return node
    return {
        key: Path(value).name
        if key in PATHS and isinstance(value, str) and not re.fullmatch(HUB, value)
        else _public(value)
        for key, value in node.items()
    }


def _cell(text: str) -> str:
    """A text that stays inside its cell of a table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def _short(node: Mapping[str, Any]) -> str:
    return node["fn"].rpartition(".")[2]
