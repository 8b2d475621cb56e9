"""The recipe `graph_roberta:frozen`: what it learns, and when it keeps its start."""

import dataclasses
import json
import random
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

import docjax
from docjax import cli, main
from docjax import config as configs
from docjax.data.tokenizer import Tokenizer
from docjax.errors import UserError
from docjax.export.write import export
from docjax.model import inference
from docjax.model.inference import local_mesh
from docjax.model.load import load
from docjax.recipe import judgement as judging
from docjax.recipe import share as share_lib
from docjax.recipe.judges import Judges
from docjax.run import duration, from_data, frozen, retrieval_report
from docjax.run import prepared as prepared_lib
from docjax.run.parameters import start_params, trained_params
from docjax.run.prepare import prepare
from docjax.run.scoring import RunData, RunTexts, Scoring, plain_data
from docjax.training import memory
from docjax.types import DOCUMENT, QUERY, Section

pytestmark = pytest.mark.usefixtures("one_device")

TOPICS = {
    "space": "orbit rocket moon planet telescope launch engine crew gravity star",
    "food": "bread butter oven flour sugar salt soup pepper kitchen dinner",
    "music": "violin piano chorus melody rhythm drum concert opera singer tune",
}
LETTERS = "abdegiklmnorstuz"
COMMON = (
    "the a of and to in is was for on with as by at from it this that house river city "
    "people year day night work water money paper window street school letter number "
    "mother father morning question answer reason power place point hand head door"
).split()


def corpus(path: Path, documents: int, kind: str = "topics") -> Path:
    """Documents of 180 words, each about one of TOPICS and with six names of its own.

    kind: "shuffled" deals the words of all documents out again; "random labels" gives
    each document any label; "no labels" gives none.
    """
    generator = random.Random(0)
    names = ["".join(generator.choices(LETTERS, k=5)) for _ in range(documents)]
    texts, labels = [], []
    for number in range(documents):
        label = list(TOPICS)[number % len(TOPICS)]
        known = TOPICS[label].split()
        own = generator.sample(names, 6)
        labels.append(label)
        kinds = [known, own, *[COMMON] * 10]
        texts.append([generator.choice(kinds[i % 12]) for i in range(180)])
    if kind == "shuffled":
        words = [word for text in texts for word in text]
        generator.shuffle(words)
        texts = [words[i : i + 180] for i in range(0, len(words), 180)]
    if kind == "random labels":
        generator.shuffle(labels)
    lines = []
    for number, (text, label) in enumerate(zip(texts, labels)):
        line = {"id": str(number), "text": " ".join(text)}
        lines.append(line if kind == "no labels" else line | {"label": label})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def recipe(path: Path, init: Path, steps: int = 20):
    found = configs.load("graph_roberta:frozen")
    found.source.path, found.init = str(path), str(init)
    found.steps = steps
    found.checkpoint_every = steps
    found.tasks.few_shot.repeats = 2
    return found


def config_of(run: Path):
    return ConfigDict(json.loads((run / "config.json").read_text()))


def judgement(run: Path) -> dict:
    return json.loads((run / "judgement.json").read_text())


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    path = corpus(folder / "corpus.jsonl", 240)
    docjax.train(recipe(path, tiny), folder / "run")
    return folder / "run"


def test_it_learns_the_subjects_of_a_corpus(trained, capsys):
    lines = list(map(json.loads, (trained / "metrics.jsonl").read_text().splitlines()))
    nmi, shots = (
        [line[f"eval/{name}"] for line in lines if f"eval/{name}" in line]
        for name in ("clustering/nmi", "few_shot/accuracy")
    )
    said = judgement(trained)
    assert said["keeps"] == "trained", said["reason"]
    assert nmi[-1] > nmi[0] + 0.05
    assert shots[-1] > shots[0] + 0.1
    page = (trained / "report/index.html").read_text("utf-8")
    assert "Training helped" in page and "TF-IDF, all words" in page
    assert "init, cut at" in page and "beside LSA" in page and "Take" in page
    files = [trained.parent / f"{name}.json" for name in "ab"]
    for file, word in zip(files, ("spring", "winter")):
        file.write_text(json.dumps({"text": f"one {word} and more of it"}))
    cli.main(["compare", *map(str, (trained, *files))])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 0 <= found["percentile"] <= 100


