"""A package of somebody else: its source, loss, task, document encoder and optimizer."""

import dataclasses
import functools
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import docjax
from docjax import cli, main
from docjax.errors import UserError
from docjax.parts import outside
from docjax.run import corpora, fields

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = {
    "__init__.py": '"""Parts for docjax, which docjax knows nothing of."""\n',
    "broken.py": "1 / 0\n",
    "source.py": '''
from docjax.types import Document, Section

TOPICS = ("the river floods the valley of stones", "a rocket leaves the dark orbit")


def topics(count=24):
    """Documents of two subjects, a section each sentence."""
    for number in range(count):
        words = TOPICS[number % 2].split()
        sections = [
            Section(f"part {i}", " ".join(words[i % 7:] + words[:i % 7]) + ".")
            for i in range(2 + number % 3)
        ]
        split = "test" if number % 4 == 3 else "train"
        yield Document(str(number), tuple(sections), label=str(number % 2), split=split)
''',
    "loss.py": '''
import jax
import jax.numpy as jnp

from docjax.objectives.facts import loss


@loss(similarity="dot")
def products(vectors, targets, *, scale=0.1):
    """Cross-entropy of dot products, and a metric of its own."""
    logits = vectors[0] @ vectors[1].T * scale
    right = (logits.argmax(-1) == jnp.arange(len(logits))).mean()
    return -jnp.diag(jax.nn.log_softmax(logits)).mean(), {"right": right}


def of_one(vectors):
    return vectors.sum(), {}


def raises(vectors, targets):
    raise RuntimeError("no loss today\\nand a second line")


def silent(vectors, targets):
    return (vectors[0] - vectors[1]).mean(), {}


@loss(similarity="euclid")
def euclid(vectors, targets):
    return (vectors[0] - vectors[1]).mean(), {}


def chosen(vectors, targets, *, similarity="manhattan"):
    return (vectors[0] - vectors[1]).mean(), {}
''',
    "misspelt.py": """
from docjax.objectives.facts import loss


@loss(similarty="dot")
def misspelt(vectors, targets):
    return vectors.mean(), {}
""",
    "plain.py": """
import dataclasses


def all_test(documents):
    for document in documents():
        yield dataclasses.replace(document, split="test")


class NoModule:
    def __init__(self, width: int = 8):
        self.width = width


class All:
    metric = None

    def held_out(self, rows, seed):
        return rows

    def choose(self, run, mesh, start, trained):
        return None
""",
    "encoder.py": '''
import flax.linen as nn
import jax.numpy as jnp

from docjax.encoders.document_defaults import DocumentDefaults


class Longest(DocumentDefaults):
    """A linear layer of the vector of the longest segment."""

    width: int = 8

    @nn.compact
    def query(self, vectors):
        return nn.Dense(self.width, name="dense")(vectors)

    def __call__(self, vectors, lengths, places=None, graphs=None):
        longest = lengths.argmax(-1)[..., None, None]
        return self.query(jnp.take_along_axis(vectors, longest, axis=-2)[..., 0, :])
''',
    "task.py": '''
import dataclasses

import numpy as np

from docjax.tasks.task import TaskDefaults


@dataclasses.dataclass(frozen=True)
class Spread(TaskDefaults):
    """The mean cosine of two test documents."""

    command = "spread"
    reads = "labels"
    on_baselines = False

    def check(self, data, part):
        data.labels(part)

    def __call__(self, data, part):
        vectors = np.asarray(data.labelled(part).vectors)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return {"cosine": float((vectors @ vectors.T).mean())}


@dataclasses.dataclass(frozen=True)
class Broken(Spread):
    command = "broken"

    def __call__(self, data, part):
        raise KeyError("no such figure")


class Half:
    """No task: it has no check."""

    def __call__(self, data, part):
        return {}
''',
    "config.py": """
import docjax


def get_config(variant=""):
    config = docjax.config.load("graph_roberta", variant="smoke")
    config.source = dict(fn="mylab.source.topics")
    config.objective = dict(fn="mylab.loss.products", scale=0.2)
    config.graph = None
    config.encoder.document = dict(fn="mylab.encoder.Longest")
    config.optimizer = dict(
        fn="optax.lion",
        learning_rate=dict(
            fn="optax.warmup_cosine_decay_schedule",
            init_value=0.0,
            peak_value=1e-3,
            warmup_steps=2,
            decay_steps=6,
        ),
        weight_decay=0.01,
        clip=0.5,
    )
    config.tasks = dict(spread=dict(fn="mylab.task.Spread"))
    config.update(batch=8, microbatch=8, steps=6, log_every=1, checkpoint_every=2)
    config.tokenizer.train.vocabulary = 300
    config.limits.segment_tokens = 16
    return config
""",
}
KILLED = """
import os, signal, sys
import docjax

class Kill:
    def step(self, step, metrics):
        if step == 5:
            os.kill(os.getpid(), signal.SIGKILL)

docjax.train(sys.argv[1], sys.argv[2], allow="mylab.", callbacks=[Kill()])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The folder of the package `mylab`, which Python finds."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "mylab").mkdir()
    for name, text in PACKAGE.items():
        (folder / "mylab" / name).write_text(text.lstrip("\n"))
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "mylab"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def config_file(package) -> str:
    return str(package / "mylab/config.py")


@pytest.fixture(scope="module")
def trained(package, config_file, tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("trained") / "run"
    docjax.train(config_file, run, allow=("mylab.",))
    return run


def one_line(error) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def changed(config_file: str, **fields):
    config = docjax.config.load(config_file)
    for name, value in fields.items():
        if name == "encoder":
            config.encoder.update(value)
        else:
            config[name] = value
    return config


def start(package: Path, *arguments: str) -> subprocess.CompletedProcess:
    paths = os.pathsep.join([str(package), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False
    )


def test_a_killed_run_resumes_to_the_same_bits(package, config_file, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    dead = start(package, "-c", KILLED, config_file, str(killed))
    assert dead.returncode == -signal.SIGKILL
    flags = [f"--config={config_file}", "--allow=mylab."]
    again = start(package, "-m", "docjax.main", *flags, f"--workdir={killed}")
    assert again.returncode == 0, again.stderr
    assert re.search("resumed at step [24]", again.stderr)  # 4 may not be sealed yet
    assert "eval/spread/cosine" in json.loads(again.stdout.splitlines()[-1])
    alone = start(package, "-m", "docjax.main", *flags, f"--workdir={whole}")
    assert alone.returncode == 0, alone.stderr
    models = [docjax.load(run, allow="mylab.") for run in (killed, whole)]
    jax.tree.map(np.testing.assert_array_equal, *(model.params for model in models))


def test_it_is_recorded_loaded_evaluated_and_reported(trained, tmp_path, capsys):
    facts = json.loads((trained / "config.json").read_text())
    [package] = facts["outside"]
    assert package["prefix"] == "mylab." and len(package["sha256"]) == 64
    assert package["distribution"] is None and package["version"] is None
    model = docjax.load(trained, allow="mylab.")
    assert model.similarity_fn_name == "dot" == facts["similarity"]
    assert model.encode(["a rocket", "the river"]).shape == (2, 8)
    page = (trained / "report/index.html").read_text("utf-8")
    assert "spread" in page
    data = tmp_path / "labelled.jsonl"
    lines = [
        {"id": str(i), "text": f"word {i}", "label": str(i % 2), "split": split}
        for i, split in enumerate(["train", "train", "test", "test"])
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    flags = ["--task", "mylab.task.Spread", "--data", str(data), "--allow", "mylab."]
    assert cli.main(["evaluate", str(trained), *flags]) == 0
    assert "eval/spread/cosine" in json.loads(capsys.readouterr().out)


def test_foreign_errors_outside_of_training_are_one_line(
    config_file, trained, tmp_path, capsys
):
    data = tmp_path / "labelled.jsonl"
    line = '{"id": "%d", "text": "word", "label": "a", "split": "test"}\n'
    data.write_text("".join(line % number for number in range(4)))
    flags = ["--task", "mylab.task.Broken", "--data", str(data), "--allow", "mylab."]
    assert cli.main(["evaluate", str(trained), *flags]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert re.search(
        r"docjax evaluate: mylab.task.Broken.* \(task.py:\d+\) raised Key", line
    )
    config = fields.resolve(
        changed(config_file, objective=dict(fn="mylab.loss.raises")), "mylab."
    )
    with pytest.raises(UserError, match=r"--mode=plan: mylab.loss.raises \(loss.py:"):
        main.run(config, tmp_path, "plan")


class Fails:
    def begin(self, config, workdir):
        config["no such field"]


def test_a_callback_that_fails_as_a_complete_run_continues_says_what_is_saved(
    config_file, trained
):
    with pytest.raises(UserError) as error:
        docjax.train(config_file, trained, allow="mylab.", callbacks=[Fails()])
    line = one_line(error)
    assert "callback Fails raised KeyError in begin() (test_outside.py:" in line
    assert f"stopped at step 6 of 6, saved in {trained}" in line
    assert isinstance(error.value.__cause__, KeyError)


def test_an_export_names_the_encoder_that_has_no_torch_form(trained, tmp_path, capsys):
    out = tmp_path / "exported"
    assert cli.main(["export", str(trained), str(out), "--allow=mylab."]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "mylab.encoder.Longest has no torch form" in line
    assert not out.exists() and not list(tmp_path.iterdir())


def test_without_allow_each_door_is_shut_in_one_line(
    package, config_file, trained, tmp_path, capsys
):
    with pytest.raises(UserError) as error:
        docjax.train(config_file, tmp_path / "run")
    assert "allow it with allow=('mylab.',)" in one_line(error)
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="'mylab.encoder.Longest' is not under docjax"):
        docjax.load(trained)
    assert cli.main(["encode", str(trained), "-", "--output", "-"]) == 2
    assert "--allow=mylab." in capsys.readouterr().err
    flags = [f"--config={config_file}", f"--workdir={tmp_path / 'run'}"]
    process = start(package, "-m", "docjax.main", *flags)
    assert process.returncode == 2 and "Traceback" not in process.stderr
    assert "is not under docjax" in process.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "fields, line",
    [
        (
            dict(objective=dict(fn="mylab.loss.of_one")),
            r"loss.of_one takes \(vectors\), an objective takes \(vectors, targets\)",
        ),
        (
            dict(tasks=dict(half=dict(fn="mylab.task.Half"))),
            "mylab.task.Half has no .*check.*inherit docjax.tasks.task.TaskDefaults",
        ),
        (
            dict(source=dict(fn="mylab.loss.of_one")),
            r"source mylab.loss.of_one takes \(vectors\), a source takes \(\)",
        ),
        (
            dict(optimizer=dict(fn="optax.lyon", learning_rate=0.1)),
            "optimizer.fn 'optax.lyon': optax has no 'lyon'; it has names such as lion",
        ),
        (
            dict(optimizer=dict(fn="optax.lion", learning_rate=0.1, warmup=0.1)),
            "optimizer: optax.lion has no keyword 'warmup'",
        ),
        (
            dict(optimizer=dict(fn="optax.sgd", learning_rate=0.1, clip=-1.0)),
            "optimizer.clip -1.0: give a number above 0",
        ),
        (
            dict(keep=dict(fn="docjax.keep.Best", metric="spread/cosine")),
            "keep.metric 'spread/cosine' needs validation documents",
        ),
        (
            dict(optimizer=dict(fn="optax.sgd", learning_rate="high")),
            r"learning_rate 'high' is not [^:]*a part, dict\(fn=..., ...\)$",
        ),
        (
            dict(objective=dict(fn="mylab.loss.euclid")),
            "loss euclid has the similarity 'euclid': .* by 'cosine' or 'dot'",
        ),
        (
            dict(objective=dict(fn="mylab.loss.chosen")),
            "loss chosen has the similarity 'manhattan': .* by 'cosine' or 'dot'",
        ),
        (
            dict(objective=dict(fn="mylab.misspelt.misspelt")),
            "@loss has no fact 'similarty'; it has similarity, labelled_pairs",
        ),
        (
            dict(encoder=dict(document=dict(fn="mylab.plain.NoModule"))),
            "encoder.document .*NoModule.* is not a part, dict.* Flax module",
        ),
        (
            dict(holdout=dict(fn="mylab.plain.all_test")),
            r"splits are test \(24\): .*, or let mylab.plain.all_test leave documents to train",
        ),
        (
            dict(keep=dict(fn="mylab.plain.All")),
            "keep mylab.plain.All holds out all 18 training documents",
        ),
        (
            dict(objective=dict(fn="mylab.loss.raises")),
            r"step 1: mylab.loss.raises \(loss.py:\d+\) raised RuntimeError: no loss",
        ),
    ],
)
def test_a_part_that_does_not_fit_is_one_line(config_file, tmp_path, fields, line):
    with pytest.raises(UserError) as error:
        docjax.train(changed(config_file, **fields), tmp_path / "run", allow="mylab.")
    assert re.search(line, one_line(error)), str(error.value)


@pytest.mark.parametrize(
    "allow, line",
    [
        ("nosuchlab.", "there is no package 'nosuchlab'"),
        (("mylab.nosuch.",), "there is no package 'mylab.nosuch'"),
        ("", "is not the beginning of dotted names"),
        ((3,), "allow 3 is not the beginning of dotted names"),
        (5, "allow 5 is not the beginning of dotted names"),
        (None, "allow None is not the beginning of dotted names"),
        ("mylab.broken.sub.", "mylab.broken cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_prefix_that_does_not_exist_is_one_line(config_file, tmp_path, allow, line):
    with pytest.raises(UserError) as error:
        docjax.train(config_file, tmp_path / "run", allow=allow)
    assert line in one_line(error)


def test_the_config_of_a_run_takes_one_prefix_as_docjax_load_does(trained):
    assert fields.read(trained, "mylab.") == fields.read(trained, ("mylab.",))


def test_callbacks_that_are_no_list_are_one_line(config_file, tmp_path):
    class Notes:
        def begin(self, config, workdir): ...

    with pytest.raises(UserError) as error:
        docjax.train(config_file, tmp_path / "run", allow="mylab.", callbacks=Notes())
    assert "is not a list: give [...]" in one_line(error)


def test_a_module_without_files_has_a_digest_of_nothing():
    [facts] = outside.packages(["builtins.print"])
    assert facts["sha256"] == hashlib.sha256().hexdigest()


def test_code_that_changed_since_the_run_began_is_told(
    package, config_file, trained, caplog
):
    file = package / "mylab/source.py"
    before = file.read_text()
    file.write_text(before + "\n# changed\n")
    try:
        docjax.train(config_file, trained, allow="mylab.")
    finally:
        file.write_text(before)
    [line] = [each for each in caplog.messages if "the code of mylab" in each]
    assert "is not that of the run's begin" in line
    facts = json.loads((trained / "config.json").read_text())
    assert facts["outside"][0]["sha256"][:8] in line


def test_a_loss_that_does_not_say_how_vectors_compare_is_told(
    config_file, tmp_path, caplog
):
    config = changed(config_file, objective=dict(fn="mylab.loss.silent"), steps=1)
    docjax.train(config, tmp_path / "run", allow="mylab.")
    [line] = [each for each in caplog.messages if "does not say how" in each]
    assert "mylab.loss.silent" in line and "cosine" in line


READS = """
from pathlib import Path

