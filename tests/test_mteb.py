"""`MtebModel` on mteb's tasks, with data that is made here: no hub is asked."""

import json

import mteb
import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskClassification, AbsTaskClustering, AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.models_protocols import EncoderProtocol
from mteb.types import PromptType

import docjax
from docjax.model.evaluate import evaluate_model
from docjax.mteb import MtebModel

TOPICS = {
    "cooking": "soup bread oven butter onion garlic recipe flour kitchen sauce".split(),
    "space": "rocket orbit planet moon telescope star launch comet astronaut".split(),
    "sport": "goal match player coach league stadium referee team season".split(),
}


def facts(kind: str, score: str) -> TaskMetadata:
    return TaskMetadata(
        name=f"Topics{kind}",
        type=kind,
        main_score=score,
        description="Documents of three topics.",
        dataset={"path": "local/topics", "revision": "1"},
        category="t2t",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
    )


def texts(words: list[str], count: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(words, 6)) for _ in range(count)]


def labelled(seed: int) -> dict[str, list]:
    found = {topic: texts(words, 6, seed) for topic, words in TOPICS.items()}
    return {
        "texts": [text for some in found.values() for text in some],
        "labels": [topic for topic, some in found.items() for _ in some],
    }


class Classification(AbsTaskClassification):
    metadata = facts("Classification", "accuracy")
    samples_per_label, n_experiments = 3, 2
    input_column_name, label_column_name = "texts", "labels"

    def load_data(self, **_):
        splits = {"train": labelled(0), "test": labelled(1)}
        parts = {name: Dataset.from_dict(part) for name, part in splits.items()}
        self.dataset, self.data_loaded = DatasetDict(parts), True


class Clustering(AbsTaskClustering):
    metadata = facts("Clustering", "v_measure")
    max_fraction_of_documents_to_embed, n_clusters = None, 2
    input_column_name = "texts"

    def load_data(self, **_):
        parts = {"test": Dataset.from_dict(labelled(0))}
        self.dataset, self.data_loaded = DatasetDict(parts), True


CORPUS = [{"id": str(i), "text": text} for i, text in enumerate(labelled(0)["texts"])]
QUERIES = [{"id": topic, "text": words[0]} for topic, words in TOPICS.items()]
QRELS = {topic: {str(6 * i + j): 1 for j in range(5)} for i, topic in enumerate(TOPICS)}


class Retrieval(AbsTaskRetrieval):
    metadata = facts("Retrieval", "ndcg_at_10")

    def load_data(self, **_):
        split = {
            "corpus": Dataset.from_list([{"title": "", **one} for one in CORPUS]),
            "queries": Dataset.from_list(QUERIES),
            "relevant_docs": QRELS,
            "top_ranked": None,
        }
        self.dataset, self.data_loaded = {"default": {"test": split}}, True


@pytest.fixture(scope="module")
def model(minilm) -> MtebModel:
    return MtebModel(minilm)


def score(model: MtebModel, task) -> float:
    quiet = dict(cache=None, co2_tracker=False, show_progress_bar=False)
    (result,) = mteb.evaluate(model, [task], **quiet).task_results
    return result.get_score()


@pytest.mark.parametrize("task", [Classification, Clustering])
def test_topics_are_told_apart(model, task):
    assert score(model, task()) > 0.9


def test_retrieval_has_the_score_of_docjax_evaluate(model, tmp_path):
    lines = lambda records: "".join(json.dumps(one) + "\n" for one in records)
    (tmp_path / "corpus.jsonl").write_text(lines(CORPUS))
    (tmp_path / "queries.jsonl").write_text(lines(QUERIES))
    (tmp_path / "qrels").mkdir()
    rows = [f"{query}\t{one}\t1\n" for query, some in QRELS.items() for one in some]
    (tmp_path / "qrels" / "test.tsv").write_text("".join(rows))
    expected = evaluate_model(model.model, "retrieval", str(tmp_path))
    found = score(model, Retrieval())
    assert 0.5 < found < 1
    assert found == pytest.approx(expected["eval/retrieval/dense/ndcg@10"], abs=1e-4)


def test_batches_empty_texts_and_queries(tiny):
    model = MtebModel(tiny)
    nothing = [{"text": ["", " "]}]
    for prompt in (None, PromptType.query):
        found = model.encode(
            nothing, prompt_type=prompt, task_metadata=None, hf_split="", hf_subset=""
        )
        assert found.shape == (2, model.model.width) and not found.any()
    batches = [{"text": ["a river", ""]}, {"text": ["winter", " "]}]
    told = dict(task_metadata=None, hf_split="test", hf_subset="default")
    found = model.encode(batches, batch_size=1, **told)
    assert not found[1::2].any()
    full = ["a river", "winter"]
    np.testing.assert_allclose(found[::2], model.model.encode(full), atol=1e-6)
    asked = model.encode(batches, prompt_type=PromptType.query, **told)
    np.testing.assert_allclose(asked[::2], model.model.encode_queries(full), atol=1e-6)


def test_results_are_kept_apart_by_all_that_vectors_depend_on(tiny):
    one, other = (MtebModel(tiny, dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert isinstance(one, EncoderProtocol)
    assert one.mteb_model_meta.name == f"docjax/{tiny.name}"
    assert one.mteb_model_meta.revision == docjax.load(tiny).fingerprint()
    assert one.mteb_model_meta.revision != other.mteb_model_meta.revision
