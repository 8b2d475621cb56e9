"""docjax in scikit-learn: a pipeline step that turns documents into vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

import docjax
from docjax.model.inputs import items_of


class DocumentVectorizer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """The vectors of a trained model; `fit` loads the model and learns nothing.

    Documents are texts, dicts as in a JSON-lines corpus, or Documents. They come in a
    list, an array or a column of a table.

    Args:
      model: the argument of `docjax.load`: a run, or a Hugging Face folder or name.
      allow: packages outside of docjax whose parts the model may have, as for
        `docjax.load`.

    Attributes:
      model_: the loaded model, which pickle saves with its parameters.
    """

    def __init__(self, model: Any, allow: str | Sequence[str] = ()):
        self.model = model
        self.allow = allow

    def fit(self, X: Any, y: Any = None) -> "DocumentVectorizer":
        """Loads the model; ignores the documents and the labels."""
        self.model_ = docjax.load(self.model, allow=self.allow)
        return self

    def transform(self, X: Any) -> Float[np.ndarray, "b d"]:
        """The documents' vectors, float32.

        Raises:
          NotFittedError: before `fit`.
          UserError: for a single document, a table, or a document without text.
        """
        check_is_fitted(self)
        return self.model_.encode(items_of(X))

    @property
    def _n_features_out(self) -> int:
        return self.model_.width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags
