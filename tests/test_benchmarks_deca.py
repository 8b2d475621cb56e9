"""The tables and the page of DECA, from the results of an invented workdir."""

import json
import lzma
from pathlib import Path

import pytest

from benchmarks import baselines, deca, deca_runs
from benchmarks.deca_tables import Table, interval, of_errors, spread
from docjax.data.vocabulary import vocabulary
from docjax.run import corpora, parameters
from docjax.run import prepare as prepare_lib

pytestmark = pytest.mark.usefixtures("one_device")


def flags(workdir: Path, *given: str):
    asked = ["--data", "data", "--lexicons", "nltk", "--pairs", "pairs.xz"]
    return deca.arguments([*asked, "--workdir", str(workdir), *given])


def of_run(asked, run) -> dict[str, float]:
    """Higher errors without paraphrases and with every seed; a raw way of its own."""
    accuracy = 0.97 + 0.02 * asked.objective.weight - 0.01 * asked.seed
    found = {"classification/accuracy": accuracy}
    found["classification_raw/accuracy"] = accuracy - 0.1
    if "clustering" in asked.tasks:
        found |= {"clustering/nmi": 0.5, "clustering_raw/nmi": 0.25}
    return found


@pytest.fixture
def workdir(tmp_path, monkeypatch) -> Path:
    """A few results of R8 and MR, kept by the program itself."""
    sparse = {"classification/accuracy": 0.9, "clustering/nmi": 0.4}
    with monkeypatch.context() as patch:
        patch.setattr(deca_runs, "trained", of_run)
        patch.setattr(deca_runs, "words", lambda *_: None)
        patch.setattr(baselines, "of_library", lambda *_: sparse)
        some = "--datasets r8 mr --seeds 0 1 --systems".split()
        deca.systems(flags(tmp_path, *some, "tfidf", "doc2vecc", "deca"))
        deca.systems(flags(tmp_path, *"--datasets r8 --systems deca --seeds 2".split()))
        deca.weights(flags(tmp_path, "--seeds", "0", "1"))
        deca_runs.of_paraphrases("contrastive", "WordNet", 0, flags(tmp_path))
    return tmp_path


def tables(workdir: Path, *given: str) -> dict[str, list[str]]:
    """The lines of each table that is printed, by title."""
    found = deca.tables(flags(workdir, "--only-measured", *given))
    return {table.title: table.markdown().splitlines() for table in found}


def test_results_have_the_names_and_the_form_that_others_read(workdir):
    names = {str(path.relative_to(workdir)) for path in workdir.rglob("*.json")}
    assert {"r8/tfidf-0.json", "r8/deca-2.json", "mr/doc2vecc-1.json"} <= names
    assert {"r8/lambda-0.0-0.json", "r8/lambda-0.25-1.json"} <= names
    assert "r8/WordNet-contrastive-0.json" in names
    assert len(names) == 1 + 2 + 3 + 1 + 2 + 2 + 2 * len(deca.WEIGHTS) + 1
    config, metrics = json.loads((workdir / "r8/deca-2.json").read_text())
    assert config["seed"] == 2 and config["source"]["path"] == "data/r8.jsonl.xz"
    assert metrics["classification/accuracy"] == pytest.approx(0.955)


def test_tables_put_ours_beside_what_is_published_and_count_seeds(workdir):
    given = "--datasets r8 mr r52 --systems tfidf doc2vecc deca".split()
    found = tables(workdir, *given)
    error, raw, difference, nmi, raw_nmi = found.values()
    assert error[2:8] == [
        "|  | R8 | MR | R52 | seeds |",
        "| --- | --- | --- | --- | --- |",
        "| TF-IDF | 5.2 / 10.00 | 25.4 / 10.00 | 12.4 / – | 1, 1, 0 |",
        "| Doc2vecC | 3.0 / 3.50 ± 0.71 | 29.3 / 3.50 ± 0.71 | 9.6 / – | 2, 2, 0 |",
        "| DECA (DC+SC) | 2.4 / 3.50 ± 1.00 | 28.1 / 3.00 ± 0.71 | 6.4 / – | 3, 2, 0 |",
        "",
    ]
    assert raw[4].startswith("| TF-IDF | 5.2 / 10.00 |")  # it has one way
    assert raw[5].startswith("| Doc2vecC | 3.0 / 13.50 ± 0.71 |")
    assert difference[4:] == [
        "| R8 | -0.50 [-0.50, -0.50] | 2 |",
        "| MR | -0.50 [-0.50, -0.50] | 2 |",
        "| R52 | – | 0 |",
    ]
    assert nmi[2] == "|  | R8 | R52 | seeds |"
    assert nmi[6] == "| DECA (DC+SC) | 0.592 / 0.500 ± 0.000 | 0.533 / – | 3, 0 |"
    assert raw_nmi[4].startswith("| TF-IDF | 0.358 / 0.400 |")
    assert raw_nmi[5].startswith("| Doc2vecC | 0.517 / 0.250 ± 0.000 |")


