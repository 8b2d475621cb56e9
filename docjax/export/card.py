"""The model card of an exported folder: README.md, with the header of the hub."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docjax.export.libraries import adds_to_transformers, is_stock
from docjax.huggingface.family import Family

OWN_CODE = ", trust_remote_code=True"
SHOWN = (  # the fields of a run's config on the card, without the run's source
    *("init", "units", "segments", "limits", "graph", "examples", "views", "encoder"),
    *("objective", "optimizer", "batch", "microbatch", "epochs", "steps", "seed"),
)
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
    """The text of the model card.

    Args:
      facts: the content of docjax.json.
      folder: what is exported.
      family: the family of the segment encoder.
      run: `config`, `metrics` and `corpus` of the run that trained the model; empty
        without a run.
    """
    stock = is_stock(folder)
    in_transformers = family.in_transformers and not adds_to_transformers(folder)
    parts = {
        "Use": _use(name, facts, stock)
        + (_transformers(name, family) if in_transformers else "")
        + _widths(name, facts, run),
        "Results": _results(run.get("metrics", {})),
        "Training data": _data(run, facts.get("base")),
        "Configuration": _configuration(facts, run.get("config", {})),
        "Limits": _limits(facts["limits"], stock),
        "Parity": _parity(facts["measured"]),
    }
    body = "\n".join(f"## {heading}\n\n{text}\n" for heading, text in parts.items())
    header = _header(name, run, facts.get("base"))
    return f"---\n{header}\n---\n\n# {name}\n\n{_about(facts)}\n\n{body}"


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
        for task, metric, value in _scores(run.get("metrics", {}))
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


def _about(facts: Mapping[str, Any]) -> str:
    segment, document = (facts["encoder"][part] for part in ("segment", "document"))
    cut = ""
    if facts["truncate_dim"] is not None:
        cut = ", the first ones of the trained model,"
    return (
        f"Vectors of {facts['width']} numbers{cut} for long documents. "
        f"`{_short(facts['units'])}` and `{_short(facts['segments'])}` cut a document into segments, "
        f"`{_short(segment)}` makes a vector of each segment, and "
        f"`{_short(document)}` makes one vector of all segments. docjax "
        f"{facts['docjax']} exported this model."
    )


def _use(name: str, facts: Mapping[str, Any], stock: bool) -> str:
    parts = [
        "With sentence-transformers 6 or newer:",
        _python(
            "from sentence_transformers import SentenceTransformer",
            f'model = SentenceTransformer("{name}"{"" if stock else OWN_CODE})',
            f"vectors = model.{_encode(facts)}(documents)",
        ),
        _code(facts["limits"], stock),
        "With docjax, which never runs code of a folder:",
        _python(
            "import docjax",
            f'model = docjax.load("{name}")',
            "vectors = model.encode(documents)",
        ),
    ]
    return "\n\n".join(parts)


def _transformers(name: str, family: Family) -> str:
    """Says how transformers reads the segment encoder."""
    keywords = "".join(f", {k}={v}" for k, v in family.model_keywords.items())
    alone = ""
    if family.alone_above:
        alone = "; its states are ours for a fresh model that reads one segment a call"
    code = _python(
        f"from transformers import {family.auto_class}, AutoTokenizer",
        f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
        f'model = {family.auto_class}.from_pretrained("{name}"{keywords})',
    )
    mask = ""
    if family.first_sees_all:
        mask = (
            "\n\nGive the model a `global_attention_mask` that is 1 at the first token "
            "and 0 elsewhere: without this mask its states differ."
        )
    return f"\n\nThe segment encoder alone, with transformers{alone}:\n\n{code}{mask}"


def _encode(facts: Mapping[str, Any]) -> str:
    """The method of sentence-transformers that gives docjax's vectors of documents."""
    return "encode_document" if "document" in facts["prompts"] else "encode"


