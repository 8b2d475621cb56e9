"""The `docjax` command as a user calls it."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from configs import deca
from docjax import cli
from docjax.commands import augment
from docjax.run.prepare import prepare

TEXT = "It offers a strong view, and prices rise"


def shown(capsys, *arguments):
    """Exit code, and the lines that a command prints, by their first word."""
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, dict(line.split(maxsplit=1) for line in out.splitlines()), err


def test_a_command_imports_what_it_needs_alone():
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); "
        "from docjax import cli; cli.main(['encode', '--help'])"
    )
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "docjax.commands.encode" in modules and "sklearn" not in modules


def test_training_begins_without_what_its_end_needs():
    code = "import sys, docjax.main; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "docjax.training.loop" in modules
    assert not {"sklearn", "matplotlib", "nltk"} & set(modules)


def test_ctrl_c_is_one_line(capsys, monkeypatch):
    def stopped(flags):
        raise KeyboardInterrupt

    monkeypatch.setattr(augment, "run", stopped)
    assert cli.main(["augment", "a text"]) == 130
    assert capsys.readouterr().err == "docjax: stopped\n"


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
    assert error == "docjax: no space is left for the output\n"


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
