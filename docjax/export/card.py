"""The model card of an exported folder: README.md, with the header of the hub."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OWN_CODE = ", trust_remote_code=True"
SHOWN = (  # of a run's config: what it was trained with, not where
    *("init", "units", "segments", "limits", "graph", "views", "encoder", "objective"),
    *("optimizer", "batch", "microbatch", "epochs", "steps", "seed"),
)
COUNTS = {  # of a corpus, in the words of its summary
    "most_units": "most units of a document",
    "longest": "most tokens of a unit",
}
METRICS = r"eval/([^/]+)/(.+)"


def card(
    name: str, facts: Mapping[str, Any], stock: bool, run: Mapping[str, Any]
) -> str:
    """The text of the model card.

    Args:
      facts: docjax.json; `stock`: sentence-transformers needs no code of the folder.
      run: `config`, `metrics` and `corpus` of the run that trained it; empty: none.
    """
    parts = {
        "Use": _use(name, facts, stock),
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
    width = document.get("width", segment["width"])
    return (
        f"Vectors of long documents, of {width} numbers: a document is cut by "
        f"`{_short(facts['units'])}` and `{_short(facts['segments'])}`, `{_short(segment)}` makes a vector of each "
        f"segment, and `{_short(document)}` one of them all. Exported by docjax "
        f"{facts['docjax']}."
    )


def _use(name: str, facts: Mapping[str, Any], stock: bool) -> str:
    parts = [
        "With sentence-transformers 6 or newer:",
        _python(
            "from sentence_transformers import SentenceTransformer",
            f'model = SentenceTransformer("{name}"{"" if stock else OWN_CODE})',
            "vectors = model.encode(documents)",
        ),
        _code(facts["limits"], stock),
        "With docjax, which runs no code of any folder:",
        _python(
            "import docjax",
            f'model = docjax.load("{name}")',
            "vectors = model.encode(documents)",
        ),
    ]
    if facts["encoder"]["segment"]["fn"].endswith(".Transformer"):
        parts += [
            "The segment encoder alone, with transformers:",
            _python(
                "from transformers import AutoModel, AutoTokenizer",
                f'tokenizer = AutoTokenizer.from_pretrained("{name}")',
                f'model = AutoModel.from_pretrained("{name}", add_pooling_layer=False)',
            ),
        ]
    return "\n\n".join(parts)


def _code(limits: Mapping[str, Any], stock: bool) -> str:
    """What sentence-transformers runs, and what it leaves out."""
    if not stock:
        return (
            "It runs `docjax_module.py` of this folder, which reads whole documents: "
            "texts, or dicts with `title` and `sections` (`heading`, `text`). "
            "`encode_query` gives the vectors of queries."
        )
    if not limits["inference_segments"]:
        return "It needs no code of this folder."
    return (
        "It needs no code of this folder. Of a text longer than "
        f"{limits['segment_tokens']:,} tokens it reads the beginning alone, and says "
        "nothing of the rest."
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
    found = [(re.fullmatch(METRICS, key), value) for key, value in metrics.items()]
    return [(match[1], match[2], float(value)) for match, value in found if match]


def _data(run: Mapping[str, Any], base: str | None) -> str:
    if not run:
        return (
            f"Exported from {base or 'a model folder'}: its training is not known here."
        )
    rows = [f"source | {_source(run['config'])}"]
    for key, value in run["corpus"].items():
        if isinstance(value, Mapping):
            value = ", ".join(f"{name}: {count:,}" for name, count in value.items())
            rows.append(f"{key} | {value or 'none'}")
        else:
            rows.append(f"{COUNTS.get(key, key)} | {value:,}")
    read = "all documents" if run["config"].get("transductive") else "the part `train`"
    begun = f", beginning with the weights of {base}" if base else ""
    return f"Trained on {read}{begun}.\n\n" + _table("what | value", rows)


def _source(config: Mapping[str, Any]) -> str:
    """The kind of source, and the name of its file without the folders above."""
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
    """A config without the folders of the machine that it was trained on."""
    if isinstance(node, Mapping):
        return {key: _public(value) for key, value in node.items()}
    return Path(node).name if isinstance(node, str) else node


def _limits(limits: Mapping[str, Any], stock: bool) -> str:
    most = limits["inference_segments"]
    cut = (
        f"Of a document, the first {most:,} segments are read. What is left out is "
        + (
            "counted and logged as a warning by docjax; sentence-transformers cuts it "
            "without a word."
            if stock
            else "counted and logged as a warning."
        )
        if most
        else "All segments of a document are read."
    )
    return (
        f"A segment has at most {limits['segment_tokens']:,} tokens; a longer one goes "
        f"on in further segments. {cut} A query has at most {limits['query_tokens']:,} "
        "tokens."
    )


def _parity(measured: Mapping[str, Any]) -> str:
    least, most = measured["words"]
    found = measured["differences"].items()
    rows = (f"{name} | {f'{value:.1e}' if value else 0}" for name, value in found)
    return (
        f"The largest difference of any number to the trained model's, in float32, over "
        f"{measured['documents']:,} documents of {least:,} to {most:,} words "
        "(transformers: over the vectors of their segments; queries: over the first words "
        "of some):\n\n" + _table("read with | difference", rows)
    )


def _short(node: Mapping[str, Any]) -> str:
    return node["fn"].rpartition(".")[2]


def _python(*lines: str) -> str:
    return "```python\n" + "\n".join(lines) + "\n```"


def _table(head: str, rows: Any) -> str:
    line = " | ".join("---" for _ in head.split(" | "))
    return "\n".join(f"| {row} |" for row in (head, line, *rows))
