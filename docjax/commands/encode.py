"""`docjax encode`: the vectors of a file or folder of documents.

The suffix of OUT says the format: .npy (float32 [documents, width], and the ids in
OUT.npy.ids.jsonl), .npz, .csv, .parquet or .jsonl (ids beside vectors). The vectors are
in the order of the input; OUT.json says what they were made of. Prints the counts as one
line of JSON. After a stop, the same command continues where it stopped; several
processes with the same OUT share the work. "-" as input is standard input; "-" as output prints lines
{"id": ..., "vector": [...]}. With either "-", a stop loses everything.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import docjax
from docjax.commands import options
from docjax.errors import UserError

HELP = "the vectors of a file of documents"
EXAMPLE = "docjax encode runs/demo corpus.jsonl --output vectors.npy"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, or a Hugging Face folder or name")
    parser.add_argument(
        "input",
        help=f"{options.FILES}, or -",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="OUT.npy",
        help=".npy, .npz, .csv, .parquet or .jsonl; or -",
    )
    options.prompt(parser)
    options.add(parser, "allow", "truncate-dim", "segments", *options.READING)
    options.add(parser, "processes", "process")
    parser.add_argument(
        "--distributed", action="store_true", help="find the cluster and join it"
    )


def run(flags: argparse.Namespace) -> None:
    import jax

    from docjax.model import encode_file
    from docjax.storage import vector_files
    from docjax.storage.processes import join_cluster

    processes, process = flags.processes, flags.process
    once = "-" in (flags.input, flags.output)
    if once and (processes > 1 or flags.distributed):
        raise UserError("several processes cannot share a stream (-); name files")
    options.check_file("--output", flags.output)
    if flags.output != "-":
        vector_files.check(Path(flags.output))
        options.check_other("--output", flags.output, INPUT=flags.input)
    if flags.distributed:
        join_cluster()
        processes, process = jax.process_count(), jax.process_index()
    keywords = dict(truncate_dim=flags.truncate_dim, segments=flags.segments)
    model = docjax.load(flags.model, allow=flags.allow, **keywords)
    model = model.with_prompt(flags.prompt, flags.prompt_name)
    if once:
        _once(model, flags)
        return
    counts = encode_file.encode_file(
        model,
        flags.input,
        Path(flags.output),
        reading=options.reading(flags),
        processes=processes,
        process=process,
    )
    if counts is not None:
        print(json.dumps(counts))


def _once(model: "docjax.DocumentModel", flags: argparse.Namespace) -> None:
    from docjax.model import encode_file
    from docjax.retrieval import finite
    from docjax.retrieval.beir import read_documents

    counts: dict[str, Any] = {}
    report: Counter = Counter()
    documents = read_documents(flags.input, report=report, **options.reading(flags))
    encoded = finite.checked(model.encode_once(documents, counts))
    if flags.output == "-":
        for each in encoded:
            print(json.dumps({"id": each.id, "vector": each.vector.tolist()}))
    else:
        print("documents are read once: a stop loses everything", file=sys.stderr)
        encode_file.write_array(encoded, Path(flags.output))
    del report["documents"]
    stream = sys.stderr if flags.output == "-" else sys.stdout
    print(json.dumps(counts | {"left_out": report}), file=stream)
