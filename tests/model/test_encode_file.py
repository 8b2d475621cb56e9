"""`docjax encode`: rows in order, whatever kills it, and however many share the work.

The file is also the program that is killed.
"""

import csv
import dataclasses
import fcntl
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import docjax
from docjax import cli
from docjax.errors import UserError
from docjax.model import encode_file as encode
from docjax.model.document_model import DocumentModel
from docjax.storage import shards
from docjax.types import Encoded

ROOT = Path(__file__).resolve().parents[2]
WORDS = "mother river garden window letter market doctor engine winter silver".split()
COUNT, SHARD = 44, 8
ENDS = ("", ".ids.jsonl", ".json")


class Killed(BaseException):
    """In place of SIGKILL: nothing catches it."""


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(encode, "DOCUMENTS", SHARD)


@pytest.fixture(scope="module")
def model(tiny) -> DocumentModel:
    return docjax.load(tiny)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Documents of 1 to 200 words, some over the limit of a segment."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 20, COUNT) * generator.choice([1, 10], COUNT)
    return written(
        tmp_path_factory.mktemp("corpus") / "corpus.jsonl",
        [" ".join(generator.choice(WORDS, length)) for length in lengths],
    )


@pytest.fixture(scope="module")
def expected(model, corpus, tmp_path_factory) -> list[bytes]:
    """The files of a run that nothing stops."""
    patch = pytest.MonkeyPatch()
    patch.setattr(encode, "DOCUMENTS", SHARD)
    output = tmp_path_factory.mktemp("expected") / "a.npy"
    encode.encode_file(model, str(corpus), output)
    patch.undo()
    return files(output)


def written(path: Path, texts: list[str]) -> Path:
    lines = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    path.write_text("\n".join(lines) + "\n")
    return path


def files(output: Path) -> list[bytes]:
    assert not list(output.parent.glob("*.partial"))
    assert not output.with_name(output.name + ".shards").exists()
    return [output.with_name(output.name + end).read_bytes() for end in ENDS]


def rows(output: Path) -> np.ndarray:
    return np.load(output, allow_pickle=False)


