"""`docjax augment`: the paraphrases of a text, side by side."""

import argparse
from pathlib import Path

HELP = "show a text under each paraphrase"
EXAMPLE = "docjax augment 'Prices rise' --lexicons nltk_data"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text")
    parser.add_argument("--model", type=Path, help="a run for vocabulary and views")
    parser.add_argument("--lexicons", help="the folder of NLTK's data")
    parser.add_argument("--paraphrases", help="a file of word pairs, such as PPDB's")
    parser.add_argument(
        "--rewritten",
        help="JSON lines whose id is a text, with another wording of that text",
    )
    parser.add_argument("--seed", type=int, default=0)


def run(flags: argparse.Namespace) -> None:
    from docjax.run.side_by_side import augmented

    texts = augmented(
        flags.text,
        run=flags.model,
        lexicons=flags.lexicons,
        paraphrases=flags.paraphrases,
        rewritten=flags.rewritten,
        seed=flags.seed,
    )
    for name, text in texts.items():
        print(f"{name:14} {text}")
