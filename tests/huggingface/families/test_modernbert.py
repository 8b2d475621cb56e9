"""config.json of ModernBERT: old and new names, and every refusal."""

import pytest
import transformers

from docjax.errors import UserError
from docjax.huggingface.families.modernbert import (
    FULL,
    SLIDING,
    to_config,
    to_keywords,
)

OLD = dict(  # as the published ModernBERT has it
    vocab_size=61,
    num_hidden_layers=4,
    hidden_size=16,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=99,
    local_attention=16,
    global_attn_every_n_layers=3,
    global_rope_theta=160000.0,
    local_rope_theta=10000.0,
    embedding_dropout=0.0,
    mlp_dropout=0.0,
    attention_dropout=0.0,
    norm_eps=1e-05,
    norm_bias=False,
    hidden_activation="gelu",
)


def new(**changes) -> dict:
    return transformers.ModernBertConfig(**OLD | changes).to_dict()


@pytest.mark.parametrize("every, layers", [(1, 4), (2, 4), (3, 7), (5, 3)])
def test_old_and_new_configs_give_the_same_keywords(every, layers):
    changes = dict(
        global_attn_every_n_layers=every,
        num_hidden_layers=layers,
        global_rope_theta=80000.0,
        local_rope_theta=500.0,
    )
    old, found = to_keywords(OLD | changes, "c"), to_keywords(new(**changes), "c")
    if every > layers:  # a list of layers does not tell how many are never reached
        old["global_every"] = layers
    assert found == old
    assert (found["theta"], found["local_theta"]) == (80000.0, 500.0)
    written = to_config(found)
    read = transformers.ModernBertConfig(**written)
    assert to_keywords(read.to_dict(), "c") == to_keywords(written, "c") == found


def test_what_a_config_leaves_out_is_what_was_published():
    sizes = ("vocab_size", "num_hidden_layers", "hidden_size", "num_attention_heads")
    sizes += ("intermediate_size", "max_position_embeddings")
    found = to_keywords({name: OLD[name] for name in sizes}, "c")
    assert found["window"] == 128 and found["global_every"] == 3
    assert (found["theta"], found["local_theta"]) == (160_000.0, 10_000.0)


SCALED = {FULL: {"rope_type": "yarn", "rope_theta": 1e4}}


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(layer_types=[FULL, SLIDING, FULL, FULL]), "pattern .*not have.*n-th"),
        (dict(layer_types=[SLIDING, FULL, SLIDING, FULL]), "layer_types .* pattern"),
        (dict(layer_types=[FULL]), "4 layers"),
        (dict(layer_types=3), "layer_types 3"),
        (dict(layer_types=[FULL, "chunked", "chunked", FULL]), "'chunked'"),
        (dict(global_attn_every_n_layers=0), "global_attn_every_n_layers is 0"),
        (dict(local_attention="x"), "local_attention is 'x'"),
        (dict(attention_bias=True), "attention_bias is set.*without biases"),
        (dict(mlp_bias=True), "mlp_bias is set"),
        (dict(norm_bias=True), "norm_bias is set"),
        (dict(classifier_bias=True), "classifier_bias is set"),
        (dict(decoder_bias=False), "decoder_bias is false"),
        (dict(classifier_activation="relu"), "classifier_activation 'relu'"),
        (dict(hidden_activation="relu"), "hidden_activation 'relu' is not supported"),
        (dict(rope_parameters=SCALED), "full_attention are scaled .'yarn'"),
        (dict(rope_scaling={"type": "linear"}), "are scaled"),
        (dict(local_rope_theta=None), "local_rope_theta is None"),
        (dict(norm_eps=2), "norm_eps is 2"),
        (dict(hidden_size=17), "17 is not a multiple"),
    ],
)
def test_a_modernbert_that_docjax_does_not_have_is_one_line(changes, words):
    with pytest.raises(UserError, match=words) as error:
        to_keywords(OLD | changes, "folder/config.json")
    assert str(error.value).startswith("folder/config.json: ")
    assert "\n" not in str(error.value)
