"""config.json of Longformer: its windows, and every refusal."""

import pytest

from docjax.errors import UserError
from docjax.huggingface.families.longformer import to_keywords

CONFIG = dict(
    vocab_size=61,
    num_hidden_layers=2,
    hidden_size=16,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=66,
    type_vocab_size=1,
    pad_token_id=1,
)


def test_a_config_without_a_window_has_the_published_one():
    assert to_keywords(CONFIG, "c")["window"] == 512


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(attention_window=7), "attention_window 7 must be an even number"),
        (dict(attention_window=[]), r"attention_window \[\] must be"),
        (dict(attention_window=[8, "x"]), "attention_window .* must be"),
        (dict(attention_window=[8, 4, 8]), "has 3 numbers, but there are 2 layers"),
        (dict(hidden_act="relu"), "hidden_act 'relu' is not supported"),
    ],
)
def test_a_longformer_that_docjax_does_not_have_is_one_line(changes, words):
    with pytest.raises(UserError, match=words) as error:
        to_keywords(CONFIG | changes, "folder/config.json")
    assert "\n" not in str(error.value)
