"""A config that gets no documents runs its demo."""

import pytest

from docjax.run.config_flag import demo_without_source

NAME = "configs/graph_roberta.py"


@pytest.mark.parametrize(
    "given, expected",
    [
        ([f"--config={NAME}"], [f"--config={NAME}:demo"]),
        (["--config", "graph_roberta"], ["--config=graph_roberta:demo"]),
        (
            ["-config=docsplit", "--config.seed=3", "--mode=plan"],
            ["-config=docsplit:demo", "--config.seed=3", "--mode=plan"],
        ),
    ],
)
def test_a_config_without_documents_is_its_demo(given, expected):
    flags, told = demo_without_source(["main", *given])
    assert flags == ["main", *expected]
    assert "no documents are given" in told and "\n" not in told
    assert "--config.source.path=FILE" in told  # of the published run


@pytest.mark.parametrize(
    "given",
    [
        ["--config=graph_roberta:small"],
        ["--config=graph_roberta", "--config.source.path=mine.jsonl"],
        ["--config=graph_roberta", "--config.source={'fn': 'x'}"],
        ["--config=siamese"],  # has no demo
        ["--config=no_such_config"],
        ["--config"],
        [],
    ],
)
def test_other_flags_stay_as_they_are(given):
    assert demo_without_source(["main", *given]) == (["main", *given], "")


def test_a_corpus_where_the_config_looks_for_it_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.jsonl").write_text("")
    given = ["main", "--config=graph_roberta"]
    assert demo_without_source(given) == (given, "")


def test_a_config_of_ones_own_is_never_a_demo(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import docjax\n\ndef get_config(variant=''):\n"
        "    return docjax.config.load('graph_roberta', variant)\n"
    )
    given = ["main", f"--config={path}"]
    assert demo_without_source(given) == (given, "")