def run(capsys, *arguments):
    """Exit code, standard output and error of `docjax encode`."""
    code = cli.main(["encode", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_rows_ids_and_counts_are_those_of_the_documents_in_order(
    capsys, model, tiny, corpus, tmp_path
):
    output = tmp_path / "new" / "out.npy"
    code, out, _ = run(capsys, tiny, corpus, "--output", output)
    records = [json.loads(line) for line in corpus.read_text().splitlines()]
    vectors, stats = model.encode(records, return_stats=True)
    assert code == 0
    np.testing.assert_allclose(rows(output), vectors, atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    ids = output.with_name("out.npy.ids.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in ids] == [one["id"] for one in records]
    assert json.loads(out) == {"width": 16, **stats, "left_out": {}}
    again = run(capsys, tiny, corpus, "--output", output)
    assert again[:2] == (0, out)


def test_what_the_cap_cuts_is_counted(tiny, corpus, tmp_path):
    model = docjax.load(tiny)
    limits = model.limits._replace(inference_segments=1)
    model = dataclasses.replace(model, limits=limits)
    counts = encode.encode_file(model, str(corpus), tmp_path / "out.npy")
    records = [json.loads(line) for line in corpus.read_text().splitlines()]
    assert (
        counts["tokens_cut"]
        == model.encode(records, return_stats=True)[1]["tokens_cut"]
        > 0
    )


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_files(
    model, corpus, expected, tmp_path, monkeypatch
):
    """Before a shard, before its seal, and before the ids and rows have their names."""
    left, kills = 0, 0

    def rename(path, target, rename=os.rename):
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        rename(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Path, "replace", rename)
    for allowed in itertools.cycle([2, 3]):
        left = allowed
        try:
            encode.encode_file(model, str(corpus), tmp_path / "out.npy")
            break
        except Killed:
            kills += 1
    assert kills >= 5
    assert files(tmp_path / "out.npy") == expected


def test_processes_that_share_the_work_give_the_file_of_one(
    model, corpus, expected, tmp_path
):
    output = tmp_path / "out.npy"
    share = lambda number: encode.encode_file(
        model, str(corpus), output, processes=2, process=number
    )
    assert share(1) is None and share(1) is None
    assert not output.exists()
    counts = share(0)
    assert counts["documents"] == COUNT and share(1) == counts
    assert files(output) == expected


def test_finished_shards_are_not_encoded_again_but_a_flipped_bit_is_found(
    model, corpus, expected, tmp_path, monkeypatch
):
    output = tmp_path / "out.npy"
    encode.encode_file(model, str(corpus), output, processes=2, process=1)
    seen = []
    encode_stream = DocumentModel.encode_stream

    def counted(self, documents, **keywords):
        seen.append([one.id for one in documents])
        return encode_stream(self, documents, **keywords)

    monkeypatch.setattr(DocumentModel, "encode_stream", counted)
    damaged = tmp_path / "out.npy.shards" / "00000003.npz"
    flip(damaged)
    encode.encode_file(model, str(corpus), output)
    assert [one[0] for one in seen] == ["d0", "d16", "d24", "d32"]
    assert files(output) == expected


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 4
    path.write_bytes(raw)


@pytest.mark.parametrize("end", ["npz", "json"])
def test_a_shard_damaged_before_the_join_is_refused_and_then_encoded_anew(
    model, corpus, expected, tmp_path, monkeypatch, end
):
    output = tmp_path / "out.npy"
    write = shards.Shards.write

    def damaged(self, number, *rest):
        write(self, number, *rest)
        path = self.folder / f"{number:08}.{end}"
        if number == 2 and end == "npz":
            flip(path)
        elif number == 2:
            path.write_text(path.read_text().replace('"d17"', '"d71"'))

    with monkeypatch.context() as patch:
        patch.setattr(shards.Shards, "write", damaged)
        with pytest.raises(UserError, match=r"00000002.npz is not as it was written"):
            encode.encode_file(model, str(corpus), output)
    assert not output.exists()
    encode.encode_file(model, str(corpus), output)
    assert files(output) == expected


def test_a_refused_call_does_not_stand_in_the_way_of_the_mended_one(
    model, corpus, tmp_path
):
    output = tmp_path / "out.npy"
    long = model.with_prompt("word " * 600, None)
    with pytest.raises(UserError, match="no room for text: give a shorter prompt"):
        encode.encode_file(long, str(corpus), output)
    with pytest.raises(UserError, match="processes 0 is too small; give at least 1"):
        encode.encode_file(model, str(corpus), output, processes=0)
    assert list(tmp_path.iterdir()) == []


def test_another_input_or_model_is_refused_before_and_after_the_end(
    model, corpus, tiny, tmp_path
):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(corpus.read_bytes())
    other = docjax.load(tiny, dtype="bfloat16")
    output = tmp_path / "out.npy"
    for processes, place in ((2, "out.npy.shards was made"), (1, "out.npy was made")):
        encode.encode_file(model, str(copy), output, processes=processes)
        with pytest.raises(UserError, match=f"{place} with another model, prompt"):
            encode.encode_file(other, str(copy), output)
        original = copy.read_bytes()
        copy.write_bytes(original.replace(b"mother", b"father"))
        with pytest.raises(UserError, match=f"{place} of other documents; .*delete"):
            encode.encode_file(model, str(copy), output)
        copy.write_bytes(original)  # at another time, but the same
    assert encode.encode_file(model, str(copy), output)["documents"] == COUNT


def test_a_lock_that_was_removed_while_another_waited_is_taken_anew(tmp_path):
    make = lambda: shards.Shards(tmp_path / "out.npy", "model", str)

    def second() -> None:
        with (
            make().locked(),
            open(make().folder / "lock") as lock,
            pytest.raises(BlockingIOError),  # nobody else may have it
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with ThreadPoolExecutor() as threads:
        with make().locked():  # ends without a plan
            waiting = threads.submit(second)
            time.sleep(0.1)
        waiting.result()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", ENDS[:2])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_an_output_that_is_cut_short_is_made_anew(
    model, corpus, expected, tmp_path, end, share
):
    output = tmp_path / "out.npy"
    for path, raw in zip((output.with_name(f"out.npy{e}") for e in ENDS), expected):
        path.write_bytes(raw)
    os.truncate(f"{output}{end}", int(share * len(expected[ENDS.index(end)])))
    encode.encode_file(model, str(corpus), output)
    assert files(output) == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw[: raw.rindex(b'{"id')],
        lambda raw: raw.replace(b"mother", b"father"),
    ],
)
def test_an_input_that_changes_on_the_way_is_noticed(
    model, corpus, tmp_path, monkeypatch, change
):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(corpus.read_bytes())
    survey = encode.survey

    def changed(*arguments):
        found = survey(*arguments)
        copy.write_bytes(change(corpus.read_bytes()))
        return found

    monkeypatch.setattr(encode, "survey", changed)
    with pytest.raises(UserError, match=r"copy\.jsonl changed while it was encoded"):
        encode.encode_file(model, str(copy), tmp_path / "out.npy")
    assert not (tmp_path / "out.npy").exists()


def test_bad_lines_are_found_before_anything_is_encoded(
    capsys, caplog, model, tiny, corpus, tmp_path, monkeypatch
):
    lines = corpus.read_text().splitlines()
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join([*lines, "no JSON", lines[3]]) + "\n")
    output = tmp_path / "out.npy"
    with monkeypatch.context() as patch:
        patch.setattr(DocumentModel, "encode_stream", None)
        code, out, err = run(capsys, tiny, path, "--output", output)
        assert (code, out) == (2, "") and not output.exists()
        assert f"bad.jsonl, line {COUNT + 1}: bad JSON" in err
    share = ("--max-bad-fraction", "0.1")
    code, out, _ = run(capsys, tiny, path, "--output", output, *share)
    counts = json.loads(out)
    assert code == 0 and counts["documents"] == len(rows(output)) == COUNT
    assert counts["left_out"] == {"bad JSON": 1, "duplicate id": 1}
    assert caplog.text.count("left out 2 of") == 1  # read twice


def test_documents_come_from_standard_input_and_go_to_standard_output(
    capsys, tiny, corpus, expected, tmp_path, monkeypatch
):
    given = lambda: monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(corpus.read_bytes()))
    )
    vectors = np.load(io.BytesIO(expected[0]), allow_pickle=False)
    given()
    output = tmp_path / "out.npy"
    code, out, err = run(capsys, tiny, "-", "--output", output)
    assert code == 0 and "a stop loses everything" in err
    assert json.loads(out)["documents"] == COUNT
    np.testing.assert_allclose(rows(output), vectors, atol=1e-5)
    ids = output.with_name("out.npy.ids.jsonl")
    assert ids.read_bytes() == expected[1]
    given()
    again = run(capsys, tiny, "-", "--output", output)
    assert again[0] == 2 and "is there already" in again[2]
    code, out, err = run(capsys, tiny, "-", "--output", "-")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [one["id"] for one in records][:2] == ["d0", "d1"]
    found = np.array([one["vector"] for one in records], np.float32)
    np.testing.assert_array_equal(found, rows(output))
    assert json.loads(err.splitlines()[-1])["documents"] == COUNT


