"""Nothing of a model folder is ever run, and what is damaged or hostile is refused."""

import importlib.machinery
import json
import os
import pickle
import shutil
import struct
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors.numpy

import docjax
from docjax.data import graphs
from docjax.data.segments import OneEach
from docjax.data.tokenizer import train_tokenizer
from docjax.data.units import Passages, Whole
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.graph_attention import GraphAttention
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.export import parity
from docjax.export.write import export
from docjax.huggingface import exported
from docjax.huggingface import weights as huggingface
from docjax.model.document_model import DocumentModel
from docjax.storage import manifest
from docjax.types import ReadLimits

LIMITS = ReadLimits(segment_tokens=24, query_tokens=8, inference_segments=5)
SECONDS, BYTES = 20, 200 * 2**20  # that a refusal may take


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    """An exported folder of a small model, not compared with other libraries."""
    tokenizer = train_tokenizer(["a few words of a text"] * 9, 270)
    sizes = dict(vocabulary=270, layers=1, width=16, heads=2, hidden=16, positions=34)
    encoder = DocumentEncoder(Transformer(**sizes), GraphAttention(width=8))
    model = DocumentModel(
        encoder=encoder,
        params=fresh_params(encoder, 0),
        tokenizer=tokenizer,
        units=Passages(),
        segments=OneEach(),
        graph=graphs.section,
        limits=LIMITS,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "differences", lambda *_: {"nothing": 0.0})
        return export(model, tmp_path_factory.mktemp("exported") / "good")


def change(name: str, *path: str, to) -> Callable[[Path, Path], None]:
    """A hostile value in a JSON file of the folder."""

    def spoil(folder: Path, payload: Path) -> None:
        value = json.loads((folder / name).read_text())
        node = value
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = to(payload) if callable(to) else to
        (folder / name).write_text(json.dumps(value))

    return spoil


def popen(payload: Path) -> dict:
    return {"fn": "subprocess.Popen", "args": ["touch", str(payload)]}


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def pickled(folder: Path, payload: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(payload)))


def only_pickled(folder: Path, payload: Path) -> None:
    pickled(folder, payload)
    (folder / "model.safetensors").unlink()


def code(folder: Path, payload: Path) -> None:
    (folder / "modeling_evil.py").write_text(f"import os\nos.mkdir({str(payload)!r})\n")


def auto_map(folder: Path, payload: Path) -> None:
    code(folder, payload)
    names = {"AutoModel": "modeling_evil.Model", "AutoTokenizer": "modeling_evil.T"}
    for name in ("config.json", "tokenizer_config.json"):
        change(name, "auto_map", to=names)(folder, payload)


def foreign_modules(folder: Path, payload: Path) -> None:
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(payload)!r})\n")
    module = {"idx": 0, "name": "0", "path": "", "type": "evil.Module"}
    (folder / "modules.json").write_text(json.dumps([module]))


def header(size: int, text: bytes, name: str = "model.safetensors"):
    def spoil(folder: Path, payload: Path) -> None:
        (folder / name).write_bytes(struct.pack("<Q", size) + text)

    return spoil


def huge_tensor(folder: Path, payload: Path) -> None:
    entry = {"dtype": "F32", "shape": [2**31, 2**9], "data_offsets": [0, 2**42]}
    text = json.dumps({"embedding": entry}).encode()
    header(len(text), text)(folder, payload)


