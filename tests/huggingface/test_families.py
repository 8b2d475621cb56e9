"""Every family of segment encoders has names, configs and modules that agree."""

import flax.linen as nn
import jax
import pytest
import transformers
from flax.traverse_util import flatten_dict

from docjax.encoders.bigbird import BigBird
from docjax.encoders.document import DocumentEncoder, fresh_params
from docjax.encoders.longformer import Longformer
from docjax.encoders.modernbert import ModernBert
from docjax.encoders.pooling import Mean
from docjax.encoders.t5 import T5
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.errors import UserError
from docjax.export import libraries
from docjax.huggingface import families, names
from docjax.huggingface.families import FAMILIES, family_of, family_of_config

SIZES = dict(vocabulary=61, layers=2, width=16, heads=2, hidden=24, positions=34)
SEGMENTS = {
    families.BERT: Transformer(**SIZES, position_offset=0, types=2),
    families.ROBERTA: Transformer(**SIZES, position_offset=2),
    families.LONGFORMER: Longformer(**SIZES, window=(8, 4)),
    families.MODERNBERT: ModernBert(**SIZES, global_every=2),
    families.BIG_BIRD: BigBird(**SIZES, block=4, random=1),
    families.T5: T5(**SIZES, head_width=6),
    families.WORD_AVERAGE: WordAverage(vocabulary=61, width=16),
}
IN_TRANSFORMERS = [family for family in FAMILIES if family.in_transformers]


def paths(segment: nn.Module) -> set[str]:
    """The parameter paths of a segment encoder."""
    encoder = DocumentEncoder(segment, Mean())
    params = jax.eval_shape(lambda: fresh_params(encoder, 0))
    return set(flatten_dict(params["segment"], sep="/"))


def test_there_is_an_example_of_every_family():
    assert set(SEGMENTS) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_segment_encoder_finds_its_family(family):
    assert family_of(SEGMENTS[family]) is family


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_has_a_name_or_is_for_training_only(family):
    segment = SEGMENTS[family]
    table = family.table(segment)
    rest = paths(segment) - set(table)
    assert set(table) <= paths(segment) and len(set(table.values())) == len(table)
    assert all(path.startswith(family.training_only) for path in rest)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_for_masked_tokens_is_for_training_only(family):
    assert all(path.startswith(family.training_only) for path in family.names.masked_lm)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_has_the_keyword_dtype_if_it_has_several(family):
    segment = SEGMENTS[family]
    assert hasattr(segment, "dtype") == (len(family.dtypes) > 1)
    assert family.dtypes[0] == getattr(segment, "dtype", "float32")


@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_modules_are_known(family):
    assert family.sentence_module in {None, *libraries.STOCK}


@pytest.mark.parametrize("family", IN_TRANSFORMERS)
def test_a_config_comes_back_as_the_same_keywords(family):
    segment = SEGMENTS[family]
    given = {name: getattr(segment, name) for name in segment.__dataclass_fields__}
    config = family.config(given)
    assert family_of_config(config, "here") is family
    keywords = family.to_keywords(config, "here")
    assert keywords == {name: given[name] for name in keywords}
    assert family_of(family.module(**keywords)) is family


@pytest.mark.parametrize("family", IN_TRANSFORMERS)
def test_transformers_has_the_classes_and_their_tensors(family):
    segment = SEGMENTS[family]
    given = {name: getattr(segment, name) for name in segment.__dataclass_fields__}
    for kind, architecture in family.architectures.items():
        config = family.config(given) | {"model_type": kind}
        config = transformers.AutoConfig.for_model(**config)
        model = getattr(transformers, architecture)(config, **family.model_keywords)
        assert type(model.config).model_type == kind
        found = {name for name, _ in model.named_parameters()}
        assert found == set(family.table(segment).values())


def test_an_encoder_of_no_family_is_one_line():
    with pytest.raises(UserError, match="Dense belongs to no family.*Transformer, L"):
        family_of(nn.Dense(3))


@pytest.mark.parametrize("kind", ["gpt2", None, ["bert"]])
def test_a_model_type_of_no_family_is_one_line(kind):
    words = "here: model_type .* is not supported; supported are bert, roberta, xlm"
    with pytest.raises(UserError, match=words):
        family_of_config({"model_type": kind}, "here")


def test_names_of_layers_are_counted_without_gaps_in_digits():
    table = names.BERT.table(12)
    assert names.BERT.layer_count(table.values()) == 12 and len(table) == 5 + 12 * 16