def test_excerpts_choose_the_share_of_the_words(trained):
    chosen = json.loads((trained / "share.json").read_text())
    ranks = dict(map(tuple, chosen["ranks"]))
    assert list(ranks) == [0, *share_lib.SHARES]
    assert chosen["share"] > 0 and ranks[chosen["share"]] > ranks[0]
    share = trained_params(trained, load(trained).encoder)["document"]["share"]
    np.testing.assert_allclose(share, chosen["share"])


@pytest.mark.parametrize(
    ("gains", "share"),
    [
        ({0.1: 0.0, 0.3: 0.0}, 0.0),  # no gain
        ({0.1: 0.01, 0.3: 0.2}, 0.3),
        ({0.1: 0.19, 0.3: 0.2}, 0.1),  # as good, within a standard error
        ({0.1: -0.3, 0.3: -0.2}, 0.0),
    ],
)
def test_the_smallest_share_as_good_as_the_best(gains, share):
    generator = np.random.default_rng(0)
    noise = {x: generator.normal(size=200) for x in gains}
    centred = {x: 0.3 * (each - each.mean()) for x, each in noise.items()}
    ranks = {0.0: np.zeros(200)} | {x: gains[x] + centred[x] for x in gains}
    assert share_lib.chosen_share(ranks) == share


def test_a_resumed_run_reads_its_share(trained, monkeypatch, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "share.json").unlink()
    nothing = {0.0: np.ones(9), 0.1: np.zeros(9)}
    monkeypatch.setattr(share_lib, "_ranks_of_shares", lambda *_: nothing)
    prepared = prepare(config_of(run), run)
    assert share_lib.with_share(prepared, local_mesh()).encoder.document.share == 0
    monkeypatch.setattr(share_lib, "_ranks_of_shares", None)
    assert share_lib.with_share(prepared, local_mesh()).encoder.document.share == 0


def test_a_corpus_larger_than_the_steps_can_read_is_sampled(
    tiny, tmp_path, monkeypatch, caplog, no_report
):
    """Vectors, halves and teacher are of the sample alone; words and judges of all."""
    monkeypatch.setattr(prepared_lib, "LEAST_IN_REACH", 120)
    monkeypatch.setattr(prepared_lib, "LARGEST_BATCH", 16)
    monkeypatch.setattr(from_data, "LARGEST_BATCH", 16)
    path = corpus(tmp_path / "corpus.jsonl", 240, "no labels")
    lines = map(json.loads, path.read_text().splitlines())
    texts = [" ".join(line["text"].split()[:30]) for line in lines]
    found = recipe(written(path, texts), tiny, steps=4)
    found.views.tokens = 20
    with caplog.at_level("INFO", "docjax"):
        docjax.train(found, tmp_path / "run")
    prepared = prepare(config_of(tmp_path / "run"), tmp_path / "run")
    known = set(prepared.learnt_from.tolist())
    assert len(prepared.in_reach) == 120 and len(prepared.held_out) == 60
    assert not known & set(prepared.held_out)
    assert f"learn from {len(known)} of 240 training documents" in caplog.text
    assert ", from 180 documents" in caplog.text  # the words: no judges
    assert set(prepared.examples.rows.ravel().tolist()) == known
    assert len(prepared.halved) and set(prepared.halved.rows) <= set(prepared.in_reach)
    teacher = np.load(tmp_path / "run/teacher.npy")
    assert set(np.flatnonzero(teacher.any(1))) == known
    monkeypatch.setattr(frozen, "_write", None)  # nothing is read again
    again, in_reach = frozen.with_vectors(prepared), prepared.in_reach.tolist()
    assert again.corpus.rows_with_vectors.tolist() == in_reach
    assert " tokens of 120 documents in " in caplog.text
    judges = Judges(again, local_mesh(), None, again.held_out)
    assert 80 < len(judges.rows) and set(judges.rows) == known


