"""The start of a run: what it takes from a folder, and what mistakes leave behind."""

import json
import os
import shutil
from pathlib import Path

import huggingface_hub
import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

from configs import deca, deca_bert, graph_roberta, retriever, siamese
from docjax import main
from docjax.data.documents import parse
from docjax.errors import UserError
from docjax.export.write import export
from docjax.parts import named
from docjax.run import check_parts, corpora, fields
from docjax.run import prepare as prepare_lib
from docjax.run.parameters import initial_params
from docjax.run.prepare import prepare
from docjax.storage import checkpoint

pytestmark = pytest.mark.usefixtures("one_device")

SENTENCE = "The gradient of every passage flows back through the graph. "


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """16 documents of four passages, without label and split."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    rows = [{"id": str(i), "text": f"Number {i}. " + SENTENCE * 4} for i in range(16)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config(corpus: Path, **fields):
    found = graph_roberta.get_config("smoke")
    found.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
    found.tokenizer.train.vocabulary = 270
    found.units.words = 10
    found.batch = found.microbatch = 8
    found.update_from_flattened_dict(fields)
    return found


def test_each_part_of_a_run_is_built_once(corpus, tmp_path, monkeypatch):
    built, arguments = [], named.arguments

    def counted(node, *rest):
        built.append(node["fn"])
        return arguments(node, *rest)

    monkeypatch.setattr(named, "arguments", counted)
    prepare(config(corpus), tmp_path / "run")
    assert len(built) == len(set(built)) <= 15


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory) -> Path:
    """A run whose training has begun."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    prepared = prepare(config(corpus), folder)
    saved = checkpoint.Checkpointer(folder / "checkpoints")
    saved.save(
        1, initial_params(prepared.config, prepared.encoder), {"step": np.zeros(())}, {}
    )
    saved.close()
    (folder / "metrics.jsonl").write_text('{"step": 1}\n')
    return folder