def flip(name: str) -> Callable[[Path, Path], None]:
    def spoil(folder: Path, payload: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 4
        (folder / name).write_bytes(content)

    return spoil


def lacks(name: str) -> Callable[[Path, Path], None]:
    return lambda folder, payload: (folder / name).unlink()


# In an exported folder whose manifest was made again, as whoever changed it would.
EXPORTED = {
    "a foreign fn of the encoder": (
        change("docjax.json", "encoder", to=popen),
        "Popen",
    ),
    "a foreign fn of the units": (
        change("docjax.json", "units", to=popen),
        "'subprocess.Popen' is not under docjax.data.units.",
    ),
    "a foreign fn of the segments": (
        change("docjax.json", "segments", to=popen),
        "'subprocess.Popen' is not under docjax.data.segments.",
    ),
    "a foreign fn inside": (
        change("docjax.json", "encoder", "head", to=popen),
        "'subprocess.Popen' is not under docjax.encoders.",
    ),
    "a function of docjax that is no part of a model": (
        change("docjax.json", "graph", to={"fn": "docjax.config.load"}),
        "'docjax.config.load' is not under docjax.data.graphs.",
    ),
    "only a pickle": (only_pickled, "missing|asks for"),
    "code": (code, "modeling_evil.py.*never run"),
    "an auto_map": (auto_map, "auto_map of config.json.*never run"),
    "foreign modules": (foreign_modules, "module evil.Module is not of an export"),
    "an oversized header": (header(2**60, b"{}"), "header too large"),
    "a header that is no JSON": (header(2**20, b" " * 2**20), "not readable"),
    "a huge tensor": (huge_tensor, "not readable"),
    "huge sizes": (
        change("docjax.json", "encoder", "segment", "width", to=2**40),
        "is",
    ),
    "huge tables": (
        change("docjax.json", "encoder", "segment", "vocabulary", to=10**15),
        "vocabulary is 1000000000000000",
    ),
    "many layers": (
        change("docjax.json", "encoder", "document", "layers", to=10**9),
        "encoder.document.layers is 1000000000",
    ),
    "a word as the width of cut vectors": (
        change("docjax.json", "truncate_dim", to="8"),
        "truncate_dim '8' is not a whole number",
    ),
    "no heads": (
        change("docjax.json", "encoder", "document", "heads", to=0),
        "encoder",
    ),
    "a word as a size": (
        change("docjax.json", "encoder", "segment", "width", to="w"),
        "encoder.segment.width 'w' is not a whole number",
    ),
    "another shape": (
        change("docjax.json", "encoder", "segment", "hidden", to=17),
        r"has shape \[16\], but docjax.json asks for \[17\]",
    ),
    "another number of layers": (
        change("docjax.json", "encoder", "document", "layers", to=3),
        "asks for",
    ),
    "an encoder that is none": (
        change("docjax.json", "encoder", to={"fn": "docjax.encoders.pooling.Mean"}),
        "not a DocumentEncoder",
    ),
    "huge segments": (
        change("docjax.json", "limits", "segment_tokens", to=2**40),
        "limits.segment_tokens 1099511627776 is not a whole number from 1 to 1,048,576",
    ),
    "a limit that is none": (
        change("docjax.json", "limits", "segment_tokens", to="many"),
        "limits.segment_tokens 'many'",
    ),
    "a format of the future": (change("docjax.json", "format", to=3), "format 3"),
    "a smaller table than the tokenizer's": (
        change("tokenizer.json", "model", "vocab", "zzz", to=271),
        "tokenizer has 272 tokens",
    ),
    "nesting without end": (
        lambda folder, _: (folder / "docjax.json").write_text("[" * 10**6),
        "not JSON",
    ),
    "no facts": (lambda folder, _: (folder / "docjax.json").write_text("{}"), "format"),
}
# In an exported folder as someone has left it.
CHANGED = {
    "a pickle": (pickled, "pytorch_model.bin is not a file of the export"),
    "code": (code, "modeling_evil.py is not a file of the export"),
    "an auto_map": (auto_map, "config.json differs from what was exported"),
    "foreign modules": (foreign_modules, "modules.json differs"),
    "no manifest": (lacks("manifest.json"), "manifest.json: no such file"),
    "no document encoder": (lacks("document.safetensors"), "safetensors is missing"),
    "a manifest without end": (
        lambda folder, _: (folder / "manifest.json").write_text("[" * 10**6),
        "manifest.json: not JSON",
    ),
    "a huge manifest": (
        lambda folder, _: (folder / "manifest.json").write_text(" " * 2**25),
        "manifest.json: longer than 16,777,216 bytes",
    ),
}
# In a plain folder of transformers or sentence-transformers.
PLAIN = {
    "a pickle alone": (only_pickled, "pytorch_model.bin, which is never unpickled"),
    "code": (code, "modeling_evil.py.*never run"),
    "an auto_map": (auto_map, "never run"),
    "foreign modules": (foreign_modules, "module evil.Module is not supported"),
    "an oversized header": (header(2**60, b"{}"), "header too large"),
    "a huge tensor": (huge_tensor, "not readable"),
    "huge sizes": (change("config.json", "hidden_size", to=2**31 - 2), "has shape"),
    "too huge sizes": (
        change("config.json", "hidden_size", to=2**40),
        "hidden_size is",
    ),
    "many layers": (change("config.json", "num_hidden_layers", to=10**9), "layers"),
}


def refused(folder: Path, payload: Path, words: str) -> None:
    """Loading fails in one line, in little time and memory, and runs nothing."""
    started, before = time.process_time(), peak_memory()
    with pytest.raises(UserError, match=words) as error:
        docjax.load(folder)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600
    assert time.process_time() - started < SECONDS
    assert peak_memory() - before < BYTES
    assert not payload.exists()


def peak_memory() -> int:
    """Bytes that this process has held at most since the last call."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def folder(good, tmp_path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "model"))


@pytest.fixture
def plain(good, tmp_path) -> Path:
    """The same segment encoder as a folder of transformers alone."""
    (tmp_path / "plain").mkdir()
    for name in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        shutil.copy(good / name, tmp_path / "plain" / name)
    shutil.copy(good / "model.safetensors", tmp_path / "plain")
    assert docjax.load(tmp_path / "plain").encode(["some text"]).shape == (1, 16)
    return tmp_path / "plain"


def test_the_payloads_would_make_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    pickled(tmp_path / "folder", tmp_path / "a")
    pickle.loads((tmp_path / "folder/pytorch_model.bin").read_bytes())
    code(tmp_path / "folder", tmp_path / "b")
    exec((tmp_path / "folder/modeling_evil.py").read_text(), {})  # noqa: S102
    assert (tmp_path / "a").exists() and (tmp_path / "b").exists()


@pytest.mark.parametrize("case", EXPORTED)
def test_a_hostile_export_runs_nothing(case, folder, tmp_path):
    spoil, words = EXPORTED[case]
    spoil(folder, tmp_path / "payload")
    manifest.seal(folder)
    refused(folder, tmp_path / "payload", words)


@pytest.mark.parametrize("case", CHANGED)
def test_what_the_manifest_does_not_name_is_refused(case, folder, tmp_path):
    spoil, words = CHANGED[case]
    spoil(folder, tmp_path / "payload")
    refused(folder, tmp_path / "payload", words)


def test_one_flipped_bit_of_any_file_is_found(folder, good, tmp_path):
    names = [str(p.relative_to(good)) for p in good.rglob("*") if p.is_file()]
    assert {"README.md", "docjax_module.py", "document.safetensors"} < set(names)
    for name in sorted({*names} - {"README.md"}):  # anybody may write into the card
        flip(name)(folder, tmp_path)
        words = f"{name}(: not readable| differs)" if name != "manifest.json" else "."
        refused(folder, tmp_path / "payload", words)
        shutil.copy(good / name, folder / name)
    docjax.load(folder)


@pytest.mark.parametrize("case", PLAIN)
def test_a_hostile_plain_folder_runs_nothing(case, plain, tmp_path):
    spoil, words = PLAIN[case]
    spoil(plain, tmp_path / "payload")
    refused(plain, tmp_path / "payload", words)


def test_what_a_download_leaves_out_is_not_missed(folder):
    """README.md and code, which docjax does not read; hidden files of the hub are new."""
    for path in (*folder.glob("*.md"), *folder.glob("*.py")):
        path.unlink()
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs")
    assert docjax.load(folder).encode(["some text"]).shape == (1, 8)


def test_a_licence_may_be_added(folder):
    card = folder / "README.md"
    card.write_text(card.read_text().replace("---\n", "---\nlicense: mit\n", 1))
    (folder / "LICENSE").write_text("MIT")
    (folder / "NOTICE.txt").write_text("of others")
    assert docjax.load(folder).encode(["some text"]).shape == (1, 8)


def test_an_export_is_read_as_it_was_written(good):
    model = docjax.load(good)
    assert isinstance(model.encoder.document, GraphAttention)
    assert model.limits == LIMITS
    assert (model.units, model.segments) == (Passages(), OneEach())
    assert model.graph.func is graphs.section
    names = safetensors.numpy.load_file(good / "document.safetensors")
    assert "document/layer_1/sender" in names
    kernel = model.params["document"]["node"]["kernel"]
    np.testing.assert_array_equal(kernel, names["document/node/kernel"])


@pytest.mark.parametrize(
    "segment, training_only",
    [
        (Transformer(vocabulary=9, layers=1, width=4, heads=2, hidden=4), "masked_lm"),
        (WordAverage(vocabulary=9, width=4), "targets"),
    ],
)
def test_what_only_training_reads_is_not_written(segment, training_only, tmp_path):
    encoder = DocumentEncoder(segment, GraphAttention(width=4))
    params = fresh_params(encoder, 0)
    extra = {"dense": {"kernel": np.ones((4, 4), np.float32)}}
    params["segment"] = {training_only: extra} | params["segment"]
    exported.write_params(tmp_path, encoder, params)
    written = {
        name
        for path in tmp_path.glob("*.safetensors")
        for name in safetensors.numpy.load_file(path)
    }
    assert not [name for name in written if training_only in name]
    assert "document/node/kernel" in written
    after = exported.read_params(tmp_path, encoder)
    assert set(after["segment"]) == set(params["segment"]) - {training_only}


def test_training_cannot_begin_with_an_export_of_word_vectors(folder, tmp_path):
    words = {"fn": "docjax.encoders.word_average.WordAverage", "vocabulary": 270}
    change("docjax.json", "encoder", "segment", to=words)(folder, tmp_path)
    manifest.seal(folder)
    with pytest.raises(UserError, match="WordAverage is not a transformer") as error:
        huggingface.load(folder)
    assert "\n" not in str(error.value)


def test_the_segment_encoder_of_an_export_begins_a_training(good):
    """`init` takes it as it takes any Hugging Face folder."""
    found, model = huggingface.load(good), docjax.load(good)
    assert (found.pooling, found.normalize, found.max_tokens) == ("first", False, 24)
    assert jax.tree.all(
        jax.tree.map(np.array_equal, found.params, model.params["segment"])
    )


def test_a_prefix_of_ones_own_is_allowed_by_name(folder, monkeypatch):
    mine = types.ModuleType("mine")
    mine.__spec__ = importlib.machinery.ModuleSpec("mine", None)
    mine.Cut = type("Cut", (Whole,), {"__module__": "mine"})
    monkeypatch.setitem(sys.modules, "mine", mine)
    change("docjax.json", "units", to={"fn": "mine.Cut"})(folder, folder)
    manifest.seal(folder)
    model = docjax.load(folder, allow=("docjax.", "mine."))
    assert type(model.units) is mine.Cut
    assert model.encode(["a text"]).shape[0] == 1
