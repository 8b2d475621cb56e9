"""`docjax train`: trains a config; the same as `python -m docjax.main --config=CONFIG`.

CONFIG is a shipped config or the path of a config file, with :VARIANT. Flags set its
fields, such as --config.source.path=corpus.csv. `docjax train CONFIG --help` says what
the config trains, and names its variants.
"""

import argparse

HELP = "train on your documents"
EXAMPLE = "docjax train graph_roberta:frozen --config.source.path=corpus.jsonl"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG[:VARIANT]")
    rest = parser.add_argument(
        "flags",
        nargs=argparse.REMAINDER,
        metavar="--FLAG=VALUE",
        help="flags of docjax.main, which `python -m docjax.main --help` lists",
    )
    rest.required = False


def run(flags: argparse.Namespace) -> int:
    from docjax import main

    return main.main(["docjax train", f"--config={flags.config}", *flags.flags])
