"""`DocumentVectorizer` as scikit-learn's users hold it, and scikit-learn's own checks."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

import docjax
from docjax.data.documents import parse
from docjax.errors import UserError
from docjax.sklearn import DocumentVectorizer

TEXTS = [
    "the soup needs garlic and butter",
    "a rocket leaves for the moon",
    "bake the bread in the oven",
    "the comet passes the planet",
    "an onion and flour for the sauce",
    "the telescope sees a star",
]
LABELS = ["cooking", "space"] * 3


@pytest.fixture(scope="module")
def vectorizer(tiny) -> DocumentVectorizer:
    return DocumentVectorizer(tiny).fit(TEXTS)


@pytest.mark.parametrize(
    "given",
    [
        list,
        np.array,
        lambda texts: np.array(texts, object),
        lambda texts: [{"text": text} for text in texts],
        lambda texts: [parse({"id": "a", "text": text}, "here") for text in texts],
    ],
)
def test_vectors_are_those_of_the_model(vectorizer, tiny, given):
    vectors = docjax.load(tiny).encode(TEXTS)
    assert vectors.std(axis=0).max() > 0.1
    np.testing.assert_array_equal(vectorizer.transform(given(TEXTS)), vectors)


def test_the_allowed_packages_go_to_docjax_load(tiny, monkeypatch):
    given = []
    monkeypatch.setattr(docjax, "load", lambda model, allow: given.append(allow))
    clone(DocumentVectorizer(tiny, allow="mylab.")).fit(TEXTS)
    assert given == ["mylab."]


def test_models_are_compared_by_grid_search(tiny, minilm):
    pipeline = make_pipeline(DocumentVectorizer(tiny), LogisticRegression())
    grid = {"documentvectorizer__model": [tiny, minilm]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(TEXTS, LABELS)
    assert search.best_params_ == {"documentvectorizer__model": minilm}
    assert search.predict(["a recipe", "a launch"]).tolist() == ["cooking", "space"]


def test_a_column_of_a_table_is_named_alone(vectorizer):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"text": TEXTS, "length": [len(text) for text in TEXTS]})
    columns = lambda name: make_column_transformer(
        (clone(vectorizer), name), ("passthrough", ["length"])
    ).set_output(transform="pandas")
    found = columns("text").fit_transform(table)
    names = [f"documentvectorizer{i}" for i in range(16)]
    assert vectorizer.get_feature_names_out().tolist() == names
    assert list(found)[:16] == [f"documentvectorizer__{name}" for name in names]
    with pytest.raises(UserError, match="a DataFrame is no list of documents"):
        columns(["text"]).fit_transform(table)


@pytest.mark.parametrize("one", ["a text", {"text": "a text"}, np.array([["a text"]])])
def test_a_single_document_or_a_table_is_refused(vectorizer, one):
    with pytest.raises(UserError, match="is no list of documents"):
        vectorizer.transform(one)


def test_without_fit_there_are_neither_vectors_nor_names(tiny):
    for ask in ("transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(DocumentVectorizer(tiny), ask)(TEXTS)


def test_a_pickle_holds_the_model(vectorizer):
    copy = pickle.loads(pickle.dumps(vectorizer))
    np.testing.assert_array_equal(copy.transform(TEXTS), vectorizer.transform(TEXTS))


class Rows(DocumentVectorizer):
    """Reads a row of numbers as a text: scikit-learn's checks give nothing else."""

    def fit(self, X, y=None):
        validate_data(self, X)
        return super().fit(X)

    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return super().transform([" ".join(f"{n:.1f}" for n in row) for row in X])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = False, True
        return tags


def test_scikit_learns_checks_pass(tiny):
    found = check_estimator(Rows(tiny), on_skip=None, on_fail=None)
    bad = {
        one["check_name"]: one["exception"]
        for one in found
        if one["status"] == "failed"
    }
    assert bad == {}
    assert sum(one["status"] == "passed" for one in found) > 40
