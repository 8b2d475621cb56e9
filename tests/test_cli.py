"""The `docjax` command as a user calls it."""

import ast
import importlib
import pydoc
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import docjax
from configs import deca
from docjax import cli
from docjax.commands import augment
from docjax.run.prepare import prepare
from docjax.tasks import catalogue

TEXT = "It offers a strong view, and prices rise"


def shown(capsys, *arguments):
    """Exit code, and the lines that a command prints, by their first word."""
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, dict(line.split(maxsplit=1) for line in out.splitlines()), err


HEAVY = "jax numpy scipy sklearn flax optax grain orbax transformers".split()
HEAVY += ["matplotlib"]


def imported(code: str) -> set[str]:
    """The modules of a new process that has run `code`."""
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {code}"
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


@pytest.mark.parametrize("command", [None, *cli.COMMANDS])
def test_help_imports_nothing_heavy(command):
    argv = [command, "--help"] if command else ["--help"]
    modules = imported(f"from docjax import cli; cli.main({argv})")
    assert "docjax.commands.encode" in modules and not modules & set(HEAVY)


def test_help_lists_every_command_with_its_line(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for name in cli.COMMANDS:
        command = importlib.import_module(f"docjax.commands.{name}")
        assert f"{name} {command.HELP}" in shown


def test_help_of_evaluate_names_every_task_and_the_options_of_one(capsys):
    for words in ([], ["--task=shots"]):
        with pytest.raises(SystemExit):
            cli.main(["evaluate", *words, "--help"])
    base, of_shots = capsys.readouterr().out.split("usage: ")[1:]
    assert ", ".join(catalogue.names()) in " ".join(base.split())
    assert "--shots" not in base and "--shots SHOTS [SHOTS ...]" in of_shots


def test_importing_docjax_imports_nothing_heavy_and_shows_its_names():
    modules = imported("import docjax; dir(docjax); assert 'load' in dir(docjax)")
    assert not modules & {*HEAVY, "ml_collections"}
    shown = pydoc.render_doc(docjax, renderer=pydoc.plaintext)
    for name in docjax.__all__:
        assert name in dir(docjax) and getattr(docjax, name) is not None
        assert name in shown
    stub = ast.parse((Path(docjax.__file__).with_suffix(".pyi")).read_text())
    lists = [node for node in stub.body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(lists[0].value) == docjax.__all__
    aliases = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert sorted(a.asname for node in aliases for a in node.names) == docjax.__all__


def test_loading_a_model_imports_what_encoding_needs_alone(tiny):
    modules = imported(f"import docjax; docjax.load({str(tiny)!r}).encode('a text')")
    assert "jax" in modules
    left_out = {*HEAVY, "huggingface_hub"} - {"jax", "numpy", "flax"}
    assert not modules & left_out, modules & left_out
    assert not any(name.startswith("docjax.training") for name in modules)


def test_training_begins_without_what_its_end_needs():
    code = "import sys, docjax.main; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "docjax.training.loop" in modules
    assert not {"sklearn", "matplotlib", "nltk"} & set(modules)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)]
)
def test_a_signal_is_one_line(capsys, monkeypatch, number, code):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(augment, "run", lambda flags: signal.raise_signal(number))
    assert cli.main(["augment", "a text"]) == code
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    said = "docjax: stopped: the same command goes on with what is saved\n"
    assert capsys.readouterr().err == said


def test_an_output_without_room_is_one_line():
    code = (
        "from docjax import cli; from docjax.commands import augment; "
        "augment.run = lambda flags: print('x' * 100); cli.main(['augment', 'a'])"
    )
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", code]
        found = subprocess.Popen(
            command, stdout=full, stderr=subprocess.PIPE, text=True
        )
        error = found.communicate()[1]
    assert error.startswith("docjax: the output: cannot be written (No space left on")
    assert error.endswith("; make room\n") and error.count("\n") == 1


