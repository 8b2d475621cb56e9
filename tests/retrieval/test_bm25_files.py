import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.retrieval import bm25, bm25_files
from docjax.types import Document, Section

ROOT = Path(__file__).resolve().parents[2]
COUNT = 300
QUERIES = {"q": "word1 word20 word20 the", "r": "word299", "s": "zebra", "t": ""}


SMALL = {"DOCUMENTS": 32, "AT_ONCE": 64}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many blocks, many ranges, and words that are a range of their own."""
    for name, value in SMALL.items():
        monkeypatch.setattr(bm25_files, name, value)


def documents(count: int = COUNT):
    """Documents with frequent and rare words; every seventh has no word."""
    generator = np.random.default_rng(0)
    for number in range(count):
        size = 0 if number % 7 == 0 else generator.integers(1, 60)
        chosen = (300 * generator.random(size) ** 3).astype(int)
        text = " ".join(["the", *(f"word{word}" for word in chosen)])
        yield Document(f"d{number}", (Section("", text),))


@pytest.mark.parametrize("name", bm25.PRESETS)
def test_the_files_hold_what_bm25s_makes_in_memory(name, tmp_path):
    expected = bm25.index(documents(), bm25.preset(name))
    bm25_files.write(documents(), bm25.preset(name), tmp_path)
    read = bm25.load(tmp_path, expected.ids)
    assert isinstance(read.scorer.scores["data"], np.memmap)
    assert read.settings == bm25.preset(name)
    assert columns(read.scorer) == columns(expected.scorer)
    assert read.search(QUERIES, 20) == expected.search(QUERIES, 20)
    assert read.search(QUERIES)["s"] == {} and read.search({}) == {}


def columns(scorer) -> dict[str, tuple[list, list]]:
    """The documents and scores of each word."""
    data, indices, starts = (scorer.scores[n] for n in ("data", "indices", "indptr"))
    part = lambda array, word: array[starts[word] : starts[word + 1]].tolist()
    return {
        name: (part(indices, word), part(data, word))
        for name, word in scorer.vocab_dict.items()
        if name
    }


def test_frequent_words_are_merged_alone():
    frequencies = np.array([10, 64, 20, 30, 10, 10, 200, 70, 1])
    assert bm25_files._ranges(frequencies).tolist() == [0, 1, 2, 4, 6, 7, 8]


def test_memory_does_not_grow_with_the_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(bm25_files, "AT_ONCE", 1024)

    def most(count: int) -> int:
        tracemalloc.start()
        bm25_files.write(documents(count), bm25.Settings(), tmp_path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    most(100)  # fills caches
    assert most(4000) < 1.5 * most(1000)


def test_every_process_writes_the_same_bytes(tmp_path):
    folders = [tmp_path / "1", tmp_path / "2"]
    for folder in folders:
        folder.mkdir()
        subprocess.run(
            [sys.executable, __file__, folder],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": folder.name},
            timeout=300,
            check=True,
        )
    first, second = (
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in folders
    )
    assert first == second and len(first) == 6


def test_documents_of_stop_words_alone_are_refused(tmp_path):
    few = [Document("0", (Section("", "the and of it"),))]
    with pytest.raises(UserError, match="none of 1 documents has a word"):
        bm25_files.write(few, bm25.Settings(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_listed_stop_words_are_kept(tmp_path):
    settings = bm25.Settings(stop_words=("river",))
    bm25_files.write(documents(9), settings, tmp_path)
    assert bm25.load(tmp_path, list("012345678")).settings == settings


@pytest.mark.parametrize("name", bm25.PRESETS)
def test_a_search_finds_what_an_index_in_memory_finds(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = bm25.PRESETS[name]
    found = bm25_files.search(documents(), QUERIES, top=20, settings=settings)
    expected = bm25.index(documents(), settings).search(QUERIES, 20)
    assert found == expected and len(found["q"]) == 20
    assert [*map(list, found.values())] == [*map(list, expected.values())]
    assert not list(tmp_path.iterdir())


if __name__ == "__main__":
    vars(bm25_files).update(SMALL)
    bm25_files.write(documents(), bm25.Settings(), Path(sys.argv[1]))
