"""A Flax module from outside of docjax as a segment encoder, and what it must answer."""

from pathlib import Path

import flax.linen as nn
import jax.numpy as jnp
import pytest

from docjax.encoders.document import DocumentEncoder
from docjax.encoders.pooling import Mean
from docjax.encoders.segment_defaults import SegmentDefaults
from docjax.encoders.shapes import check_kind, shapes
from docjax.encoders.towers import Towers
from docjax.encoders.transformer import Transformer
from docjax.encoders.word_average import WordAverage
from docjax.encoders.word_vectors import WordVectors
from docjax.errors import UserError
from docjax.types import SegmentEncoder

HERE = Path("config.json")
SMALL = Transformer(vocabulary=9, layers=1, width=4, heads=2, hidden=4, positions=12)


class Own(nn.Module):
    """All that docjax asks of a segment encoder, without a class of docjax."""

    has_towers = masked_lm = reads_prompts = shows_attention = averages_words = False
    words = 0
    place_rows = 0, 0
    vocabulary: int = 9

    @nn.nowrap
    def check_training(self, tokens):
        return None

    @nn.nowrap
    def in_dtype(self, dtype):
        return self

    @nn.compact
    def __call__(self, tokens, lengths, places=None, keys=None):
        real = jnp.arange(tokens.shape[1]) < lengths[:, None]
        vectors = nn.Embed(self.vocabulary, 3, name="table")(tokens)
        return jnp.where(real[..., None], vectors, 0).sum(1)


class Inherited(SegmentDefaults):
    vocabulary: int = 9

    __call__ = Own.__call__


class Nothing(nn.Module):
    vocabulary: int = 9


@pytest.mark.parametrize("segment", [Own(), Inherited()], ids=["own", "inherited"])
def test_a_module_of_a_users_is_a_segment_encoder(segment):
    assert isinstance(segment, SegmentEncoder)
    found = shapes(DocumentEncoder(segment, Mean()), HERE)
    assert found["segment"]["table"]["embedding"].shape == (9, 3)
    segment.check_training(10**6)
    assert segment.in_dtype("float32") == segment


@pytest.mark.parametrize(
    "segment", [SMALL, Towers(SMALL), WordAverage(9, 4), WordVectors(9, 4)]
)
def test_the_segment_encoders_of_docjax_answer_all_questions(segment):
    assert isinstance(segment, SegmentEncoder)


@pytest.mark.parametrize(
    "encoder, words",
    [
        (
            DocumentEncoder(Nothing(), Mean()),
            "Nothing has no __call__, averages_words, check_training, has_towers, "
            + "in_dtype, masked_lm, place_rows, reads_prompts, shows_attention, words: take",
        ),
        (DocumentEncoder(Towers(Nothing()), Mean()), "encoder.segment Nothing has no"),
        (
            DocumentEncoder(SMALL, nn.Dense(3)),
            "encoder.document Dense has no attends, ",
        ),
        (SMALL, "encoder is not a DocumentEncoder"),
    ],
)
def test_what_is_missing_is_named_in_one_line(encoder, words):
    with pytest.raises(UserError) as error:
        check_kind(encoder, HERE)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_towers_answer_as_the_encoder_inside_of_them():
    towers = Towers(SMALL)
    assert towers.reads_prompts and not Towers(WordAverage(9, 4)).reads_prompts
    assert towers.in_dtype("bfloat16").encoder.dtype == "bfloat16"
    with pytest.raises(UserError, match="13 tokens, .* room for 10"):
        towers.check_training(13)


def test_the_table_of_words_is_no_number_of_words():
    assert WordAverage(9, 4).words == 0 and WordAverage(9, 4).averages_words
    assert Transformer(words=3).words == 3 and not SMALL.averages_words


def test_the_defaults_have_float32_alone():
    with pytest.raises(UserError, match="dtype 'bfloat16': Inherited has float32 only"):
        Inherited().in_dtype("bfloat16")