def test_augment_shows_a_text_under_each_paraphrase(capsys, nltk_data, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("prices\tcosts\n")
    options = "--lexicons", nltk_data, "--paraphrases", pairs
    code, found, _ = shown(capsys, "augment", TEXT, *options)
    assert code == 0
    assert found["words"] == "it offers a strong view , and prices rise"
    names = "words WordNet Paraphrases Antonyms Dropped Uninformative"
    assert list(found) == names.split()
    assert "not weak view" in found["Antonyms"]
    assert (
        found["Uninformative"] == f"{found['words']} (without --model no word is rare)"
    )
    assert found["Paraphrases"] in [
        f"it offers a strong view , and {word} rise" for word in ("prices", "costs")
    ]
    assert shown(capsys, "augment", TEXT, *options)[1] == found  # the seed's


def test_the_example_of_augment_says_which_kind_has_nothing(
    capsys, nltk_data, monkeypatch
):
    monkeypatch.chdir(Path(nltk_data).parent)
    code, found, _ = shown(capsys, *shlex.split(augment.EXAMPLE)[1:])
    assert code == 0
    assert found["words"] == "prices rise" != found["WordNet"]
    assert found["Antonyms"].startswith("prices rise (no word of the vocabulary has")


def test_augment_shows_a_rewritten_text(capsys, nltk_data, tmp_path):
    lines = tmp_path / "back.jsonl"
    lines.write_text('{"id": "Prices rise", "text": "What one pays goes up."}\n')
    options = "--lexicons", nltk_data, "--rewritten", lines
    found = shown(capsys, "augment", "Prices rise", *options)[1]
    assert found["Rewritten"] == "what one pays goes up"
    found = shown(capsys, "augment", "Prices fall", *options)[1]
    assert found["Rewritten"].startswith("prices fall (no line of")


def test_augment_with_a_folder_that_is_no_run_is_one_line(capsys, tmp_path):
    (tmp_path / "a.txt").write_text("a text")
    arguments = ["augment", str(tmp_path / "a.txt"), "--model", str(tmp_path)]
    assert cli.main(arguments) == 2
    assert f"--model {tmp_path} is no run; give" in capsys.readouterr().err


def test_augment_with_a_run_keeps_to_its_vocabulary(capsys, nltk_data, tmp_path):
    prepare(deca.get_config("smoke"), tmp_path)
    known = set((tmp_path / "tokenizer.json").read_text("utf-8").split('"'))
    options = "--lexicons", nltk_data, "--model", tmp_path
    code, found, _ = shown(capsys, "augment", "the values of a function", *options)
    assert code == 0
    words = {word for text in found.values() for word in text.split(" (no ")[0].split()}
    assert words and all(f"\u2581{word}" in known for word in words)
    code, _, err = shown(capsys, "augment", "qqqq zzzz", *options)
    assert code == 2 and "no word of 'qqqq zzzz' is in the vocabulary" in err
    for missing, message in {
        ("--lexicons", tmp_path): "wordnet is not in",
        ("--paraphrases", tmp_path / "none"): "none: no such file",
    }.items():
        code, found, err = shown(capsys, "augment", "values", *options, *missing)
        assert code == 2 and not found
        assert message in err and err.count("\n") == 1


def test_augment_with_a_run_shows_the_paraphrases_that_it_trains_on(
    capsys, nltk_data, tmp_path
):
    config = deca.get_config("smoke")
    config.views = dict(fn="docjax.views.replaced.Dropped", probability=1.0)
    prepare(config, tmp_path)
    options = "--lexicons", nltk_data, "--model", tmp_path
    _, found, _ = shown(capsys, "augment", "the values of a function", *options)
    assert found["Dropped"] == "the"  # one word is left


@pytest.mark.parametrize(
    "text, seed, message",
    [
        ("...", 0, "has no words"),
        ("good", 0, "wordnet is not in"),
        ("good", -1, "seed -1 is not a number of at least 0"),
    ],
)
def test_mistakes_are_one_line(capsys, tmp_path, text, seed, message, nltk_data):
    folder = nltk_data if text == "..." else tmp_path
    options = "--lexicons", folder, "--seed", seed
    code, found, err = shown(capsys, "augment", text, *options)
    assert code == 2 and not found
    assert message in err and err.count("\n") == 1
