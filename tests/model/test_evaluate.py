"""`docjax evaluate`: every task on the real MiniLM, and every mistake in the data."""

import functools
import json
import shutil

import numpy as np
import pytest

import docjax
from docjax import cli
from docjax import config as configs
from docjax.data.sources.jsonl import jsonl
from docjax.errors import UserError
from docjax.model.document_model import DocumentModel
from docjax.model.evaluate import _with_splits, evaluate_model
from docjax.run.corpora import source
from docjax.run.fields import resolve
from docjax.tasks.classification import LINEAR, Linear
from docjax.tasks.probe import Probe

TOPICS = {
    "cooking": "soup bread oven butter onion garlic recipe flour kitchen sauce".split(),
    "space": "rocket orbit planet moon telescope star launch comet astronaut".split(),
    "sport": "goal match player coach league stadium referee team season".split(),
}


@pytest.fixture(scope="module")
def model(minilm) -> DocumentModel:
    return docjax.load(minilm)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Labelled documents, a retrieval collection, and pairs, of three topics."""
    folder = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    records = [
        {
            "id": f"{topic}-{number}",
            "text": " ".join(generator.choice(words, 8)),
            "label": topic,
            "split": "test" if number % 3 == 0 else "train",
        }
        for number in range(9)
        for topic, words in TOPICS.items()
    ]
    write(folder / "labelled" / "all.jsonl", records)
    write(folder / "beir" / "corpus.jsonl", records)
    queries = [{"id": t, "text": f"something about {t}"} for t in TOPICS]
    write(folder / "beir" / "queries.jsonl", queries)
    ids = [one["id"] for one in records]
    qrels = [f"{t}\t{i}\t1" for t in TOPICS for i in ids if i.startswith(t)]
    table(folder / "beir" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", qrels)
    write(folder / "pairs" / "documents.jsonl", records)
    pairs = [
        f"{split}\t{a}\t{b}\t{int(a[:3] == b[:3])}"
        for number, a in enumerate(ids)
        for b in ids[number + 1 :: 5]
        for split in [("train", "test")[number % 2]]
    ]
    table(folder / "pairs" / "pairs.tsv", "split\tsource\ttarget\tlabel", pairs)
    return folder


def write(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


def table(path, header, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *lines]) + "\n")


@pytest.mark.parametrize(
    "task, keywords",
    [
        ("clustering", {}),
        ("classification", {}),
        ("probe", dict(learning_rate=3e-3)),
        ("k_nearest", dict(neighbours=3)),
        ("few_shot", dict(shots=3)),
        ("shots", dict(shots=(2, 3), repeats=2, full=LINEAR)),
    ],
)
def test_topics_are_told_apart_by_their_labels(model, folder, task, keywords):
    found = evaluate_model(
        model, task, str(folder / "labelled" / "all.jsonl"), **keywords
    )
    names = {
        "clustering": {"nmi", "nmi_geometric", "nmi_min", "nmi_max", "purity"},
        "classification": {"accuracy", "macro_f1"},
        "few_shot": {"accuracy", "accuracy_std", "macro_f1", "macro_f1_std"},
    }
    names["probe"] = names["k_nearest"] = names["classification"]
    names["shots"] = {f"{k}/{name}" for k in (2, 3) for name in names["few_shot"]}
    names["shots"] |= {f"all/{name}" for name in names["classification"]}
    assert set(found) == {f"eval/{task}/{name}" for name in names[task]}
    assert all(v > 0.8 for name, v in found.items() if not name.endswith("_std"))


def test_topics_are_found_by_words_and_by_vectors(model, folder):
    found = evaluate_model(model, "retrieval", str(folder / "beir"))
    assert found["eval/retrieval/dense/ndcg@10"] > 0.9
    assert found["eval/retrieval/fused/ndcg@10"] > 0.9
    assert found["eval/retrieval/bm25/ndcg@10"] == 0  # no word in common


def test_a_fold_and_a_scale_are_those_of_the_task(
    capsys, model, minilm, folder, tmp_path
):
    """And of a run in a file only the judgements are read; other flags are refused."""
    beir = shutil.copytree(folder / "beir", tmp_path / "beir")
    topics = list(TOPICS)
    (beir / "folds.json").write_text(json.dumps([[topic] for topic in topics]))
    options = "--task", "retrieval", "--data", str(beir), "--fold", "1"
    given = *options, "--scale", "raw", "--output", str(tmp_path / "out")
    assert cli.main(["evaluate", str(minilm), *given]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    expected = evaluate_model(model, "retrieval", str(beir), fold=1, scale="raw")
    assert found == pytest.approx(expected)
    lines = (tmp_path / "out/retrieval/queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["query"] for line in lines] == topics[1:2]
    (beir / "corpus.jsonl").unlink()
    run = str(tmp_path / "out/retrieval/dense.trec")
    assert cli.main(["evaluate", run, *options, "--output", run]) == 2
    assert f"--output {run} is a file: give the name of a" in capsys.readouterr().err
    kept = "--output", str(tmp_path / "kept")
    assert cli.main(["evaluate", run, *options, *kept]) == 0
    [line] = (tmp_path / "kept/retrieval/queries.jsonl").read_text().splitlines()
    of_run = json.loads(capsys.readouterr().out)
    for metric in ("ndcg@10", "map"):
        value = found[f"eval/retrieval/dense/{metric}"]
        assert of_run[f"eval/retrieval/run/{metric}"] == pytest.approx(value)
        assert json.loads(line)[metric] == {"run": pytest.approx(value)}
    for flag in (
        *(["--passages"], ["--words", "wikir"], ["--scale", "raw"]),
        *(["--truncate-dim", "8"], ["--max-bad-fraction", "0.1"]),
        ["--segments", "1"],
    ):
        assert cli.main(["evaluate", run, *options, *flag]) == 2
        error = capsys.readouterr().err
        assert f"{flag[0]} does nothing to {run}, which is a run: leave" in error
        assert error.count("\n") == 1


def test_pairs_of_a_topic_are_told_from_others(model, folder):
    found = evaluate_model(model, "matching", str(folder / "pairs" / "pairs.tsv"))
    assert found["eval/matching/f1"] > 0.8 and found["eval/matching/accuracy"] > 0.8
    assert 0 < found["eval/matching/threshold"] < 1


def test_a_probe_learns_the_links_of_a_table(model, folder, tmp_path):
    lines = (folder / "pairs" / "pairs.tsv").read_text()
    table = tmp_path / "pairs.tsv"
    trained = [line for line in lines.splitlines(True) if line.startswith("train")]
    table.write_text(lines + "".join(trained).replace("train", "test"))
    options = dict(classifier=Probe(learning_rate=3e-3, held_out=0.0, epochs=100))
    documents = str(folder / "pairs" / "documents.jsonl")
    found = evaluate_model(model, "links", str(table), documents=documents, **options)
    assert set(found) == {"eval/links/accuracy", "eval/links/f1"}
    assert found["eval/links/accuracy"] > 0.7  # half of the pairs were trained


def test_texts_are_analysed_whatever_their_split(model, folder, nltk_data, wordnet):
    path = str(folder / "labelled" / "all.jsonl")
    found = evaluate_model(model, "redundancy", path, lexicons=nltk_data)
    assert set(found) == {"eval/redundancy/1-50", "eval/redundancy/all"}
    found = evaluate_model(model, "word_attention", path, lexicons=nltk_data)
    assert 0 < found["eval/word_attention/noun"] < 0.2


def test_sentences_of_a_document_are_more_alike(model, tmp_path):
    text = "The soup has garlic and onions. Add butter to the soup."
    other = "The rocket left its orbit. The planet has two moons."
    write(tmp_path / "x.jsonl", [{"id": "a", "text": text}, {"id": "b", "text": other}])
    found = evaluate_model(model, "sentence_similarity", str(tmp_path / "x.jsonl"))
    inner, inter = (found[f"eval/sentence_similarity/{x}"] for x in ("inner", "inter"))
    assert inner > inter + 0.2


def test_without_splits_a_fifth_of_each_label_is_the_test(
    model, folder, tmp_path, caplog, monkeypatch
):
    lines = (folder / "labelled" / "all.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    path = tmp_path / "all.jsonl"
    write(path, [{k: v for k, v in one.items() if k != "split"} for one in records])
    judged = []
    score = lambda self, train, test: judged.append((train, test)) or {}
    monkeypatch.setattr(Linear, "score", score)
    assert evaluate_model(model, "classification", str(path)) == {}
    ((train, test),) = judged
    assert sorted(test.labels) == sorted(list(TOPICS) * 2) and len(train.labels) == 21
    assert (
        len(train.vectors) == 21 and "no labelled document has a split" in caplog.text
    )


def test_a_run_has_the_same_test_part(folder, tmp_path):
    lines = (folder / "labelled" / "all.jsonl").read_text().splitlines()
    records = [json.loads(line) | {"split": None} for line in lines]
    records[4].pop("label")
    path = tmp_path / "all.jsonl"
    write(path, records)
    config = configs.load("graph_roberta:words")
    config.source.path = str(path)
    of_run = {each.id: each.split for each in source(resolve(config))()}
    assert of_run.pop(records[4]["id"]) is None
    read = _with_splits(functools.partial(jsonl, str(path)))
    assert {each.id: each.split for each in read()} == of_run
    assert list(of_run.values()).count("test") == 6


def test_what_is_not_used_is_told(model, folder, tmp_path, caplog, monkeypatch):
    lines = (folder / "labelled" / "all.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    records[4].pop("label"), records[7].update(split="odd")
    write(tmp_path / "some.jsonl", records)
    evaluate_model(model, "classification", str(tmp_path / "some.jsonl"))
    assert "1 documents have no label: they are not used" in caplog.text
    assert "documents of these splits are not used: {'odd': 1}" in caplog.text
    pairs = (folder / "pairs" / "pairs.tsv").read_text() + "odd\tspace-1\tspace-2\t1\n"
    (tmp_path / "pairs.tsv").write_text(pairs)
    documents = str(folder / "pairs" / "documents.jsonl")
    table = str(tmp_path / "pairs.tsv")
    evaluate_model(model, "matching", table, documents=documents)
    assert "pairs of these splits are not used: {'odd': 1}" in caplog.text


def test_judged_documents_that_are_not_there_are_told(model, folder, tmp_path, caplog):
    beir = tmp_path / "beir"
    shutil.copytree(folder / "beir", beir)
    qrels = beir / "qrels" / "test.tsv"
    text = qrels.read_text()
    qrels.write_text(text + "space\tgone\t1\n")
    evaluate_model(model, "retrieval", str(beir))
    assert "1 of 28 judged documents are not in the corpus" in caplog.text
    qrels.write_text(text.replace("-", "/").replace("query/id\tcorpus/id", "q\td"))
    with pytest.raises(UserError, match="27 of 27 judged .* 'cooking/0' is one"):
        evaluate_model(model, "retrieval", str(beir))


@pytest.mark.parametrize(
    "task, change, keywords, message",
    [
        ("few_shot", {}, dict(shots=7), "has 6 train documents, but shots=7 are drawn"),
        ("clustering", {"label": "one"}, {}, "documents have the label 'one'"),
        ("classification", {"split": "train"}, {}, "no labelled test document"),
    ],
)
def test_labels_are_looked_at_before_anything_is_encoded(
    model, folder, tmp_path, monkeypatch, task, change, keywords, message
):
    monkeypatch.setattr(DocumentModel, "encode_once", None)
    lines = (folder / "labelled" / "all.jsonl").read_text().splitlines()
    write(tmp_path / "all.jsonl", [json.loads(line) | change for line in lines])
    with pytest.raises(UserError, match=message):
        evaluate_model(model, task, str(tmp_path / "all.jsonl"), **keywords)


def test_the_last_line_of_the_command_is_the_metrics(capsys, minilm, folder):
    path = folder / "labelled" / "all.jsonl"
    options = "--task", "few_shot", "--shots", "2", "--data", str(path)
    options += "--classifier", "probe", "--repeats", "1"
    assert cli.main(["evaluate", str(minilm), *options]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 <= found["eval/few_shot/accuracy"] <= 1
    assert found["eval/few_shot/accuracy_std"] == 0  # of one draw


def test_a_missing_document_or_split_of_pairs_is_named(model, folder, tmp_path):
    pairs = (folder / "pairs" / "pairs.tsv").read_text()
    other = tmp_path / "pairs.tsv"
    documents = str(folder / "pairs" / "documents.jsonl")
    for text, message in (
        (pairs.replace("space-3", "x"), "'x' is the first"),
        (pairs.replace("test\t", "held out\t"), "there are train, held out"),
        (pairs.replace("train\t", "other\t"), 'splits "test" and dev or'),
    ):
        other.write_text(text)
        with pytest.raises(UserError, match=message):
            evaluate_model(model, "matching", str(other), documents=documents)
    with pytest.raises(UserError, match="0 files of JSON lines beside the pairs"):
        evaluate_model(model, "matching", str(other))


def test_sections_that_a_model_does_not_know_are_not_shuffled(capsys, tiny, folder):
    table = str(folder / "pairs" / "pairs.tsv")
    options = "--task", "matching", "--data", table, "--shuffled", "sections"
    assert cli.main(["evaluate", str(tiny), *options]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "shuffled 'sections': the model reads none of 26 documents as two" in error


@pytest.mark.parametrize(
    "options, message",
    [
        (("--task", "clustering", "--data", "no.jsonl"), "no such file"),
        (("--task", "retrieval", "--data", "no"), "no: no such folder; give"),
        (("--task", "matching", "--data", "no.tsv"), "no.tsv"),
        (
            ("--task", "clustering", "--data", "a", "--shots", "3"),
            "is an option of few_shot",
        ),
        (
            ("--task", "clustering", "--data", "a", "--neighbours", "3"),
            "--neighbours is an option of k_nearest; leave it out for clustering",
        ),
        (
            ("--task", "shots", "--data", "a", "--hidden-layers", "2"),
            "--hidden-layers is an option of links and probe; leave it out for shots",
        ),
        (
            ("--task", "links", "--data", "no.tsv", "--features", "sum"),
            "features='sum' is not one of concat, concat_prod_diff",
        ),
        (("--task", "links", "--data", "no.tsv"), "no.tsv: cannot be read"),
        (
            ("--task", "k_nearest", "--data", "a", "--neighbours", "0"),
            "neighbours=0: give at least 1",
        ),
        (
            ("--task", "retrieval", "--data", "a", "--fold", "-1"),
            "retrieval.fold -1 is not a whole number from 0",
        ),
        (("--task", "links"), "links has no data to read: give --data PATH"),
        (("--task", "topics", "--data", "a"), "--task 'topics' is no task: give class"),
        (
            ("--task", "clustering", "--data", "a", "--documents", "b"),
            "--documents is an option of links and matching; leave it out for clust",
        ),
        (
            ("--task", "clustering", "--data", "a", "--output", "b"),
            "--output is an option of retrieval; leave it out for clustering",
        ),
        (
            ("--task", "redundancy", "--data", "a", "--prompt", "query: "),
            "redundancy reads texts without a prompt",
        ),
        (
            ("--task", "clustering", "--data", "a", "--prompt-name", "no"),
            "--prompt-name 'no' is not one of the model's prompts: it has none",
        ),
        (("--task", "clustering", "--data", "a", "--fold", "0"), "of retrieval"),
        (("--task", "links", "--data", "a", "--shuffled", "sections"), "of matching"),
    ],
)
def test_mistakes_are_one_line(capsys, tiny, options, message):
    assert cli.main(["evaluate", str(tiny), *options]) == 2
    out, err = capsys.readouterr()
    assert not out and message in err and err.count("\n") == 1


def test_a_file_is_no_model(capsys, tmp_path):
    (tmp_path / "run.trec").write_text("x Q0 b 1 2 s\n")
    for model, task, message in (
        ("no.trec", "retrieval", "no.trec: no such file; give a TREC run or a model"),
        (tmp_path / "run.trec", "clustering", "run.trec is a file: give the folder of"),
    ):
        assert cli.main(["evaluate", str(model), "--task", task, "--data", "a"]) == 2
        out, err = capsys.readouterr()
        assert not out and message in err and err.count("\n") == 1