def test_tables_without_clusters_leave_nmi_out(workdir):
    found = tables(workdir, "--datasets", "mr", "--systems", "tfidf")
    assert len(found) == 2


def test_studies_have_the_rows_of_the_paper(workdir):
    (lines,) = tables(workdir, "--study", "lambda").values()
    assert lines[4] == "| 0.0 | 3.50 ± 0.71 | 13.50 ± 0.71 | 0.500 ± 0.000 | " + (
        "0.250 ± 0.000 | 2 |"
    )
    assert lines[-1].startswith("| 1.0 | 1.50 ± 0.71 |")
    (lines,) = tables(workdir, "--study", "paraphrases").values()
    assert lines[4:7] == [
        "| DECA | 2.74 / 2.50 | 2.42 / – | 2.38 / – | 2.96 / – | 1, 0, 0, 0 |",
        "| -Contrastive | 3.02 / – | 2.92 / – | 2.92 / – | 2.96 / – | 0 |",
        "| -Dictionary | 3.83 / – | 3.15 / – | 2.97 / – | – | 0 |",
    ]

    (lines,) = tables(workdir, "--study", "batch").values()
    assert lines[2:5:2] == [
        "|  | 2 | 4 | 8 | seeds |",
        "| DECA (BT+SC) | 21.69 / – | 21.94 / – | 19.61 / – | 0 |",
    ]


def test_only_measured_measures_nothing(tmp_path):
    for table in deca.tables(flags(tmp_path, "--only-measured")):
        assert not table.measured
    assert not list(tmp_path.iterdir())


def test_results_of_another_config_are_refused(workdir):
    with pytest.raises(SystemExit, match="another config"):
        tables(workdir, "--set", "epochs=1")


def test_results_hold_for_all_configs_that_the_system_reads_alike(workdir):
    sparse = "--datasets r8 --systems tfidf --set".split()
    (error, *_) = tables(workdir, *sparse, "optimizer.learning_rate=9.0").values()
    assert error[4] == "| TF-IDF | 5.2 / 10.00 | 1 |"
    with pytest.raises(SystemExit, match="another config"):
        tables(workdir, *sparse, "tokenizer.train.least_count=9")


@pytest.mark.parametrize("system", ["bert", "deca_bert"])
def test_results_of_another_transformer_are_refused(tmp_path, monkeypatch, system):
    given = "--datasets", "r8", "--systems", system, "--seeds", "0"
    monkeypatch.setattr(deca_runs, "words", lambda *_: None)
    for module, name in ((baselines, "of_bert"), (deca_runs, "fine_tuned")):
        monkeypatch.setattr(module, name, lambda *_: {"classification/accuracy": 1.0})
    deca.systems(flags(tmp_path, *given, "--bert", "one"))
    assert deca.systems(flags(tmp_path, *given, "--bert", "one"))[system, "r8"]
    with pytest.raises(SystemExit, match="another config"):
        deca.systems(flags(tmp_path, *given, "--bert", "other"))


