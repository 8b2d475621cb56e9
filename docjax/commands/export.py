"""`docjax export`: a model as a folder for docjax and other libraries."""

import argparse
from pathlib import Path

from docjax.commands import options

HELP = "write a folder that other libraries load"
EXAMPLE = "docjax export runs/demo exported/demo"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, a model folder, or a Hugging Face name")
    parser.add_argument("out", type=Path, help="the new folder")
    options.add(parser, "allow", "truncate-dim")


def run(flags: argparse.Namespace) -> None:
    from docjax.export.write import export
    from docjax.huggingface import docjax_json

    folder = export(
        flags.model, flags.out, truncate_dim=flags.truncate_dim, allow=flags.allow
    )
    measured = docjax_json.read(folder)["measured"]
    print(
        f"exported to {folder}; vectors of {measured['documents']} documents differ by"
    )
    for library, difference in measured["differences"].items():
        print(f"{library:32} {difference:.1e}")