def test_a_stream_of_vectors_that_are_not_finite_is_refused(capsys, tiny, monkeypatch):
    given = io.TextIOWrapper(io.BytesIO(b'{"id": "a", "text": "A text."}\n'))
    monkeypatch.setattr(sys, "stdin", given)
    vectors = [Encoded("a", np.full(4, np.nan, np.float32), None)]
    monkeypatch.setattr(DocumentModel, "encode_once", lambda *_, **__: iter(vectors))
    code, out, err = run(capsys, tiny, "-", "--output", "-")
    assert (code, out) == (2, "") and "of document 'a' is not finite" in err


def test_a_stream_that_fails_leaves_nothing(tmp_path):
    def pairs():
        yield Encoded("a", np.zeros(3, np.float32))
        raise UserError("line 2: bad JSON")

    with pytest.raises(UserError, match="line 2: bad JSON"):
        encode.write_array(pairs(), tmp_path / "out.npy")
    assert not list(tmp_path.iterdir())


def test_mistakes_are_one_line(capsys, tiny, corpus, tmp_path, monkeypatch):
    there = tmp_path / "there.npy"
    there.write_bytes(b"mine")
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    before = set(tmp_path.iterdir())
    cases = [
        ((tiny, tmp_path / "no.jsonl", "--output", tmp_path / "a.npy"), "no such file"),
        ((tmp_path, corpus, "--output", tmp_path / "a.npy"), "no such file"),
        ((tiny, corpus, "--output", there), "is there already"),
        ((tiny, corpus, "--output", tmp_path / "file/a.npy"), "cannot be written"),
        (("no-model", corpus, "--output", ""), "--output '' names no file"),
        (("no-model", corpus, "--output", "."), "--output '.' names no file"),
        (
            ("no-model", "-", "--output", tmp_path),
            f"--output '{tmp_path}' names no file",
        ),
        ((tiny, corpus, "--output", tmp_path / "a.npy", "--process", 1), "from 0 to 0"),
        ((tiny, "-", "--output", tmp_path / "a.npy", "--processes", 2), "name files"),
        ((tiny, corpus, "--output", tmp_path / "a.npy", "--distributed"), "by hand"),
        ((tiny, tmp_path / "pipe", "--output", tmp_path / "a.npy"), "a stream"),
    ]

    def initialize():
        raise ValueError("coordinator_address should be defined")

    monkeypatch.setattr("jax.distributed.initialize", initialize)
    for arguments, message in cases:
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, ""), message
        assert message in err and err.count("\n") == 1
    assert there.read_bytes() == b"mine" and set(tmp_path.iterdir()) == before