@pytest.fixture
def some(tmp_path):
    """Flags of R8 and MR with a few documents, and of pairs of words."""
    rows = [
        {
            "id": str(i),
            "text": ("A good car, an automobile. " if i % 2 else "A bad film. ") * 4,
            "label": "odd" if i % 2 else "even",
            "split": "test" if i > 5 else "train",
        }
        for i in range(8)
    ]
    for name in ("r8", "mr"):
        with lzma.open(tmp_path / f"{name}.jsonl.xz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "pairs.tsv").write_text("film\tmovie\n")

    def found(*given: str):
        asked = ["--data", str(tmp_path), "--pairs", str(tmp_path / "pairs.tsv")]
        return flags(tmp_path / "work", *asked, *given)

    return found


WORDS = ("--set", "tokenizer.train.stop_words=false", "tokenizer.train.least_count=2")


def test_the_words_of_a_dataset_are_learnt_once(some, monkeypatch):
    made, make = [], corpora._make_tokenizer
    monkeypatch.setattr(
        corpora, "_make_tokenizer", lambda *of: made.append(1) or make(*of)
    )
    monkeypatch.setattr(
        deca_runs, "ended", lambda *run: prepare_lib.prepare(*run) and {}
    )
    for seed in (0, 1):
        deca_runs.of_system("doc2vecc", "r8", seed, some(*WORDS))
    assert len(made) == 1


def test_open_paraphrases_are_trained_with_all_their_words(
    some, nltk_data, monkeypatch
):
    runs = []
    monkeypatch.setattr(
        deca_runs, "ended", lambda *of: runs.append(prepare_lib.prepare(*of)) or {}
    )
    for way in ("appended", "open"):
        asked = some(*WORDS, "--lexicons", nltk_data)
        deca_runs.of_paraphrases(way, "WordNet", 0, asked)
    closed, opened = (vocabulary(run.tokenizer, run.corpus) for run in runs)
    new = [one for one in opened.ids if opened.counts[opened.ids[one]]]
    new = set(new) - set(closed.ids)
    assert new and min(opened.counts[opened.ids[one]] for one in new) == 1
    assert runs[1].encoder.segment.vocabulary == runs[1].tokenizer.vocabulary


def test_deca_on_bert_begins_with_the_transformer(some, nltk_data, minilm, monkeypatch):
    params = []

    def ended(*of):
        prepared = prepare_lib.prepare(*of)
        params.append(parameters.initial_params(prepared.config, prepared.encoder))
        return {"classification/accuracy": 0.8}

    monkeypatch.setattr(deca_runs, "ended", ended)
    asked = some("--lexicons", nltk_data, "--bert", str(minilm), "--seeds", "0")
    assert deca_runs.of_batch("deca_bert", "4", 0, asked)
    assert deca_runs.of_system("deca_bert_ss", "mr", 0, asked)
    run = json.loads((asked.workdir / "mr/deca_bert-batch-4-0/config.json").read_text())
    assert run["batch"] == 4 and run["limits"]["segment_tokens"] == 64
    assert run["objective"]["fn"] == "docjax.objectives.infonce.infonce"
    assert [set(one) for one in params] == [{"segment"}, {"segment", "head"}]
    assert params[0]["segment"]["embeddings"]["tokens"]["embedding"].shape == (
        30522,
        384,
    )


def test_spread_and_interval_say_no_more_than_the_seeds_do():
    assert spread({}, 2) == interval([]) == "–"
    assert spread({3: 1.0}, 2) == "1.00" and interval([1.0]) == "+1.00"
    assert spread({0: 1.0, 1: 3.0}, 1) == "2.0 ± 1.4"
    # Student's t, 0.975, with 2 degrees of freedom: 4.303; standard error: 1 / sqrt(3)
    assert interval([1.0, 2.0, 3.0]) == "+2.00 [-0.48, +4.48]"


def test_differences_are_of_the_seeds_that_both_have():
    runs = {
        seed: {"classification/accuracy": accuracy}
        for seed, accuracy in enumerate((0.5, 0.6, 0.7))
    }
    other = {seed: runs[seed] for seed in (2, 1)} | {9: runs[0]}
    found = of_errors({("deca", "r8"): runs, ("doc2vecc", "r8"): other})[-1]
    assert found.columns == {
        "difference": {"R8": "+0.00 [+0.00, +0.00]"},
        "seeds": {"R8": "2"},
    }


def test_a_table_without_a_cell_has_a_dash():
    table = Table("title", {"a": {"x": "1"}, "b": {"y": "2"}}, "corner", "note")
    assert table.markdown().splitlines()[2:6] == [
        "| corner | a | b |",
        "| --- | --- | --- |",
        "| x | 1 | – |",
        "| y | – | 2 |",
    ]
