"""`docjax augment`: a text under each paraphrase, side by side."""

import argparse
from pathlib import Path

from docjax.views.side_by_side import augmented

HELP = "show a text under each paraphrase"
EXAMPLE = "docjax augment 'Prices rise' --lexicons nltk_data"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text")
    parser.add_argument("--model", type=Path, help="a run: its vocabulary, its kind")
    parser.add_argument("--lexicons", help="the folder of NLTK's data")
    parser.add_argument("--paraphrases", help="a file of word pairs, as PPDB's")
    parser.add_argument(
        "--rewritten", help="JSON lines: the one whose id is the text has another text"
    )
    parser.add_argument("--seed", type=int, default=0)


def run(flags: argparse.Namespace) -> None:
    found = augmented(
        flags.text,
        run=flags.model,
        lexicons=flags.lexicons,
        paraphrases=flags.paraphrases,
        rewritten=flags.rewritten,
        seed=flags.seed,
    )
    for name, text in found.items():
        print(f"{name:14} {text}")
