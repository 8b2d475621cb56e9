"""Are sections of one paper more similar than sections of linked papers, and of others?

    python -m benchmarks.colde_sections --data FOLDER --model runs/colde --pairs PAIRS.tsv

PAIRS.tsv is the table that benchmarks/colde.py writes, of which the split "test" is
read; MODEL is a run or any folder that `docjax.load` reads, such as MiniLM's. The vector
of a section is that of a document with this section alone, if it has 50 words. For each
of --count papers: the mean cosine of its sections with each other, with
the sections of a paper that it is linked to, and with those of a paper of a pair that is
not similar (CoLDE, Figure 4). Prints the three means, and their differences over the
papers with 95 % intervals.
"""

import argparse
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from sklearn.preprocessing import normalize

import docjax
from benchmarks import tiny
from benchmarks.matching import acl_papers
from docjax.data.pairs import Pair, read_pairs
from docjax.retrieval import paired
from docjax.types import Document

KINDS = ("same paper", "linked papers", "other papers")


def triples(pairs: Sequence[Pair], count: int) -> list[tuple[str, str, str]]:
    """At most `count` papers, each with a linked and another paper, at random.

    Both kinds of pairs have the same targets, so the target is the common paper.
    """
    partners: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for source, target, similar in pairs:
        partners[similar].setdefault(target, source)
    both = sorted(set(partners[True]) & set(partners[False]))
    chosen = np.random.default_rng(0).permutation(both)[:count].tolist()
    return [(name, partners[True][name], partners[False][name]) for name in chosen]


def similarities(
    vectors: Mapping[str, Float[np.ndarray, "_ d"]],
    chosen: Sequence[tuple[str, str, str]],
) -> dict[str, dict[str, float]]:
    """For each kind of pair the mean cosine of sections, for each paper."""
    means: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for name, linked, other in chosen:
        own = vectors[name] @ vectors[name].T
        means[KINDS[0]][name] = float(own[~np.eye(len(own), dtype=bool)].mean())
        means[KINDS[1]][name] = float((vectors[name] @ vectors[linked].T).mean())
        means[KINDS[2]][name] = float((vectors[name] @ vectors[other].T).mean())
    return means


def sections(paper: Document, least: int) -> list[Document]:
    """Each section of `least` words or more as a document."""
    kept = [part for part in paper.sections if len(part.text.split()) >= least]
    return [Document(f"{paper.id}-{i}", (section,)) for i, section in enumerate(kept)]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--words", type=int, default=50, help="least of a section")
    sizes = "--data", tiny.data, "--model", tiny.checkpoint, "--pairs", tiny.pairs
    flags = tiny.parse(parser, given, *sizes, "--count", 8, "--words", 5)
    papers = acl_papers(flags.data)
    cut = {paper.id: sections(paper, flags.words) for paper in papers}
    pairs = [
        pair
        for pair in read_pairs(flags.pairs)["test"]
        if all(len(cut[name]) > 1 for name in pair[:2])
    ]
    chosen = triples(pairs, flags.count)
    names = sorted({name for three in chosen for name in three})
    flat = [section for name in names for section in cut[name]]
    rows = normalize(docjax.load(flags.model).encode(flat))
    ends = np.cumsum([len(cut[name]) for name in names])[:-1]
    means = similarities(dict(zip(names, np.split(rows, ends), strict=True)), chosen)
    print(f"{len(chosen)} papers, {len(flat)} sections of {len(names)} papers")
    for kind, values in means.items():
        print(f"{kind}: {np.mean(list(values.values())):.3f}")
    for more, less in itertools.pairwise(KINDS):
        gain = paired.gain(means[more], means[less])
        low, high = gain["gain_low"], gain["gain_high"]
        print(f"{more} - {less}: {gain['gain']:+.3f} ({low:+.3f} to {high:+.3f})")


if __name__ == "__main__":
    main()