def _widths(name: str, facts: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Says how the vectors were made fit to be cut."""
    config = run["config"] if run else {}
    trained = config.get("objective", {}).get("widths")
    widths = [width for width in trained or () if width <= facts["width"]]
    document = config.get("encoder", {}).get("document") or {}
    reasons = []
    if widths:
        reasons.append(f"is trained for {', '.join(map(str, widths))} numbers")
    if document.get("components"):
        reasons.append("has the principal components of its documents first")
    if not reasons:
        return ""
    first = max(widths, default=facts["width"] // 2)
    return (
        f"\n\nThe first numbers of a vector are a vector too: this model "
        f"{' and '.join(reasons)}. Both libraries cut with "
        f'`truncate_dim`: `docjax.load("{name}", truncate_dim={first})`.'
    )


def _code(limits: Mapping[str, Any], stock: bool) -> str:
    """Says which code sentence-transformers runs, and which text it does not read."""
    if not stock:
        return (
            "It runs `docjax_module.py` of this folder, which reads whole documents: "
            "texts, or dicts with `title` and `sections` (`heading`, `text`). "
            "`encode_query` gives the vectors of queries."
        )
    if not limits["inference_segments"]:
        return "It needs no code of this folder."
    return (
        "It needs no code of this folder. It reads only the first "
        f"{limits['segment_tokens']:,} tokens of a text, and does not warn about the "
        "rest."
    )


def _results(metrics: Mapping[str, Any]) -> str:
    scores = _scores(metrics)
    if not scores:
        return "No task was evaluated."
    return _table(
        "task | metric | value",
        (f"{task} | {metric} | {value:.4f}" for task, metric, value in scores),
    )


def _scores(metrics: Mapping[str, Any]) -> list[tuple[str, str, float]]:
    """Task, metric and value of each score."""
    matches = [(re.fullmatch(METRICS, key), value) for key, value in metrics.items()]
    return [(match[1], match[2], float(value)) for match, value in matches if match]


def _data(run: Mapping[str, Any], base: str | None) -> str:
    if not run:
        return (
            f"Exported from {base or 'a model folder'}. docjax does not know how that "
            "model was trained."
        )
    rows = [f"source | {_source(run['config'])}"]
    for key, value in run["corpus"].items():
        if isinstance(value, Mapping):
            counts = ((_cell(name), count) for name, count in value.items())
            value = ", ".join(f"{name}: {count:,}" for name, count in counts)
            rows.append(f"{key} | {value or 'none'}")
        else:
            rows.append(f"{COUNTS.get(key, key)} | {value:,}")
    part = "all documents" if run["config"].get("transductive") else "the part `train`"
    start = f", starting from the weights of {base}" if base else ""
    return f"Trained on {part}{start}.\n\n" + _table("what | value", rows)


def _source(config: Mapping[str, Any]) -> str:
    """The kind of source, and the name of its file without the folders above it."""
    source = config["source"]
    path = source.get("path")
    return _short(source) + (f" {Path(str(path)).name}" if path else "")


def _configuration(facts: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    shown = {name: config[name] for name in SHOWN if name in config} or {
        name: facts[name]
        for name in ("units", "segments", "limits", "graph", "encoder")
    }
    return f"```json\n{json.dumps(_public(shown), indent=2)}\n```"


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


def _limits(limits: Mapping[str, Any], stock: bool) -> str:
    most = limits["inference_segments"]
    if not most:
        cut = "The model reads all segments of a document."
    elif stock:
        cut = (
            f"The model reads the first {most:,} segments of a document. docjax counts "
            "the rest and warns about it; sentence-transformers cuts it silently."
        )
    else:
        cut = (
            f"The model reads the first {most:,} segments of a document, counts the "
            "rest and warns about it."
        )
    return (
        f"A segment has at most {limits['segment_tokens']:,} tokens; longer text "
        f"continues in further segments. {cut} A query has at most "
        f"{limits['query_tokens']:,} tokens."
    )


def _parity(measured: Mapping[str, Any]) -> str:
    least, most = measured["words"]
    differences = measured["differences"].items()
    rows = (f"{name} | {f'{value:.1e}' if value else 0}" for name, value in differences)
    return (
        "The largest difference between a number of an exported vector and that of the "
        f"trained model, in float32, over {measured['documents']:,} documents of "
        f"{least:,} to {most:,} words. For transformers the vectors of segments are "
        "compared; queries are the first words of some documents.\n\n"
        + _table("read with | difference", rows)
    )


def _cell(text: str) -> str:
    """A text that stays inside its cell of a table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")


def _short(node: Mapping[str, Any]) -> str:
    return node["fn"].rpartition(".")[2]


def _python(*lines: str) -> str:
    return "```python\n" + "\n".join(lines) + "\n```"


def _table(head: str, rows: Any) -> str:
    line = " | ".join("---" for _ in head.split(" | "))
    return "\n".join(f"| {row} |" for row in (head, line, *rows))
