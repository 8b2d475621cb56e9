"""The `docjax` command as a user calls it."""

import pytest

from configs import deca
from docjax import cli
from docjax.prepare import prepare

TEXT = "It offers a strong view, and prices rise"


def shown(capsys, *arguments):
    """Exit code, and the lines that a command prints, by their first word."""
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, dict(line.split(maxsplit=1) for line in out.splitlines()), err


def test_augment_shows_a_text_under_each_paraphrase(capsys, nltk_data, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("prices\tcosts\n")
    options = "--lexicons", nltk_data, "--paraphrases", pairs
    code, found, _ = shown(capsys, "augment", TEXT, *options)
    assert code == 0
    assert found["words"] == "it offers a strong view , and prices rise"
    assert list(found) == ["words", "WordNet", "paraphrases", "antonyms", "dropped"]
    assert "not weak view" in found["antonyms"]
    assert found["paraphrases"] in [
        f"it offers a strong view , and {word} rise" for word in ("prices", "costs")
    ]
    assert shown(capsys, "augment", TEXT, *options)[1] == found  # the seed's


def test_augment_with_a_run_keeps_to_its_vocabulary(capsys, nltk_data, tmp_path):
    prepare(deca.get_config("smoke"), tmp_path)
    known = set((tmp_path / "tokenizer.json").read_text("utf-8").split('"'))
    options = "--lexicons", nltk_data, "--model", tmp_path
    code, found, _ = shown(capsys, "augment", "the values of a function", *options)
    assert code == 0 and "uninformative" in found
    words = {word for text in found.values() for word in text.split()}
    assert words and all(f"\u2581{word}" in known for word in words)


@pytest.mark.parametrize(
    "text, message", [("...", "has no words"), ("good", "wordnet is not in")]
)
def test_mistakes_are_one_line(capsys, tmp_path, text, message, nltk_data):
    folder = nltk_data if text == "..." else tmp_path
    code, found, err = shown(capsys, "augment", text, "--lexicons", folder)
    assert code == 2 and not found
    assert message in err and err.count("\n") == 1