@pytest.fixture
def hub(tiny, tmp_path, monkeypatch) -> str:
    """someone/small, as if downloaded; gives its commit."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = tmp_path / "hub/models--someone--small"
    shutil.copytree(tiny, cache / "snapshots" / commit)
    (cache / "refs").mkdir()
    (cache / "refs/main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache.parent))
    return commit


def test_a_run_keeps_the_commit_of_a_hub_name_and_its_card_says_it(
    corpus, hub, tmp_path
):
    texts = [parse({"id": "a", "text": "words"}, "a")]
    folder = export("someone/small", tmp_path / "plain", texts)
    base = json.loads((folder / "docjax.json").read_text())["base"]
    assert base == f"someone/small@{hub}"
    assert f"Exported from {base}. docjax does" in (folder / "README.md").read_text()
    run, found = tmp_path / "run", config(corpus, init="someone/small")
    sizes = dict(vocabulary=30522, width=16, heads=2, hidden=16, positions=64)
    found.encoder.segment.update(sizes | dict(types=2, layers=1, position_offset=0))
    found.encoder.segment.epsilon = 1e-12
    for _ in range(2):
        prepared = prepare(found, run)
        assert json.loads((run / "config.json").read_text())["init"] == base
    saved = checkpoint.Checkpointer(run / "checkpoints")
    saved.save(
        1, initial_params(prepared.config, prepared.encoder), {"step": np.zeros(())}, {}
    )
    saved.close()
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    shutil.rmtree(tmp_path / "hub")  # the run goes on without the hub
    found.init = "someone/small"
    assert prepare(found, run).config.init == base
    folder = export(run, tmp_path / "out", texts)
    card = huggingface_hub.ModelCard.load(folder / "README.md")
    assert card.data.base_model == "someone/small"
    assert f"starting from the weights of {base}" in card.text
    assert json.loads((folder / "docjax.json").read_text())["base"] == base


def test_documents_without_labels_are_trained_on(corpus, tmp_path):
    metrics = main.run(config(corpus), tmp_path / "run", "train")
    assert metrics["step"] == 4 and "train/loss" in metrics
    page = (tmp_path / "run/report/index.html").read_text()
    assert "nothing tells which vectors win" in page and "a few hundred" in page
    assert 'id="map"' in page and 'id="clusters"' in page and 'id="scores"' not in page
    with pytest.raises(UserError, match="nothing to evaluate"):
        main.run(config(corpus), tmp_path / "run", "evaluate")
    (tmp_path / "run/metrics.jsonl").write_text("")  # as SIGTERM before the first line
    assert main.run(config(corpus), tmp_path / "run", "export") == {}
    assert (tmp_path / "run/export/docjax.json").exists()


@pytest.mark.parametrize("mode", ["evaluate", "export"])
def test_a_workdir_without_a_run_is_said_before_anything_is_read(tmp_path, mode):
    gone = config(tmp_path / "gone.jsonl")
    with pytest.raises(UserError, match="runs/mistyped has no trained run: train it"):
        main.run(gone, tmp_path / "runs/mistyped", mode)
    assert not (tmp_path / "runs").exists()


def test_a_mistake_is_mended_in_the_same_workdir(corpus, tmp_path):
    prepare(config(corpus, batch=64), tmp_path / "run")
    prepared = prepare(config(corpus, batch=8), tmp_path / "run")
    assert prepared.config.batch == 8


@pytest.mark.parametrize("tokens, rows", [(64, 128), (100, 81), (9000, 1)])
def test_micro_batches_are_sized_by_tokens_unless_the_config_says(
    corpus, tmp_path, tokens, rows, run
):
    begun = config(corpus, microbatch=None)
    begun.limits.segment_tokens = tokens
    begun.encoder.segment.positions = 9002
    prepared = prepare(begun, tmp_path / "run")
    assert prepared.config.microbatch == rows * jax.device_count()
    begun.limits.training_tokens = 62  # and two special tokens
    capped = prepare(begun, tmp_path / "run").config.microbatch
    assert capped == 128 * jax.device_count()
    begun.limits.training_segments = 1  # 2 views of 8 documents are 16 segments
    few = prepare(begun, tmp_path / "run").config.microbatch
    assert few == max(16, jax.device_count())
    assert prepare(config(corpus), tmp_path / "other").config.microbatch == 8
    assert prepare(config(corpus, microbatch=None), run).config.microbatch == 8


def test_a_corpus_that_is_there_is_not_read_again(corpus, tmp_path, monkeypatch):
    prepare(config(corpus), tmp_path / "run")
    monkeypatch.setattr(corpora.splits, "parts_of_labels", None)
    assert len(prepare(config(corpus), tmp_path / "run").corpus) == 16


def test_blocks_of_words_have_no_size_by_tokens(tmp_path):
    begun = deca.get_config("smoke")
    begun.microbatch = None
    with pytest.raises(UserError, match="microbatch is None: .*words of a block"):
        prepare(begun, tmp_path / "run")


def test_the_tokenizer_is_made_again_unless_the_config_asks_for_the_same(
    corpus, minilm, tmp_path
):
    trained = prepare(config(corpus), tmp_path / "run").tokenizer
    assert prepare(config(corpus), tmp_path / "run").tokenizer.sha256 == trained.sha256
    other = config(corpus, **{"encoder.segment.vocabulary": 30522})
    other.tokenizer.path = str(minilm)
    assert prepare(other, tmp_path / "run").tokenizer.vocabulary == 30522


def test_a_begun_run_keeps_its_config_and_its_corpus(corpus, run, tmp_path):
    kept = shutil.copytree(run, tmp_path / "run")
    with pytest.raises(UserError, match="another config: batch differ"):
        prepare(config(corpus, batch=16), kept)
    shutil.rmtree(kept / "corpus")
    assert len(prepare(config(corpus), kept).corpus) == 16


@pytest.fixture
def begun(corpus, tmp_path) -> tuple[Path, Path]:
    """A run that training has begun in, with documents of its own; its documents."""
    copy = shutil.copy(corpus, tmp_path / "copy.jsonl")
    prepare(config(copy), tmp_path / "run")
    (tmp_path / "run/metrics.jsonl").write_text('{"step": 1}\n')
    return tmp_path / "run", copy


def facts(run: Path) -> dict:
    return json.loads((run / "corpus/corpus.json").read_text())


def test_files_of_other_times_are_the_same_documents(begun, monkeypatch):
    run, documents = begun
    before = facts(run)
    (run / "corpus/vectors-0.npy").touch()  # gone if the corpus is written again
    os.utime(documents, (1, 1))
    assert len(prepare(config(documents), run).corpus) == 16
    assert (run / "corpus/vectors-0.npy").exists()
    after = facts(run)
    assert after.pop("fingerprint") != before.pop("fingerprint")
    assert after == before
    # The next start does not read the contents.
    monkeypatch.delattr("docjax.storage.digest.digest")
    assert len(prepare(config(documents), run).corpus) == 16


def test_other_documents_of_the_same_size_are_refused(begun):
    run, documents = begun
    before = facts(run)
    documents.write_text(documents.read_text().replace("gradient", "Gradient"))
    os.utime(documents, (1, 1))
    with pytest.raises(UserError, match="have changed since training began"):
        prepare(config(documents), run)
    assert facts(run) == before
    (run / "metrics.jsonl").unlink()  # not begun: written again
    prepare(config(documents), run)
    assert facts(run)["contents"] != before["contents"]


def test_an_older_run_cannot_compare_the_contents(begun):
    run, documents = begun
    older = facts(run)
    del older["contents"]
    (run / "corpus/corpus.json").write_text(json.dumps(older))
    assert len(prepare(config(documents), run).corpus) == 16
    os.utime(documents, (1, 1))
    with pytest.raises(UserError, match="have changed since training began"):
        prepare(config(documents), run)
    assert facts(run) == older


def test_another_way_to_cut_is_told_as_another_config(corpus, run):
    with pytest.raises(UserError, match="another config: units differ"):
        prepare(config(corpus, **{"units.words": 7}), run)


def test_a_run_to_begin_with_brings_its_tokenizer(corpus, run, minilm, tmp_path):
    texts = tmp_path / "other.jsonl"
    texts.write_text(json.dumps({"id": "a", "text": "Quite other words, these."}))
    begun = config(texts)
    begun.init = str(run)
    prepared = prepare(begun, tmp_path / "run")
    own = (tmp_path / "run/tokenizer.json").read_bytes()
    assert own == (run / "tokenizer.json").read_bytes()
    assert initial_params(prepared.config, prepared.encoder)["segment"]
    begun.tokenizer.path = str(minilm)
    with pytest.raises(UserError, match="is not the tokenizer of init"):
        prepare(begun, tmp_path / "another")


def test_a_run_to_begin_with_brings_its_sizes(corpus, run, tmp_path):
    begun = config(corpus, **{"encoder.segment.heads": 4})
    begun.init = str(run)
    prepared = prepare(begun, tmp_path / "run")
    assert prepared.encoder.segment.heads == 2
    assert initial_params(prepared.config, prepared.encoder)["segment"]


def test_a_run_of_another_document_encoder_does_not_fit(corpus, run, tmp_path):
    begun = config(corpus, **{"encoder.document.heads": 1})
    begun.init = str(run)
    prepared = prepare(begun, tmp_path / "run")
    with pytest.raises(UserError, match=r"document\.heads 1 \(init has 2\)"):
        initial_params(prepared.config, prepared.encoder)


def test_dropout_is_no_property_of_weights(corpus, minilm, tmp_path):
    begun = config(corpus)
    begun.encoder.segment.update(
        dict(layers=6, width=384, heads=12, hidden=1536, vocabulary=30522),
        positions=512,
        position_offset=0,
        types=2,
        epsilon=1e-12,
        dropout=0.0,
        attention_dropout=0.3,
    )
    begun.init = str(minilm)
    prepared = prepare(begun, tmp_path / "run")
    assert initial_params(prepared.config, prepared.encoder)["segment"]


def test_a_workdir_that_is_a_file_is_named(corpus, tmp_path):
    with pytest.raises(UserError, match="--workdir .*cannot be made .File exists"):
        prepare(config(corpus), corpus)


@pytest.mark.parametrize("objective", ["vectors", "words"])
def test_predictions_are_no_negatives(objective, tmp_path):
    found = (deca if objective == "words" else deca_bert).get_config("smoke,simsiam")
    infonce = dict(fn="docjax.objectives.infonce.infonce")
    if objective == "words":
        found.objective.contrastive = infonce
    else:
        found.objective = infonce
    with pytest.raises(
        UserError, match="pooling.Predictor is for .*simsiam: .*infonce"
    ):
        prepare(found, tmp_path / "run")


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("examples.dissimilar", False, "needs pairs of both kinds, but .*Pairs gives"),
        ("examples", dict(fn="docjax.data.examples.Documents"), "with dissimilar=True"),
        (
            "objective",
            dict(fn="docjax.objectives.infonce.infonce"),
            "infonce would take every pair for a similar one: leave examples.dissimilar",
        ),
    ],
)
def test_a_loss_of_labelled_pairs_goes_with_labelled_pairs(
    field, value, message, tmp_path
):
    found = siamese.get_config("smoke")
    found.update_from_flattened_dict({field: value})
    with pytest.raises(UserError, match=message) as error:
        prepare(found, tmp_path / "run")
    assert "\n" not in str(error.value)


DOCUMENTS = "docjax.data.examples.Documents"


@pytest.mark.parametrize(
    "recipe, changes",
    [
        (siamese, {}),
        (retriever, {}),
        (graph_roberta, {"examples": dict(fn=DOCUMENTS, related="links")}),
    ],
)
def test_links_and_queries_of_test_documents_are_not_trained_on(
    recipe, changes, tmp_path
):
    found = recipe.get_config("smoke")
    found.update_from_flattened_dict(changes | {"transductive": True})
    with pytest.raises(UserError, match="transductive is True.* of the test documents"):
        prepare(found, tmp_path / "run")


MASKED = {"objective": dict(fn="docjax.objectives.masked_lm.MaskedLM")}


@pytest.mark.parametrize(
    "kind, changes, message",
    [
        ("transformer.Transformer", {}, "the encoder has room for 38: lower limits"),
        ("t5.T5", MASKED, "needs an encoder that predicts tokens"),
        ("transformer.Transformer", MASKED, "needs an encoder that predicts tokens"),
        (
            "bigbird.BigBird",
            {"encoder.segment.attention_dropout": 0.1},
            "does nothing in BigBird's segments of more than 704 tokens, and .* is 705",
        ),
    ],
)
def test_a_segment_encoder_that_does_not_fit_is_told_before_the_corpus_is_read(
    corpus, tmp_path, kind, changes, message
):
    begun = config(corpus, **changes)
    begun.encoder.segment.fn = f"docjax.encoders.{kind}"
    begun.encoder.segment.positions = 40 if not changes else 800
    if kind == "t5.T5":
        for name in ("types", "position_offset"):
            del begun.encoder.segment[name]
        begun.encoder.segment.activation = "relu"
    begun.limits.segment_tokens = 705
    with pytest.raises(UserError, match=message) as error:
        prepare(begun, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_bigbird_drops_attention_weights_in_rows_that_see_all_tokens(corpus, tmp_path):
    begun = config(corpus, **{"encoder.segment.attention_dropout": 0.1})
    begun.encoder.segment.fn = "docjax.encoders.bigbird.BigBird"
    assert prepare(begun, tmp_path / "run").encoder.segment.attention_dropout == 0.1


@pytest.mark.parametrize("own", [None, "other.tsv"])
def test_the_table_of_the_examples_is_scored_unless_the_task_has_its_own(own):
    found = siamese.get_config()
    found.examples.path = "pairs.tsv"
    if own:
        found.tasks.matching.path = own
    read = fields.resolve(found).to_json()
    assert read["examples"]["path"] == "pairs.tsv"
    assert read["tasks"]["matching"]["path"] == (own or "pairs.tsv")


@pytest.mark.parametrize("transductive", [False, True])
def test_documents_of_another_split_are_trained_on_if_it_is_transductive(
    tmp_path, monkeypatch, transductive
):
    said = []
    monkeypatch.setattr(
        prepare_lib.logger, "warning", lambda text, *of: said.append(text % of)
    )
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": s, "text": SENTENCE, "split": s} for s in ("train", "other")]
    rows = [row | {"label": "sports"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepared = prepare(config(path, transductive=transductive), tmp_path / "run")
    assert len(prepared.trained_on) == 1 + transductive
    assert prepared.labels.tolist() == [0, -1]
    what = "in no task" if transductive else "not used"
    assert f"1 documents are in the split 'other': {what}; set --config.splits" in said


def test_a_corpus_without_training_documents_says_where_they_are(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": str(i), "text": SENTENCE, "split": "unlabeled"} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    error = (
        r"no document is in the split train; the splits are unlabeled \(3\): "
        "set --config.splits.train, or divide one with --config.holdout='{.*}'$"
    )
    with pytest.raises(UserError, match=error):
        prepare(config(path), tmp_path / "run")
    divided = config(path)
    divided.holdout = ConfigDict(dict(fn="docjax.data.splits.holdout", test=0.4))
    with pytest.raises(UserError, match="divide one with --config.holdout.of$"):
        prepare(divided, tmp_path / "run")
    divided.holdout.of = "unlabeled"
    assert len(prepare(divided, tmp_path / "divided").trained_on) == 2


def test_a_stream_cannot_train(tmp_path):
    with pytest.raises(UserError, match="-: a stream can be read only once"):
        prepare(config("-"), tmp_path / "run")


def test_vectors_of_words_without_width_are_refused(tmp_path):
    found = deca.get_config("smoke")
    found.encoder.segment.width = 0
    with pytest.raises(UserError, match="encoder.segment.width 0"):
        prepared = prepare(found, tmp_path / "run")
        initial_params(prepared.config, prepared.encoder)


def paired(corpus, path):
    """A run on pairs of documents, from the table at `path`."""
    pairs = dict(fn="docjax.data.examples.Pairs", path=str(path))
    found = config(corpus)
    found.examples, found.views = pairs, dict(fn="docjax.views.whole.Whole")
    return found


def test_other_bytes_of_a_file_of_examples_are_refused(corpus, tmp_path):
    path, run = tmp_path / "pairs.tsv", tmp_path / "run"
    lines = ["split\tsource\ttarget\tlabel", "train\t1\t2\t1", "train\t3\t4\t1"]

    def checked():
        prepared = prepare(paired(corpus, path), run)
        corpora.check_inputs(prepared.config, run, fields.begun(run))
        return len(prepared.examples)

    path.write_text("\n".join(lines))
    assert checked() == 2
    path.write_text("\n".join(lines[:2]))  # a mistake is mended before training begins
    assert checked() == 1
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    os.utime(path, (1, 1))
    assert checked() == 1
    path.write_text("\n".join(lines))
    with pytest.raises(UserError, match="pairs.tsv changed since training began"):
        checked()


@pytest.mark.parametrize(
    "ours, theirs, is_refused",
    [
        (dict(path="{0}", fold=0), dict(path="{0}", fold=1), True),
        (dict(path="{0}", fold=0), dict(path="{0}/../beir/", fold=1), True),
        (dict(path="{0}", fold=0), dict(path="{0}"), True),
        (dict(path="{0}"), dict(path="{0}/.", fold=0), True),
        (dict(path="{0}", fold=0), dict(path="{0}-other", fold=1), False),
        (dict(path="{0}", fold=None), dict(path="{0}"), False),
        (dict(), dict(path="{0}", fold=1), False),
    ],
)
def test_queries_that_train_in_one_fold_do_not_test_in_another(
    corpus, tmp_path, ours, theirs, is_refused
):
    beir = tmp_path / "beir"
    beir.mkdir()
    place = lambda part: (
        part
        | {name: value.format(beir) for name, value in part.items() if name == "path"}
    )
    found = config(corpus)
    queries = "docjax.retrieval.judged_queries.JudgedQueries"
    found.examples = dict(fn=queries, **place(ours))
    task = dict(fn="docjax.tasks.retrieval.Retrieval", **place(theirs))
    found.tasks = dict(retrieval=task)
    resolved = fields.resolve(found)
    if not is_refused:
        check_parts._check_folds(resolved)
        return
    with pytest.raises(UserError, match="queries that train would test; give the same"):
        check_parts._check_folds(resolved)


def test_one_vector_of_a_document_is_compared_as_one(corpus, tmp_path):
    found = config(corpus)
    found.objective.parts = 2
    with pytest.raises(
        UserError, match="objective.parts is 2, but encoder.document giv"
    ):
        prepare(found, tmp_path / "run")


def test_other_queries_that_test_or_choose_are_refused(corpus, tmp_path):
    """They decide which queries train, so a row of a batch would be another query."""
    run, beir = tmp_path / "run", tmp_path / "beir"
    (beir / "qrels").mkdir(parents=True)
    queries = [json.dumps({"_id": name, "text": f"text {name}"}) for name in "qrst"]
    (beir / "queries.jsonl").write_text("\n".join(queries))
    shutil.copy(corpus, beir / "corpus.jsonl")
    qrels = lambda split, *names: (beir / f"qrels/{split}.tsv").write_text(
        "".join(f"{name}\t1\t1\n" for name in names)
    )
    qrels("train", *"qrs")
    qrels("test", "t")
    qrels("dev", "s")
    found = config(corpus)
    found.examples = dict(
        fn="docjax.retrieval.judged_queries.JudgedQueries", path=str(beir), each=0
    )
    found.views = dict(fn="docjax.views.whole.Whole")

    def checked():
        prepared = prepare(found, run)
        corpora.check_inputs(prepared.config, run, fields.begun(run))
        return len(prepared.examples)

    assert checked() == 2
    (run / "metrics.jsonl").write_text('{"step": 1}\n')
    assert checked() == 2
    for split, before, after in (("test", "t", "tr"), ("dev", "s", "r")):
        qrels(split, *after)
        with pytest.raises(UserError, match=f"{split}.tsv changed since training"):
            checked()
        qrels(split, *before)
    assert checked() == 2


def test_documents_of_one_example_never_read_each_other(corpus, tmp_path):
    found = paired(corpus, tmp_path / "pairs.tsv")
    document = {"fn": "docjax.encoders.chunks.ChunkEncoder", "heads": 2, "hidden": 8}
    found.encoder.document = document
    with pytest.raises(UserError, match="2 documents do not fit .*attention to 'none'"):
        prepare(found, tmp_path / "run")


@pytest.mark.parametrize(
    "field, name, message",
    [
        (
            "encoder.segment",
            "docjax.encoders.pooling.Mean",
            "encoder.segment Mean has no averages_words",
        ),
        (
            "objective",
            "docjax.objectives.masked_lm.MaskedLM",
            r"Queue takes .vectors, targets, memory., an objective takes",
        ),
    ],
)
def test_parts_inside_of_parts_are_checked(corpus, tmp_path, field, name, message):
    found = config(corpus)
    part = {"fn": name}
    if field == "objective":
        part["contrastive"] = {"fn": "docjax.objectives.infonce.candidates_of"}
        part["contrastive"] = {"fn": "docjax.objectives.queue.Queue"}
        found.objective = part
    else:
        found.encoder.segment = part
    with pytest.raises(UserError, match=message) as error:
        prepare(found, tmp_path / "run")
    assert "\n" not in str(error.value)


def test_two_views_of_each_of_two_documents_are_refused(corpus, tmp_path):
    found = paired(corpus, tmp_path / "pairs.tsv")
    found.views = dict(fn="docjax.views.halves.Halves")
    with pytest.raises(UserError, match="examples of 2 documents need one view of eac"):
        prepare(found, tmp_path / "run")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"encoder.segment.heads": 0}, "cannot be built"),
        ({"encoder.segment.heads": 7}, "width 32 is not a multiple of heads 7"),
        ({"encoder.segment.layers": 10**8}, "layers is 100000000, not a number"),
        (
            {"views.fn": "docjax.views.ready.Ready"},
            "a maker of views is as docjax.types.ViewMaker says",
        ),
        ({"views.fn": "docjax.views.replaced.WordViews"}, "has no files, fitted"),
        ({"tasks.clustering.fn": "docjax.tasks.embeddings.NoLabels"}, "has no command"),
        ({"examples.fn": "docjax.data.examples.Known"}, "needs run, source, corpus"),
    ],
)
def test_a_part_that_does_not_fit_is_refused_before_a_document_is_read(
    tmp_path, change, message
):
    gone = config(tmp_path / "gone.jsonl")
    with gone.unlocked():
        gone.update_from_flattened_dict(change)
        if "views.fn" in change:
            gone.views = dict(fn=change["views.fn"])
        if "tasks.clustering.fn" in change:
            gone.tasks = dict(clustering=dict(fn=change["tasks.clustering.fn"]))
    with pytest.raises(UserError, match=message):
        prepare(gone, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def begun_with(found, folder: Path):
    """The parameters of a new run, saved as its first checkpoint."""
    prepared = prepare(found, folder)
    params = initial_params(prepared.config, prepared.encoder)
    saved = checkpoint.Checkpointer(folder / "checkpoints")
    saved.save(1, params, {"step": np.zeros(())}, {})
    saved.close()
    return params


def in_towers(found, by: str = "kind"):
    segment = found.encoder.segment.to_dict()
    found.encoder.segment = dict(
        fn="docjax.encoders.towers.Towers", encoder=segment, by=by
    )
    return found


def test_a_run_of_one_segment_encoder_begins_every_tower(corpus, tmp_path):
    single = begun_with(config(corpus), tmp_path / "single")
    found = in_towers(config(corpus, seed=1))
    found.init = str(tmp_path / "single")
    begun = begun_with(found, tmp_path / "towers")
    for tower in ("query", "document"):
        jax.tree.map(
            np.testing.assert_array_equal, begun["segment"][tower], single["segment"]
        )
    onward = in_towers(config(corpus, seed=2))
    onward.init = str(tmp_path / "towers")
    again = begun_with(onward, tmp_path / "onward")
    jax.tree.map(np.testing.assert_array_equal, again["segment"], begun["segment"])


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda found: found,
            "the towers query and document, but encoder.segment has none",
        ),
        (
            lambda found: in_towers(found, "view"),
            "encoder.segment has view_0 and view_1",
        ),
    ],
)
def test_towers_that_do_not_fit_init_are_one_line(corpus, tmp_path, change, message):
    begun_with(in_towers(config(corpus)), tmp_path / "towers")
    found = change(config(corpus))
    found.init = str(tmp_path / "towers")
    prepared = prepare(found, tmp_path / "run")
    with pytest.raises(UserError, match=message) as error:
        initial_params(prepared.config, prepared.encoder)
    assert "\n" not in str(error.value)
