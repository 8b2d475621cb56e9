"""Perplexity of masked tokens: the metrics, and parts without documents or tokens."""

import math

import numpy as np
import pytest

from docjax.errors import UserError
from docjax.tasks.embeddings import LabelledVectors, NoLabels
from docjax.tasks.masked_tokens import MaskedTokens


class Data(LabelledVectors):
    """Eight masked tokens with a loss of 4 together, in the test part alone."""

    def __init__(self, count=8):
        super().__init__({})
        object.__setattr__(self, "count", count)

    def documents(self, part):
        return iter(["a document"] if part == "test" else [])

    def masked_tokens(self, part, rate, seed):
        assert (part, rate, seed) == ("test", 0.2, 3)
        return 4.0, 2.0, self.count


def test_the_perplexity_is_the_exponential_of_the_mean_loss():
    found = MaskedTokens(rate=0.2, seed=3)(Data(), "test")
    assert found == {"loss": 0.5, "perplexity": math.exp(0.5), "accuracy": 0.25}


def test_a_part_without_documents_leaves_the_task_out():
    MaskedTokens().check(Data(), "test")
    with pytest.raises(NoLabels, match="there is no validation document: give the sou"):
        MaskedTokens().check(Data(), "validation")


def test_documents_without_tokens_are_one_line():
    with pytest.raises(
        UserError, match="have no token to predict: give documents with"
    ):
        MaskedTokens(rate=0.2, seed=3)(Data(0), "test")


@pytest.mark.parametrize("rate", [0.0, 1.0, np.nan])
def test_an_impossible_share_is_refused(rate):
    with pytest.raises(UserError, match="masked_tokens has rate"):
        MaskedTokens(rate=rate)