def test_a_process_killed_in_the_middle_of_a_shard_goes_on(tiny, corpus, tmp_path):
    output = tmp_path / "killed.npy"
    code, _, log = start("killed", tiny, corpus, output)
    assert code == -signal.SIGKILL, log
    folder = tmp_path / "killed.npy.shards"
    assert sorted(path.name for path in folder.glob("*.json")) == [
        "00000000.json",
        "00000001.json",
        "plan.json",
    ]
    code, out, log = start("whole", tiny, corpus, output, tmp_path / "other.npy")
    assert code == 0, log
    assert out.split() == ["4", "6"]  # shards that were encoded
    assert files(output)[:2] == files(tmp_path / "other.npy")[:2]


def start(*arguments) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", __file__, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def main(mode: str, folder: str, corpus: str, *outputs: str) -> None:
    """Encodes; "killed" is by SIGKILL, at the fourth document of the third shard."""
    encode.DOCUMENTS = SHARD
    encode_stream = DocumentModel.encode_stream
    calls = vectors = 0

    def counted(self, documents, **keywords):
        nonlocal calls, vectors
        calls += 1
        for vector in encode_stream(self, documents, **keywords):
            vectors += 1
            if mode == "killed" and vectors == 2 * SHARD + 4:
                os.kill(os.getpid(), signal.SIGKILL)
            yield vector

    DocumentModel.encode_stream = counted
    model = docjax.load(folder)
    for output in outputs:
        calls = 0
        encode.encode_file(model, corpus, Path(output))
        print(calls)


if __name__ == "__main__":
    main(*sys.argv[1:])


def read_back(output: Path) -> tuple[list[str], np.ndarray]:
    """The ids and the vectors in a file."""
    if output.suffix == ".npz":
        arrays = np.load(output, allow_pickle=False)
        return arrays["ids"].tolist(), arrays["vectors"]
    if output.suffix == ".parquet":
        table = pyarrow.parquet.read_table(output).to_pydict()
        return table["id"], np.array(table["vector"], np.float32)
    if output.suffix == ".csv":
        with open(output, encoding="utf-8", newline="") as stream:
            _, *lines = csv.reader(stream)
        return [line[0] for line in lines], np.array(
            [line[1:] for line in lines], np.float32
        )
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    return [l["id"] for l in lines], np.array([l["vector"] for l in lines], np.float32)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".jsonl"])
def test_the_output_follows_its_suffix(
    capsys, tiny, corpus, expected, tmp_path, monkeypatch, suffix
):
    monkeypatch.setattr(encode, "DOCUMENTS", SHARD)
    output = tmp_path / f"out{suffix}"
    code, out, _ = run(capsys, tiny, corpus, "--output", output)
    names, vectors = read_back(output)
    assert code == 0 and names == [f"d{i}" for i in range(COUNT)]
    np.testing.assert_array_equal(vectors, np.load(io.BytesIO(expected[0])))
    assert {path.name for path in tmp_path.iterdir()} == {
        *(output.name, f"{output.name}.json"),
    }
    with monkeypatch.context() as patch:
        patch.setattr(encode, "_encode_shards", None)
        assert run(capsys, tiny, corpus, "--output", output)[:2] == (0, out)
    output.write_bytes(output.read_bytes()[:-9])
    assert run(capsys, tiny, corpus, "--output", output)[:2] == (0, out)
    assert read_back(output)[0] == names


@pytest.mark.parametrize("name", ["out.txt", "out", "out.npy.gz"])
def test_an_output_of_another_suffix_is_refused(capsys, tmp_path, name):
    code, _, err = run(capsys, "no-model", "no.jsonl", "--output", tmp_path / name)
    assert code == 2 and "give one of .npy, .npz, .csv, .parquet, .jsonl" in err


def test_flags_name_the_columns_and_the_encoding(capsys, tiny, tmp_path):
    path = tmp_path / "news.csv"
    path.write_bytes("key;kop;tekst\nk1;Größe;Die Größe\n".encode("cp1252"))
    output = tmp_path / "out.jsonl"
    code, _, err = run(capsys, tiny, path, "--output", output)
    assert code == 2 and "the columns are 'key', 'kop', 'tekst'" in err
    flags = ("--text-column", "tekst", "--id-column", "key", "--title-column", "kop")
    code, _, err = run(capsys, tiny, path, "--output", output, *flags)
    assert code == 2 and "--encoding cp1252" in err and err.count("\n") == 1
    code, *_ = run(
        capsys, tiny, path, "--output", output, *flags, "--encoding", "cp1252"
    )
    assert code == 0 and read_back(output)[0] == ["k1"]
    expected = docjax.load(tiny).encode([{"title": "Größe", "text": "Die Größe"}])
    np.testing.assert_allclose(read_back(output)[1], expected, atol=1e-5)
    other = run(capsys, tiny, path, "--output", output, *flags, "--encoding", "cp1250")
    assert other[0] == 2 and "of other documents" in other[2]


def test_an_input_that_grows_while_it_is_encoded_is_named(
    model, corpus, tmp_path, monkeypatch
):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(corpus.read_bytes())

    def grow(*_):
        with path.open("a") as more:
            more.write('{"id": "more", "text": "river"}\n')

    monkeypatch.setattr(encode, "_encode_shards", grow)
    with pytest.raises(UserError, match=r"corpus\.jsonl changed while it was encoded"):
        encode.encode_file(model, str(path), tmp_path / "out.npy")
