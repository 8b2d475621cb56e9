"""The settings of masked language modelling; its loss is tested with the transformer."""

import pytest

from docjax.errors import UserError
from docjax.objectives.infonce import infonce
from docjax.objectives.masked_lm import MaskedLM


def test_it_stands_alone_or_beside_another_loss():
    assert MaskedLM().contrastive is None
    assert MaskedLM(infonce, weight=0.0).contrastive is infonce


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(rate=0.0), "rate 0.0 and weight 1.0: set a rate above 0"),
        (dict(rate=1.0), "rate 1.0 .* below 1"),
        (dict(weight=-0.5), "weight -0.5.*at least 0"),
        (dict(weight=0.0), "nothing would be trained; set objective.weight above 0"),
    ],
)
def test_values_with_which_nothing_is_learned_are_mistakes(keywords, message):
    with pytest.raises(UserError, match=message) as error:
        MaskedLM(**keywords)
    assert "\n" not in str(error.value)
