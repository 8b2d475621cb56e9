"""Prompts in tokens: as the tokenizer cuts prompt and text together."""

import numpy as np
import pytest

from docjax.data.prompts import Prompted
from docjax.data.segments import OneEach
from docjax.data.tokenizer import Tokenizer, load_tokenizer, train_tokenizer
from docjax.data.units import Cut, Whole
from docjax.errors import UserError
from docjax.types import Document, Section

TEXTS = ["A cat sat.", " space first", "", "x", "(brackets) and words " * 9]
PROMPTS = ["query: ", "Represent the document for retrieval:", "  ", "q"]


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_tokenizer([*TEXTS, *PROMPTS] * 9, 300)


@pytest.fixture(scope="module")
def words(minilm) -> Tokenizer:
    return load_tokenizer(minilm)


@pytest.mark.parametrize("kind", ["bpe", "words"])
@pytest.mark.parametrize("prompt", PROMPTS[:2])
def test_one_segment_has_the_tokens_of_prompt_and_text_together(kind, prompt, request):
    plain = request.getfixturevalue(kind)
    prompted = Prompted(plain, prompt)
    for text, ids in zip(TEXTS, prompted.encode(TEXTS)):
        expected = plain.backend.encode((prompt + text).rstrip()).ids
        found = [*prompted.prefix, *ids, *prompted.suffix]
        if text:
            expected = plain.backend.encode(prompt + text).ids
        elif kind == "bpe":  # a text that is only the space of the prompt
            expected = plain.backend.encode(prompt).ids
        assert found == expected, text


def test_a_text_that_would_join_the_prompt_stays_apart(words):
    prompted = Prompted(words, "q")
    [ids] = prompted.encode(["uery"])
    assert ids.tolist() == words.encode(["uery"])[0].tolist()
    assert ids.tolist() != words.encode(["query"])[0].tolist()


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_the_characters_of_a_token_are_those_behind_the_prompt(kind, request):
    prompted = Prompted(request.getfixturevalue(kind), "query: ")
    for text, ids in zip(TEXTS, prompted.encode(TEXTS), strict=True):
        again, spans = prompted.encode_with_spans(text)
        assert again.tolist() == ids.tolist()
        for number, (start, end) in zip(again.tolist(), spans.tolist(), strict=True):
            token = prompted.backend.decode([number]).removeprefix("##").strip()
            assert text[start:end].strip().lower() == token.lower()


def test_characters_are_right_where_a_text_would_join_the_prompt(words):
    ids, spans = Prompted(words, "q").encode_with_spans("uery ab")
    expected, plain = words.encode_with_spans("uery ab")
    assert ids.tolist() == expected.tolist() and spans.tolist() == plain.tolist()
    assert Prompted(words, "q").encode(["uery ab"])[0].tolist() == ids.tolist()


def test_white_space_alone_is_no_prompt(words):
    prompted = Prompted(words, "  ")
    assert prompted.prefix.tolist() == words.prefix.tolist()
    assert [i.tolist() for i in prompted.encode(TEXTS)] == [
        i.tolist() for i in words.encode(TEXTS)
    ]


@pytest.mark.parametrize("kind", ["bpe", "words"])
def test_every_segment_has_the_prompt_and_no_token_is_lost(kind, request):
    plain = request.getfixturevalue(kind)
    prompted = Prompted(plain, "query: ")
    text = " ".join(TEXTS)
    document = Document("a", (Section("", text),))
    cut = Cut(Whole(), OneEach(), prompted, 16)
    [segments] = cut.documents([document])
    rows = np.split(segments.tokens, segments.offsets[1:-1])
    assert len(rows) > 3 and max(map(len, rows)) <= 16
    size = len(prompted.prefix)
    assert size == len(plain.prefix) + len(plain.encode(["query:"])[0])
    assert all(row[:size].tolist() == prompted.prefix.tolist() for row in rows)
    text_tokens = np.concatenate([row[size : -len(plain.suffix)] for row in rows])
    assert text_tokens.tolist() == prompted.encode([text])[0].tolist()
    again, pieces = cut.with_texts(document)
    np.testing.assert_array_equal(again.tokens, segments.tokens)
    assert "".join(piece.text for piece in pieces) == text


def test_the_tokens_of_the_prompt_are_counted_as_sentence_transformers_counts(bpe):
    """With the space that RoBERTa joins to the next word."""
    prompted = Prompted(bpe, "query: ")
    assert prompted.prompt_length == len(bpe.backend.encode("query: ").ids) - 1


def test_different_prompts_are_different_tokenizers(bpe):
    hashes = {Prompted(bpe, prompt).sha256 for prompt in PROMPTS} | {bpe.sha256}
    assert len(hashes) == 1 + len(PROMPTS)


def test_a_prompt_without_room_for_text_is_one_line(bpe):
    prompted = Prompted(bpe, "a long instruction " * 9)
    with pytest.raises(UserError, match="the prompt 'a long instr.* no room for text"):
        prompted.frame(16)