def few_labels(path: Path) -> Path:
    """The corpus with a label of every fourth document, half of them for tests."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for number, line in enumerate(lines):
        line["split"] = "test" if number % 8 == 7 else "train"
        if number % 4 != 3:
            del line["label"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_labelled_documents_are_read_with_the_sample(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(prepared_lib, "LEAST_IN_REACH", 60)
    monkeypatch.setattr(prepared_lib, "LARGEST_BATCH", 15)
    monkeypatch.setattr(from_data, "LARGEST_BATCH", 15)
    path = few_labels(corpus(tmp_path / "corpus.jsonl", 240))
    metrics = main.run(recipe(path, tiny, steps=4), tmp_path / "run", "train")
    page = (tmp_path / "run/report/index.html").read_text("utf-8")
    assert "eval/classification/accuracy" in metrics and "init, cut at" in page
    monkeypatch.setattr(frozen, "_write", None)  # nothing is read again
    again = main.run(config_of(tmp_path / "run"), tmp_path / "run", "evaluate")
    for name in metrics:
        if name.startswith("eval/"):
            assert again[name] == pytest.approx(metrics[name], abs=1e-6), name
    prepared = prepare(config_of(tmp_path / "run"), tmp_path / "run")
    prepared = frozen.with_vectors(prepared)
    rows = prepared.corpus.rows_with_vectors
    assert set(rows) == set(range(3, 240, 4)) | set(prepared.in_reach)
    assert len(rows) < 130
    plain, mesh = load(tiny), local_mesh()
    documents = list(prepared.documents())[rows[-2] : rows[-2] + 2]
    data = plain_data(prepared, mesh)["all words"]()
    found = data.vectors([document.id for document in documents])
    np.testing.assert_allclose(found, plain.encode(documents), atol=1e-5)


def test_a_task_that_reads_other_documents_has_the_whole_corpus_read(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(prepared_lib, "LEAST_IN_REACH", 60)
    monkeypatch.setattr(prepared_lib, "LARGEST_BATCH", 15)
    monkeypatch.setattr(from_data, "LARGEST_BATCH", 15)
    path = few_labels(corpus(tmp_path / "corpus.jsonl", 120))
    found = recipe(path, tiny, steps=4)
    few = frozen.with_stand_ins(prepare(found, tmp_path / "few")).corpus
    assert 60 < len(few.rows_with_vectors) < 100
    found.tasks.pairs = dict(fn="docjax.tasks.matching.Matching", path="pairs.tsv")
    every = frozen.with_stand_ins(prepare(found, tmp_path / "every")).corpus
    assert len(every.rows_with_vectors) == 120


def test_the_share_can_be_set_by_a_flag():
    """A field that the recipe leaves open still has a type."""
    found = configs.load("graph_roberta:frozen")
    found.update_from_flattened_dict({"encoder.document.share": 0.4})
    with pytest.raises(TypeError):
        found.encoder.document.share = "half"


def test_after_a_collapse_the_words_are_kept_alone(trained):
    """All documents on a line: one excerpt no longer finds the other."""
    mesh = local_mesh()
    prepared = frozen.with_vectors(prepare(config_of(trained), trained))
    prepared = share_lib.with_share(prepared, mesh)
    start = start_params(prepared.config, prepared.encoder, trained)
    document = start["document"]
    kernel = np.zeros_like(document["turn"]["kernel"])
    kernel[:, 0] = 1
    collapsed = start | {"document": document | {"turn": {"kernel": kernel}}}
    said = judging.judge(prepared, mesh, start, collapsed)
    assert said.name == "words" and "keeps only the words" in said.reason
    share = said.params["document"]["share"]
    np.testing.assert_allclose(share, prepared.encoder.document.share)


def test_steps_that_make_the_words_worse_are_not_kept(trained, monkeypatch):
    """Most numbers are lost: what the words add is more, and hides it from the start."""
    mesh = local_mesh()
    prepared = frozen.with_vectors(prepare(config_of(trained), trained))
    prepared = share_lib.with_share(prepared, mesh)
    start = start_params(prepared.config, prepared.encoder, trained)
    document = prepared.encoder.document.begin(start)["document"]
    kernel = np.array(document["turn"]["kernel"])
    kernel[:, 48:] = 0
    worse = start | {"document": document | {"turn": {"kernel": kernel}}}
    said = judging.judge(prepared, mesh, start, worse)
    metrics = said.metrics
    assert metrics["judgement/trained_gain_low"] > 0
    assert metrics["judgement/trained_over_words_high"] < 0
    assert said.name == "words" and "with the words alone" in said.reason
    compare = judging._compare

    def refuses_words(judges, params, name):
        return dataclasses.replace(
            compare(judges, params, name), helped=name != "words"
        )

    monkeypatch.setattr(judging, "_compare", refuses_words)
    assert judging.judge(prepared, mesh, start, worse).name == "trained"


def test_the_facts_of_init_are_in_the_config(trained, tiny):
    known = json.loads((Path(tiny) / "config.json").read_text())
    node = json.loads((trained / "config.json").read_text())
    segment = node["encoder"]["segment"]
    assert segment["layers"] == known["num_hidden_layers"]
    assert segment["vocabulary"] == known["vocab_size"]
    assert segment["pooling"] == "mean"
    assert node["encoder"]["document"]["normalize"] is False
    assert node["batch"] == 64  # for 144 documents
    assert node["limits"]["segment_tokens"] <= known["max_position_embeddings"]


def test_the_report_compares_with_the_vectors_of_the_plain_folder(trained, tiny):
    """They come from what the run has read, and are those of the folder."""
    mesh = local_mesh()
    prepared = frozen.with_vectors(prepare(config_of(trained), trained))
    plain, documents = load(tiny), list(prepared.documents())[:5]
    limits = plain.limits._replace(inference_segments=1)
    models = dataclasses.replace(plain, limits=limits), plain
    data = plain_data(prepared, mesh)
    assert list(data) == [f"cut at {plain.limits.segment_tokens} tokens", "all words"]
    for read, model in zip(data.values(), models, strict=True):
        found = read().vectors([document.id for document in documents])
        np.testing.assert_allclose(found, model.encode(documents), atol=1e-5)


def test_sections_end_the_pieces_and_init_is_cut_at_its_limit(tiny, tmp_path, caplog):
    """The mean over all words is that of the run's pieces; the text that `init` cuts
    goes on over the end of a section."""
    lines, sections = (
        [],
        [{"text": "bread butter"}, {"heading": "H", "text": "a rocket"}],
    )
    for number in range(16):
        lines.append(
            {"id": str(number), "sections": sections, "label": "ab"[number % 2]}
        )
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    prepared = frozen.with_vectors(prepare(recipe(path, tiny), tmp_path / "run"))
    assert prepared.corpus.counts.tolist() == [2] * 16
    cut, whole = plain_data(prepared, local_mesh()).items()
    assert whole[0] == "all words, section by section"
    plain, weights = load(tiny), prepared.corpus[0].lengths
    (document, *_) = prepared.documents()
    texts = ["bread butter", "H\n\na rocket"]
    model = dataclasses.replace(
        plain, limits=plain.limits._replace(inference_segments=1)
    )
    caplog.clear()
    found = cut[1]().vectors(["0"])
    assert not caplog.text  # that it is cut is no news
    np.testing.assert_allclose(found, model.encode([document]), atol=1e-5)
    vectors = np.stack([each.vectors[0] for each in plain.segment_vectors(texts)])
    np.testing.assert_allclose(
        whole[1]().vectors(["0"])[0],
        np.average(vectors, axis=0, weights=weights + 2),
        atol=1e-5,
    )


def test_a_run_on_passages_is_compared_with_their_mean(tiny, tmp_path):
    """`init` does not read all words a second time, but the text cut at its limit."""
    text = "Bread and butter. A rocket flies to the moon. Songs. "
    lines = [{"id": str(i), "text": text * 2, "label": "ab"[i % 2]} for i in range(16)]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = recipe(path, tiny)
    config.units = dict(fn="docjax.data.units.Passages", words=6)
    prepared = frozen.with_vectors(prepare(config, tmp_path / "run"))
    cut, whole = plain_data(prepared, local_mesh()).items()
    assert whole[0] == "all words, in passages of up to 6 words"
    assert type(cut[1]()) is RunTexts and type(whole[1]()) is RunData
    plain, document = load(tiny), prepared.corpus[0]
    vectors, weights = (
        document.vectors[:, : plain.encoder.segment.width],
        document.lengths,
    )
    assert len(vectors) > 2
    found = whole[1]().vectors(["0"])[0]
    expected = np.average(vectors, axis=0, weights=weights + 2)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - plain.encode([text * 2])).max() > 1e-3


JUDGED = dict(fn="docjax.retrieval.judged_queries.JudgedQueries", each=0)
WHOLE, PARTS = dict(fn="docjax.views.whole.Whole"), ("segment", "document")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda found: setattr(found, "views", WHOLE),
            "contrast 0.1 compares two views of a document, but views docjax.views.whole",
        ),
        (
            lambda found: [found.encoder[part].update(words=0) for part in PARTS],
            "contrast 0.1 needs vectors that begin with length 1: set --config.enc",
        ),
        (
            lambda found: [
                setattr(found, "views", WHOLE),
                setattr(found, "examples", JUDGED),
            ],
            "Distillation keeps similar documents together, but .*JudgedQueries gives q",
        ),
    ],
)
def test_distillation_asks_for_documents_and_contrast_for_two_views_of_length_one(
    tiny, tmp_path, change, message
):
    found = recipe(written(tmp_path / "corpus.jsonl", THREE), tiny)
    change(found)
    with pytest.raises(UserError, match=message):
        prepare(found, tmp_path / "run")


def test_documents_of_the_run_are_not_read_again(trained, monkeypatch):
    prepared = frozen.with_vectors(prepare(config_of(trained), trained))
    data = Scoring(prepared, local_mesh()).data(
        trained_params(trained, prepared.encoder)
    )
    documents = list(prepared.documents())[:4]
    changed = dataclasses.replace(documents[0], sections=(Section("", "bread"),))
    once = data.model.encode_once([*documents, changed], {})
    expected = {each.id: each.vector for each in once}
    pairs = data.model.encode_with_passages(documents, {})
    passages = {d.id: parts for d, (_, parts) in zip(documents, pairs, strict=True)}
    counts = []
    read = inference.Inference._read
    monkeypatch.setattr(
        inference.Inference,
        "_read",
        lambda self, params, new, *rest: (
            counts.append(len(new)) or read(self, params, new, *rest)
        ),
    )
    found = list(data.encode([*documents, changed]))
    shown = retrieval_report._Passages(data, {each.id: each for each in documents})
    assert counts == [1]  # only the changed text, and none for the report
    for name, vectors in passages.items():
        np.testing.assert_allclose(shown.vectors[name], vectors, atol=1e-5)
    assert [each.id for each in found] == [d.id for d in (*documents, changed)]
    for each in (*data.encode(documents[1:]), *data.encode([changed])):
        np.testing.assert_allclose(each.vector, expected[each.id], atol=1e-5)


def test_texts_that_are_those_of_the_corpus_are_not_tokenised_again(
    trained, monkeypatch
):
    prepared = frozen.with_vectors(prepare(config_of(trained), trained))
    scoring = Scoring(prepared, local_mesh())
    params = trained_params(trained, prepared.encoder)
    documents = list(prepared.documents())[:4]
    documents[0] = dataclasses.replace(documents[0], sections=(Section("", "bread"),))
    tokenised, encode = [], Tokenizer.encode
    monkeypatch.setattr(
        Tokenizer,
        "encode",
        lambda self, texts: tokenised.append(len(texts)) or encode(self, texts),
    )
    first, again, counts, counts_again = {}, {}, {}, {}
    for vectors, stats in ((first, counts), (again, counts_again)):
        data = scoring.data(params)
        vectors.update((x.id, x.vector) for x in data.encode_once(documents, stats))
    assert list(data.encode([])) == []
    assert tokenised == [4, 1] and counts == counts_again and counts["documents"] == 4
    for name, vector in first.items():
        np.testing.assert_array_equal(vector, again[name])


def test_a_run_mines_with_the_vectors_that_it_has(
    trained, monkeypatch, tmp_path, capsys, caplog
):
    """The other way reads everything again, and finds the same documents."""
    beir = tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    shutil.copy(trained.parent / "corpus.jsonl", beir)
    queries = [{"_id": name, "text": text} for name, text in TOPICS.items()]
    (beir / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    rows = [f"{name}\t{number}\t1\n" for number, name in enumerate(TOPICS)]
    (beir / "qrels/test.tsv").write_text("".join(rows))
    read, kinds = inference.Inference._read, []
    monkeypatch.setattr(
        inference.Inference,
        "_read",
        lambda self, params, new, kind, *rest: (
            kinds.append(kind) or read(self, params, new, kind, *rest)
        ),
    )
    copy = shutil.copytree(trained, tmp_path / "run")
    config = json.loads((copy / "config.json").read_text())
    config["source"]["path"] = str(tmp_path / "gone.jsonl")
    (copy / "config.json").write_text(json.dumps(config))
    negatives, counts = {}, {}
    for run in (trained, copy):
        kinds.clear()
        out = tmp_path / f"{run.parent.name}.jsonl"
        asked = ["mine", str(run), "--data", str(beir), "--output", str(out)]
        assert cli.main(asked) == 0
        negatives[run] = out.read_text().splitlines()[:-1]
        counts[run] = json.loads(capsys.readouterr().out)
        assert set(kinds) == ({QUERY} if run == trained else {QUERY, DOCUMENT})
    assert negatives[trained] == negatives[copy] and counts[trained] == counts[copy]
    assert caplog.text.count("the model reads every document again: ") == 1


def test_the_same_command_leaves_a_finished_run_as_it_is(trained, tiny):
    before = load(trained).fingerprint()
    docjax.train(recipe(trained.parent / "corpus.jsonl", tiny), trained)
    assert load(trained).fingerprint() == before


def test_an_export_gives_the_same_vectors(trained, tmp_path):
    """`export` compares the libraries itself and refuses other vectors."""
    model, texts = load(trained), ["bread and butter", "a rocket in the oven " * 90]
    out = export(model, tmp_path / "out")
    found = load(out).encode(texts)
    np.testing.assert_allclose(found, model.encode(texts), atol=1e-5)
    assert found.shape == (2, model.encoder.segment.width + 256)


@pytest.mark.parametrize(
    ("kind", "documents", "reason"),
    [
        ("shuffled", 240, "agree with its other half"),
        ("random labels", 240, "labels cannot be read off the texts"),
        ("topics", 50, "41 training documents are too few"),
    ],
)
def test_a_run_that_cannot_help_keeps_its_start(
    tiny, tmp_path, no_report, kind, documents, reason
):
    path = corpus(tmp_path / "corpus.jsonl", documents, kind)
    found = recipe(path, tiny)
    if documents == 50:
        found.tasks = dict(clustering=dict(fn="docjax.tasks.clustering.Clustering"))
    model = docjax.train(found, tmp_path / "run")
    said = judgement(tmp_path / "run")
    assert said["keeps"] == "start"
    assert (
        said["reason"].startswith("the run keeps its start")
        and reason in (said["reason"])
    )
    plain = load(tiny)
    texts = ["bread and butter", "a rocket"]
    expected, vectors = plain.encode(texts), model.encode(texts)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    width = expected.shape[1]
    np.testing.assert_allclose(vectors[:, :width], expected, atol=1e-6)
    assert vectors.shape[1] > width and not vectors[:, width:].any()


def test_a_selection_without_validation_documents_is_refused_before_reading(
    tiny, tmp_path
):
    found = recipe(corpus(tmp_path / "corpus.jsonl", 60), tiny)
    found.keep = dict(fn="docjax.keep.Best", metric="classification/accuracy")
    found.splits.validation = "validation"
    with pytest.raises(UserError, match="no document of the split 'validation' can be"):
        docjax.train(found, tmp_path / "run")
    assert not list((tmp_path / "run/corpus").glob("vectors*"))


def test_a_corpus_without_labels_is_judged_too(tiny, tmp_path, caplog, no_report):
    path = corpus(tmp_path / "corpus.jsonl", 150, "no labels")
    found = recipe(path, tiny)
    docjax.train(found, tmp_path / "run")
    assert judgement(tmp_path / "run")["keeps"] == "trained"
    assert "training helped" in caplog.text and "orbax" not in caplog.text.lower()


@pytest.mark.parametrize("variant", ["frozen", "tune"])
def test_init_is_asked_for(tmp_path, variant):
    found = configs.load(f"graph_roberta:{variant}")
    found.source.path = str(corpus(tmp_path / "corpus.jsonl", 20))
    with pytest.raises(UserError, match="give one with config.init=FOLDER"):
        docjax.train(found, tmp_path / "run")


def written(path: Path, texts: list[str], labels: list[str] | None = None) -> Path:
    lines = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    for line, label in zip(lines, labels or ()):
        line["label"] = label
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


THREE = ["A text about one.", "A text about two.", "A text about three."]
UNIQUE = (
    "apple bread chair dance eagle flame grape house ivory jelly knife lemon money night "
    "ocean paper queen river stone table"
).split()
STOP_WORDS = (
    "the of and to in is it that for on as with at by from an be this or are"
).split()


@pytest.mark.parametrize(
    ("texts", "labels", "reason"),
    [
        (["The same text."] * 10, list("ab" * 5), "8 training documents are too few"),
        (["The same text."] * 150, None, "agree with its other half"),
        ([f"{'abcdef'[i % 6]}{i}" for i in range(40)], None, "40 training documents"),
        (["word soup " * 200_000, *THREE * 3], None, "10 training documents are too"),
        (THREE * 3, list("abcdefghi"), "9 training documents are too few"),
        (THREE, None, "3 training documents are too few"),
        (UNIQUE * 6, list("abcd") * 30, "96 training documents are too few"),
        (["word soup " * 200_000], None, "1 training documents are too few"),
    ],
    ids=[
        *("identical", "many identical", "one word", "large", "all labels"),
        *("three", "labelled words", "one large"),
    ],
)
def test_odd_corpora_run_through_and_say_what_they_could_not_do(
    tiny, tmp_path, texts, labels, reason
):
    path = written(tmp_path / "corpus.jsonl", texts, labels)
    docjax.train(recipe(path, tiny, steps=2), tmp_path / "run")
    said = judgement(tmp_path / "run")
    assert said["keeps"] == "start" and reason in said["reason"]
    assert (tmp_path / "run/report/index.html").exists()


def test_fewer_documents_than_devices_are_one_line(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 8)
    path = written(tmp_path / "corpus.jsonl", THREE)
    with pytest.raises(UserError, match="3 training examples are too few for 8 dev"):
        docjax.train(recipe(path, tiny), tmp_path / "run")


def test_too_large_a_batch_is_refused_before_anything_is_read(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(frozen, "with_vectors", None)
    found = recipe(written(tmp_path / "corpus.jsonl", THREE * 4), tiny)
    found.batch = 4096
    with pytest.raises(UserError, match="batch 4096 is larger than the 12 training"):
        docjax.train(found, tmp_path / "run")


def test_a_task_without_its_data_is_told_before_anything_is_read(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr(frozen, "with_vectors", None)
    found = recipe(written(tmp_path / "corpus.jsonl", THREE * 30), tiny)
    found.tasks.retrieval = dict(
        fn="docjax.tasks.retrieval.Retrieval", path=str(tmp_path / "gone")
    )
    with pytest.raises(UserError, match="gone: no such folder; give the folder"):
        docjax.train(found, tmp_path / "run")


def test_a_book_too_long_for_a_batch_is_one_line(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda mesh: 2**18)
    monkeypatch.setattr(frozen, "with_vectors", None)
    texts = ["word soup " * 5_000, *THREE * 10]
    path = written(tmp_path / "corpus.jsonl", texts)
    with pytest.raises(UserError, match=r"longest document has \d+ segments in a v"):
        docjax.train(recipe(path, tiny), tmp_path / "run")


def test_views_of_more_units_than_are_read_are_one_line(tiny, tmp_path):
    found = recipe(written(tmp_path / "corpus.jsonl", ["word soup " * 900] * 12), tiny)
    found.views = dict(fn="docjax.views.sections.Sections", count=2)
    found.limits.training_units = 1
    with pytest.raises(UserError, match="no training example has documents of 2 units"):
        docjax.train(found, tmp_path / "run")


def test_words_alone_need_no_init_and_compare_by_their_words(tmp_path, no_report):
    found = configs.load("graph_roberta:words")
    found.source.path = str(corpus(tmp_path / "corpus.jsonl", 240))
    found.steps = found.checkpoint_every = 20
    found.tasks = {}
    found.keep.least = 150
    docjax.train(found, tmp_path / "run")
    assert judgement(tmp_path / "run")["keeps"] == "trained"
    model = load(tmp_path / "run")
    alike = model.compare("bread butter oven", "bread butter flour")
    other = model.compare("bread butter oven", "violin piano opera")
    assert alike.similarity > other.similarity + 0.3
    assert alike.segments[0, 0] > other.segments[0, 0] + 0.3


def test_words_of_too_few_documents_to_judge_are_kept_and_it_says_so(
    tmp_path, no_report, caplog
):
    """The untrained encoder beside them would be worse than TF-IDF."""
    found = configs.load("graph_roberta:words")
    found.source.path = str(corpus(tmp_path / "corpus.jsonl", 30))
    found.steps, found.tasks = 2, {}
    model = docjax.train(found, tmp_path / "run")
    said = judgement(tmp_path / "run")
    assert said["keeps"] == "words" and not said["helps"]
    why = said["reason"][said["reason"].index("without the steps") :]
    assert why.startswith("without the steps: ") and "too few to tell" in why
    alike = model.compare("bread butter oven", "bread butter flour")
    other = model.compare("bread butter oven", "violin piano opera")
    assert alike.similarity > other.similarity + 0.3
    caplog.clear()
    load(tmp_path / "run")
    [line] = [each for each in caplog.messages if "was not shown to be better" in each]
    assert why in line
    caplog.clear()
    out = export(tmp_path / "run", tmp_path / "out")
    assert "**Training was not shown to help.**" in (out / "README.md").read_text()
    caplog.clear()
    load(out)
    assert "was not shown to be better" in caplog.text


def test_a_run_says_how_long_the_encoder_reads_before_it_reads(
    trained, monkeypatch, caplog
):
    run = shutil.copytree(trained, trained.parent / "to read")
    for path in (run / "corpus").glob("vectors-*"):
        path.unlink()
    prepared = prepare(config_of(run), run)
    monkeypatch.setattr(duration, "seconds_a_token", lambda *_: 0.01)
    with caplog.at_level("INFO", "docjax"):
        frozen.with_vectors(prepared)
    tokens = int(prepared.corpus.lengths.sum())
    [line] = [m for m in caplog.messages if m.startswith("the frozen encoder reads")]
    assert (
        f" {tokens:,} tokens of 240 documents in about {tokens / 6000:.0f} min" in line
    )
    caplog.clear()
    frozen.with_vectors(prepared)  # the vectors are there
    assert "the frozen encoder reads" not in caplog.text


@pytest.mark.parametrize("variant", ["frozen", "tune"])
def test_documents_of_stop_words_have_no_word_vectors(tiny, tmp_path, caplog, variant):
    found = configs.load(f"graph_roberta:{variant}")
    found.source.path = str(written(tmp_path / "corpus.jsonl", STOP_WORDS))
    found.init, found.steps, found.checkpoint_every = str(tiny), 2, 2
    docjax.train(found, tmp_path / "run")
    [line] = [each for each in caplog.messages if "too few for word vectors" in each]
    assert line.startswith("20 training documents share 0 words")
    assert "a share of 0 of a vector" in caplog.text
    assert judgement(tmp_path / "run")["keeps"] == "start"
    assert not np.load(tmp_path / "run/words.npy").any()


def test_words_alone_ask_for_documents_that_share_words(tmp_path):
    found = configs.load("graph_roberta:words")
    twice = [f"{word} {word}" for word in STOP_WORDS]
    found.source.path = str(written(tmp_path / "corpus.jsonl", twice))
    with pytest.raises(UserError, match="take graph_roberta:frozen with config.init"):
        docjax.train(found, tmp_path / "run")