from docjax.types import Document, Passage, Section


def lines(path):
    for number, text in enumerate(Path(path).read_text().splitlines()):
        yield Document(str(number), (Section("", text),))


class Words:
    readable = True

    def __init__(self, words=3):
        self.words = words

    def __call__(self, document):
        words = document.sections[0].text.split()
        starts = range(0, len(words), self.words)
        return [Passage(" ".join(words[i : i + self.words]), 0) for i in starts]
"""


def test_a_foreign_source_and_its_units_are_read_again_when_they_change(
    package, config_file, tmp_path
):
    code, texts, run = package / "mylab/reads.py", tmp_path / "a.txt", tmp_path / "run"
    code.write_text(READS)

    def corpus(words=3, begun=False):
        config = docjax.config.load(config_file)
        config.source = dict(fn="mylab.reads.lines", path=str(texts))
        config.units = dict(fn="mylab.reads.Words", words=words)
        config.limits.segment_tokens = 64
        config = fields.resolve(config, "mylab.")
        tokenizer = corpora.tokenizer(config, run, begun)
        (run / "config.json").write_text(json.dumps(config.to_json()))
        return corpora.corpus(config, run, begun, tokenizer)

    run.mkdir()
    texts.write_text("one two three four five six\nseven eight\n")
    assert corpus().counts.tolist() == [2, 1]
    assert corpus(words=6).counts.tolist() == [1, 1]
    before = (run / "tokenizer.json").read_bytes()
    texts.write_text("one two three four five six\nnine ten\neleven\n")
    assert len(corpus()) == 3
    assert (run / "tokenizer.json").read_bytes() != before
    code.write_text(READS + "# no other document\n")
    assert len(corpus(begun=True)) == 3
    texts.write_text("one two three four five six\nnine ten\ntwelve\n")
    with pytest.raises(UserError, match="the documents have changed since training"):
        corpus(begun=True)


@pytest.mark.parametrize(
    "facts, line",
    [
        (
            [dict(id="a"), dict(id="a")],
            "source mylab.ids.of: duplicate id: 'a' was used",
        ),
        (
            [dict(id=3)],
            "source mylab.ids.of: wrong type: 'id' must be a string, not int",
        ),
        ([dict(id=None)], "'id' must be a string, not NoneType"),
        ([dict(id="a", label=1)], "'label' must be a string, not int"),
        ([dict(id="a", split=b"test")], "'split' must be a string, not bytes"),
    ],
)
def test_ids_of_a_foreign_source_are_refused_as_those_of_json_lines(
    package, config_file, facts, line
):
    (package / "mylab/ids.py").write_text(
        "from docjax.types import Document, Section\n\n\ndef of(facts):\n"
        "    for each in facts:\n"
        '        yield Document(**each, sections=(Section("", "a river"),))\n'
    )
    config = changed(config_file, source=dict(fn="mylab.ids.of", facts=[]))
    part = fields.resolve(config, "mylab.").source
    part = dataclasses.replace(part, built=functools.partial(part.built.func, facts))
    with pytest.raises(UserError) as error:
        list(corpora.documents(part))
    assert line in one_line(error)


def test_a_stamp_spares_the_reading_of_a_foreign_source(package, config_file, tmp_path):
    (package / "mylab/stamped.py").write_text(
        'reads = []\n\n\ndef stamp(content, **keywords):\n    return "same"\n\n\n'
        "def source(path):\n    reads.append(path)\n"
        "    from docjax.types import Document, Section\n\n"
        '    yield Document("a", (Section("", "a river of stones"),))\n'
    )
    config = docjax.config.load(config_file)
    config.source = dict(fn="mylab.stamped.source", path="here")
    config = fields.resolve(config, "mylab.")
    tokenizer = corpora.tokenizer(config, tmp_path, False)
    corpora.corpus(config, tmp_path, True, tokenizer)
    reads = sys.modules["mylab.stamped"].reads
    reads.clear()
    corpora.corpus(config, tmp_path, True, tokenizer)
    assert not reads


def test_fingerprints_know_the_code_of_foreign_parts(package, trained):
    def fingerprints():
        parts = model.encoder.segment, model.encoder.document
        return model.fingerprint(), *(outside.code_of(part) for part in parts)

    model, file = docjax.load(trained, allow="mylab."), package / "mylab/encoder.py"
    before, text = fingerprints(), file.read_text()
    file.write_text(text.replace("return self.query", "return -self.query"))
    try:
        after = fingerprints()
    finally:
        file.write_text(text)
    assert before[0] != after[0] and before[2] != after[2]
    assert before[1] == after[1] == ""  # docjax's own segment encoder
