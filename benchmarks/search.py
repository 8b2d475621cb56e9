"""Exact search against faiss's flat index: time, memory, and the same documents.

    pip install faiss-cpu
    python -m benchmarks.search --documents 1000000 --width 512 --queries 1000

The vectors are drawn at random and written to a file that both map into memory or read.
Both find the first 100 documents of all queries, in turn, on the same cores; the table
has the median of the rounds. The int8 row chooses by codes and scores again.
"""

import argparse
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import tiny
from benchmarks.turns import in_turns
from docjax.model.build_index import AT_ONCE
from docjax.retrieval import codes, shortlist
from docjax.retrieval import index_files as index
from docjax.retrieval.index_folder import Index
from docjax.retrieval.systems import QueryVectors
from docjax.storage.arrays import growing_array

TOP = 100


def made(folder: Path, flags: argparse.Namespace, kind: str | None) -> Index:
    """An index of random vectors, without words and texts."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    with (
        growing_array(folder / index.VECTORS, np.float32, (flags.width,)) as append,
        growing_array(folder / index.CODES, np.int8, (flags.width,)) as append_codes,
        growing_array(folder / index.STEPS, np.float32) as append_steps,
    ):
        for start in range(0, flags.documents, AT_ONCE):
            count = min(AT_ONCE, flags.documents - start)
            vectors = generator.standard_normal((count, flags.width), np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            append(vectors)
            if kind:
                part = codes.coded(vectors, kind)
                append_codes(part.codes)
                append_steps(part.steps)
    vectors = np.load(folder / index.VECTORS, mmap_mode="r")
    rounding = shortlist.measured(vectors, cosine=False)
    facts = {"similarity": "dot", "codes": kind, "graph": False, "bfloat16": rounding}
    return Index(folder, facts)


def flat(vectors: np.ndarray, is_tiny: bool) -> Callable[[np.ndarray], np.ndarray]:
    """faiss's search of the first TOP documents; with --tiny NumPy's, without faiss."""
    if is_tiny:
        return lambda asked: np.argsort(-asked @ vectors.T, axis=1)[:, :TOP]
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return lambda asked: index.search(asked, TOP)[1]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    sizes = "--documents", 300, "--width", 16, "--queries", 8, "--rounds", 1
    flags = tiny.parse(parser, given, *sizes)
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), flags)


def compare(folder: Path, flags: argparse.Namespace) -> None:
    ours = made(folder / "int8", flags, "int8")
    exact = Index(ours.folder, {**ours.facts, "codes": None})
    asked = np.random.default_rng(1).standard_normal((flags.queries, flags.width), "f4")
    queries = QueryVectors(asked, None)
    search_flat = flat(np.load(ours.folder / index.VECTORS), flags.tiny)
    systems = {
        "faiss flat": lambda: search_flat(asked),
        "docjax": lambda: exact.by_vectors("dense", queries, TOP).rows,
        "docjax int8": lambda: ours.by_vectors("dense", queries, TOP).rows,
    }
    # The first search compiles, and brings the file into memory.
    found = {name: search() for name, search in systems.items()}
    times = in_turns(systems, flags.rounds)
    known = found["faiss flat"]
    base = np.median(times["faiss flat"])
    print(
        "| system | seconds | of faiss | recall@100 | same order |\n|---|---|---|---|---|"
    )
    for name, rows in found.items():
        recall = np.mean([len(set(a) & set(b)) / TOP for a, b in zip(known, rows)])
        same = (known == rows).all(1).mean()
        seconds = np.median(times[name])
        print(
            f"| {name} | {seconds:.2f} | {seconds / base:.2f} | {recall:.5f} "
            f"| {same:.3f} of queries |"
        )
    sizes = {
        name: (ours.folder / name).stat().st_size
        for name in (index.VECTORS, index.CODES, index.STEPS)
    }
    coded = sizes[index.CODES] + sizes[index.STEPS]
    print(f"\nint8 and steps: {coded / sizes[index.VECTORS]:.3f} of the vectors' bytes")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"most memory of the process, faiss's copy included: {most / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
