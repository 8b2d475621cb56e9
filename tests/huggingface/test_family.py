"""Every record of a family has names, configs and modules that agree with each other and
with transformers. A new record is tested here without a change."""

import ast
import functools
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flax.traverse_util import flatten_dict, unflatten_dict

import docjax
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.pooling import Mean
from docjax.errors import UserError
from docjax.huggingface import names
from docjax.huggingface.family import (
    by_model_type,
    decided,
    families,
    family_of,
    family_of_config,
)

SIZES = dict(vocabulary=61, layers=4, width=16, heads=2, hidden=24, positions=34)
ALL = families()
FAMILIES = list(ALL.values())
IN_TRANSFORMERS = [name for name, family in ALL.items() if family.in_transformers]
CODE = Path(docjax.__file__).parent / "export/torch_segment_encoders.py"


def example(family) -> nn.Module:
    """A small segment encoder of a family."""
    fields = family.module.__dataclass_fields__
    sizes = {name: size for name, size in SIZES.items() if name in fields}
    return family.module(**sizes | dict(family.fixed))


def keywords_of(segment: nn.Module) -> dict:
    return {name: getattr(segment, name) for name in segment.__dataclass_fields__}


def paths(segment: nn.Module) -> set[str]:
    """The parameter paths of a segment encoder."""
    encoder = DocumentEncoder(segment, Mean())
    params = jax.eval_shape(lambda: fresh_params(encoder, 0))
    return set(flatten_dict(params["segment"], sep="/"))


@pytest.mark.parametrize("family", FAMILIES, ids=ALL)
def test_a_segment_encoder_finds_its_family(family):
    assert family_of(example(family)) is family


@pytest.mark.parametrize("family", FAMILIES, ids=ALL)
def test_every_parameter_has_a_name_or_is_for_training_only(family):
    segment = example(family)
    table = family.table(segment)
    rest = paths(segment) - set(table)
    assert set(table) <= paths(segment) and len(set(table.values())) == len(table)
    assert all(path.startswith(family.training_only) for path in rest)
    assert all(path.startswith(family.training_only) for path in family.names.masked_lm)


@pytest.mark.parametrize("family", FAMILIES, ids=ALL)
def test_a_class_computes_in_float32_and_perhaps_in_bfloat16(family):
    segment = example(family)
    assert segment.in_dtype("float32") == segment
    if hasattr(segment, "dtype"):
        assert segment.in_dtype("bfloat16").dtype == "bfloat16"
    else:
        with pytest.raises(UserError, match="bfloat16.* has float32 only"):
            segment.in_dtype("bfloat16")


@pytest.mark.parametrize("family", FAMILIES, ids=ALL)
def test_exports_have_the_class_and_the_module_that_a_record_names(family):
    tree = ast.parse(CODE.read_text("utf-8"))
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert family.exported_as in classes
    assert family.sentence_module in (None, "Transformer", "StaticEmbedding")


@pytest.mark.parametrize("name", IN_TRANSFORMERS)
def test_a_config_comes_back_as_the_same_keywords(name):
    family, segment = ALL[name], example(ALL[name])
    given = keywords_of(segment)
    config = family.config(given)
    assert family_of_config(config, "here") is family
    keywords = family.to_keywords(config, "here")
    assert keywords == {name: given[name] for name in keywords}
    assert family_of(family.module(**keywords)) is family
    assert set(keywords) - {"dropout", "attention_dropout"} <= decided()


@pytest.mark.parametrize("name", IN_TRANSFORMERS)
def test_transformers_has_the_classes_and_gives_the_states(name):
    """Of a row that needs no padding, from random weights."""
    family, segment = ALL[name], example(ALL[name])
    tokens = np.random.default_rng(0).integers(5, 61, (1, 30))
    for kind, architecture in family.architectures.items():
        torch.manual_seed(0)
        config = family.config(keywords_of(segment)) | {"model_type": kind}
        config = transformers.AutoConfig.for_model(**config)
        made = getattr(transformers, architecture)(config, **family.model_keywords)
        model = made.eval().requires_grad_(False)
        assert type(model.config).model_type == kind
        for parameter in model.parameters():  # fresh biases would hide mistakes
            parameter.add_(torch.randn_like(parameter) * 0.1)
        table, found = family.table(segment), dict(model.named_parameters())
        assert set(found) == set(table.values())
        mask = {"global_attention_mask": torch.eye(30)[:1].long()}
        options = mask if family.first_sees_all else {}
        expected = model(torch.tensor(tokens), **options).last_hidden_state
        flat = {p: names.swap(p, found[name].numpy()) for p, name in table.items()}
        params = {"params": unflatten_dict(flat, sep="/")}
        states = jax.jit(functools.partial(segment.apply, method="hidden_states"))
        got = states(params, jnp.asarray(tokens, jnp.int32), jnp.array([30]))
        np.testing.assert_allclose(got, expected.numpy(), atol=1e-5)


def test_weights_do_not_decide_what_a_config_chooses():
    kept = {
        "dropout",
        "pooling",
        "dtype",
        "words",
        "sections",
        "masked_lm",
        "normalize",
    }
    assert not kept & decided()
    sizes = {"vocabulary", "layers", "window", "buckets", "projection", "types"}
    assert sizes <= decided()
    for family in FAMILIES:
        assert set(family.module.chosen) <= set(family.module.__dataclass_fields__)


def test_of_two_families_of_a_class_that_with_more_fixed_keywords_holds():
    bert, roberta = ALL["bert"], ALL["roberta"]
    assert bert.module is roberta.module
    assert family_of(bert.module(position_offset=0)) is bert
    assert family_of(bert.module(position_offset=1)) is roberta


def test_an_encoder_of_no_family_is_one_line():
    words = "Dense belongs to no family.*Longformer.*Transformer, WordAverage"
    with pytest.raises(UserError, match=words):
        family_of(nn.Dense(3))


@pytest.mark.parametrize("kind", ["gpt2", None, ["bert"]])
def test_a_model_type_of_no_family_is_one_line(kind):
    words = "here: model_type .* is not supported; supported are bert, .*xlm-roberta"
    with pytest.raises(UserError, match=words):
        family_of_config({"model_type": kind}, "here")
    assert {"bert", "roberta", "xlm-roberta", "t5"} <= set(by_model_type())


def test_names_of_layers_are_counted_without_gaps_in_digits():
    bert = ALL["bert"].names
    table = bert.table(12)
    assert bert.layer_count(table.values()) == 12 and len(table) == 5 + 12 * 16
