"""DSSM, ARC-I, HAN and SMITH against their formulae, and their table on a few texts."""

import argparse
import json
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training.train_state import TrainState

from benchmarks import siamese, siamese_data, siamese_models, smith
from benchmarks.siamese_models import ARC1, DSSM, HAN
from docjax.data.tokenizer import SPECIAL, train_tokenizer
from docjax.types import Document, Section

pytestmark = pytest.mark.usefixtures("one_device")

WORDS = 20
TINY_SMITH = smith.Smith(WORDS, blocks=6, layers=1, document_layers=1, width=8)
MODELS = {
    "ARC-I": ARC1(WORDS, width=6, filters=5),
    "HAN": HAN(WORDS, width=6, hidden=4, context=5),
    "SMITH": TINY_SMITH,
}


def texts(name: str, more: int = 0) -> np.ndarray:
    """Three texts, the last without words; `more` is the number of padded places."""
    generator = np.random.default_rng(0)
    if name == "ARC-I":
        found = np.zeros((3, 11 + more), np.int32)
        for row, length in enumerate((11, 4)):
            found[row, :length] = generator.integers(1, WORDS, length)
        return found
    padding, width = (smith.PADDING, smith.TOKENS) if name == "SMITH" else (0, 7 + more)
    found = np.full((3, 4 + (more and 2), width), padding, np.int32)
    for row, lengths in enumerate(((7, 3, 5, 6), (4, 7))):
        for place, length in enumerate(lengths):
            found[row, place, :length] = generator.integers(5, WORDS, length)
    if name == "SMITH":
        found[2, 0, :3] = smith.START, smith.END, smith.END
    return found


def initial(model: nn.Module, *given: np.ndarray) -> Any:
    """Random parameters; nothing is compiled."""
    shapes = jax.eval_shape(model.init, jax.random.key(0), *given)
    generator = np.random.default_rng(0)
    draw = lambda leaf: generator.normal(0, 0.3, leaf.shape).astype(np.float32)
    scale = lambda path, leaf: leaf + (path[-1].key == "scale")
    return jax.tree.map_with_path(scale, jax.tree.map(draw, shapes))


@pytest.mark.parametrize("name", MODELS)
def test_padding_does_not_change_a_vector(name):
    model, short = MODELS[name], texts(name)
    params, encode = initial(model, short), jax.jit(model.apply)
    expected = np.asarray(encode(params, short))
    assert expected.shape[0] == 3 and np.isfinite(expected).all()
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    found = encode(params, texts(name, more=9)[:2])
    np.testing.assert_allclose(found, expected[:2], atol=1e-5)


def test_dssm_is_three_layers_with_tanh():
    counts = np.random.default_rng(0).uniform(size=(2, 9)).astype(np.float32)
    params = initial(DSSM(), counts)
    expected = counts
    for layer in range(3):
        dense = params["params"][f"Dense_{layer}"]
        expected = np.tanh(expected @ dense["kernel"] + dense["bias"])
    assert expected.shape == (2, 128)
    np.testing.assert_allclose(DSSM().apply(params, counts), expected, atol=1e-5)


def test_arc1_is_convolutions_and_maxima():
    """One text, position by position."""
    model, words = MODELS["ARC-I"], texts("ARC-I")[:1]
    params = initial(model, words)
    x = np.asarray(params["params"]["words"]["embedding"])[words[0]]
    for block in range(3):
        conv = params["params"][f"Conv_{block}"]
        around = np.pad(x, ((1, 1), (0, 0)))
        x = [
            sum(around[i + j] @ conv["kernel"][j] for j in range(3)) + conv["bias"]
            for i in range(len(x))
        ]
        x = np.maximum(x, 0)
        x = np.stack([x[i : i + 2].max(0) for i in range(0, len(x), 2)])
    found = model.apply(params, words)[0]
    np.testing.assert_allclose(found, x.max(0), atol=1e-5)


def test_attention_is_the_mean_with_the_weights_of_the_context():
    """HAN, Eq. 5 to 7, on the states of one sentence of three words."""
    layer = siamese_models.Attention(context=3)
    states = np.random.default_rng(0).normal(size=(1, 5, 4)).astype(np.float32)
    mask = np.arange(5)[None] < 3
    params = initial(layer, states, mask)
    found = layer.apply(params, states, mask)[0]
    own, states = params["params"], states[0, :3]
    u = np.tanh(states @ own["hidden"]["kernel"] + own["hidden"]["bias"])
    scores = np.exp(u @ own["context"]["kernel"][:, 0])
    expected = (scores[:, None] * states).sum(0) / scores.sum()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_softmax_without_real_places_is_zero():
    found = siamese_models.softmax(
        jnp.ones((2, 3)), jnp.array([[True, True, False]] + [[False] * 3])
    )
    np.testing.assert_allclose(found, [[0.5, 0.5, 0], [0, 0, 0]])


def test_blocks_hold_whole_sentences_and_count_what_they_cut():
    sizes = 10, 15, 10, 40, 3, 5
    sentences = [np.full(size, 10 + i, np.int32) for i, size in enumerate(sizes)]
    found, lost = smith.blocks_of(sentences, 3)
    assert lost == (40 - 29) + 3 + 5  # the end of the fourth, and the fourth block
    lengths = (found != smith.PADDING).sum(1).tolist()
    assert lengths == [3 + 25, 3 + 10, 3 + 29]
    assert found[0, 0] == smith.START and found[0, 26:28].tolist() == [smith.END] * 2
    assert found[0, 1:26].tolist() == [10] * 10 + [11] * 15
    empty, lost = smith.blocks_of([], 2)
    assert lost == 0 and (empty != smith.PADDING).sum(1).tolist() == [3, 0]


def test_the_special_tokens_are_those_of_the_tokenizer():
    tokenizer = train_tokenizer(["some text"], 270)
    ids = [tokenizer.backend.token_to_id(name) for name in SPECIAL]
    assert ids[:3] == [smith.START, smith.PADDING, smith.END] and ids[4] == smith.MASK


def test_masked_words_and_blocks_are_what_is_predicted():
    tokens = np.full((4, 6, smith.TOKENS), smith.PADDING, np.int32)
    for document, count in enumerate((6, 3, 2, 1)):
        for block, length in zip(range(count), (29, 10, 1, 20, 5, 29), strict=False):
            row = [smith.START, *range(10, 10 + length), smith.END, smith.END]
            tokens[document, block, : length + 3] = row
    found = smith.masked(tokens, 50, np.random.default_rng(0))
    chosen = (found.positions >= 0).sum(-1)
    assert chosen[0].tolist() == [4, 2, 1, 3, 1, 4]  # 15 %, at least 1
    assert chosen[1].tolist() == [4, 2, 1, 0, 0, 0]
    for document, block, place in zip(*np.nonzero(found.positions >= 0), strict=True):
        at = found.positions[document, block, place]
        answer = found.answers[document, block, place]
        assert answer == tokens[document, block, at] >= 10
    changed = np.argwhere(found.tokens != tokens)
    assert len(changed) and all(at in found.positions[d, s] for d, s, at in changed)
    assert ((found.answers >= 0) == (found.positions >= 0)).all()
    assert sorted(found.blocks[1]) != [-1, -1] and len(set(found.blocks[0])) == 2
    assert (found.blocks[2:] == -1).all() and (found.blocks[1] < 3).all()


def test_a_masked_block_is_told_from_all_masked_blocks():
    """A row without an answer counts neither as row nor in the mean."""
    scores = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    found = smith.cross_entropy(jnp.asarray(scores), jnp.array([0, -1, 2]))
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found, -np.log(shares[[0, 2], [0, 2]]).mean(), rtol=1e-5)


def test_the_encoder_of_documents_does_not_see_a_masked_block():
    """Another text of masked blocks changes nothing that it reads."""
    tokens = np.random.default_rng(0).integers(5, WORDS, (2, 4, smith.TOKENS))
    tokens[..., 0], tokens[..., -2:] = smith.START, smith.END
    model = smith.Smith(WORDS, 4, 1, 1, width=16, dropout=0.0)
    params = initial(model, tokens)
    nothing = np.full((2, 4, smith.MOST), -1)
    blocks = np.array([[1, 3], [0, 2]])

    def read(tokens):
        seen = []

        def spy(function, arguments, keywords, context):
            if context.method_name == "_over_blocks":
                seen.append(np.asarray(arguments[0]))
            return function(*arguments, **keywords)

        given = smith.Masked(tokens, nothing, nothing, blocks)
        with nn.intercept_methods(spy):
            model.apply(params, given, method=smith.Smith.pretraining)
        [states] = seen
        return states

    other, hidden = tokens.copy(), (np.arange(2)[:, None], blocks)
    other[hidden] = np.roll(tokens[hidden], 7, axis=-1)
    np.testing.assert_array_equal(read(tokens), read(other))
    other[0, 0] = np.roll(tokens[0, 0], 7)
    assert np.abs(read(tokens) - read(other)).max() > 1e-3


def test_pretraining_learns_words_and_blocks():
    tokens = np.random.default_rng(0).integers(5, WORDS, (8, 6, smith.TOKENS))
    tokens[..., 0], tokens[..., -2:] = smith.START, smith.END
    tokens[..., 1:-2] = tokens[..., 1:2]  # a block repeats its word
    model = smith.Smith(WORDS, 6, 1, 1, width=16, dropout=0.0)
    run = smith.pretrained(model, tokens.astype(np.int32), 40, 8, 1e-2, seed=0)
    losses = [loss for _, loss in run]
    assert np.isnan(losses[0]) and losses[-1] < losses[1] - 1


def test_the_loss_of_smith_has_six_times_the_cosine_as_logit():
    vectors = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    labels = np.array([1, 0, 0, 1])
    left, right = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    shares = 1 / (1 + np.exp(-6 * (left * right).sum(1)))
    expected = -np.log(np.where(labels, shares, 1 - shares)).mean()
    found = smith.matching_loss(jnp.asarray(vectors), jnp.asarray(labels))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_training_lowers_the_loss(name):
    """Pairs of equal texts are similar, other pairs are not, also with an empty text."""
    given = texts(name)[[0, 1, 0, 1, 2]]
    model, rows = MODELS[name], np.array([[0, 2], [0, 1], [1, 3], [1, 2], [4, 0]])
    labels = np.array([True, False, True, False, False])
    loss = smith.matching_loss if name == "SMITH" else siamese.squared
    params = initial(model, given)
    rate = 0.003  # with ten times as much a rounding decides where SMITH ends
    system = siamese.System(model, given, loss, rate, lambda seed: params)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(rate))

    def value(state: TrainState) -> float:
        vectors = siamese.encode(state, given)[rows.T]
        return float(loss(vectors, labels.astype(np.int32)))

    before = value(state)
    for epoch in range(40):
        state = siamese.epoch_of(state, system, (rows, labels), 5, (0, epoch))
    assert value(state) < 0.5 * before


@pytest.fixture
def folder(tmp_path):
    """Documents of three topics with an abstract, and pairs of and across the topics."""
    names = [f"topic{i % 3}-{i}" for i in range(9)]
    with (tmp_path / "papers.jsonl").open("w") as stream:
        for name in names:
            sections = [
                {"heading": "Abstract", "text": "nothing"},
                {"heading": "1 Start", "text": f"{name[:6]} is good. " * 5},
            ]
            stream.write(json.dumps({"id": name, "sections": sections}) + "\n")
    lines = [
        f"{('train', 'train', 'dev', 'test')[(i + j) % 4]}\t{a}\t{b}\t{int(a[:6] == b[:6])}\n"
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i != j
    ]
    head = "split\tsource\ttarget\tlabel\n"
    (tmp_path / "pairs.tsv").write_text(head + "".join(lines))
    return tmp_path


def run(monkeypatch, folder, *flags: str) -> None:
    files = "--documents", str(folder / "papers.jsonl"), "--pairs", "pairs.tsv"
    monkeypatch.chdir(folder)
    siamese.main([*files, *flags])


def test_the_table_has_the_scores_of_each_seed(folder, monkeypatch, capsys):
    flags = "--seeds 0 1 0 --epochs 1 --batch 8 --systems DSSM"
    run(monkeypatch, folder, *flags.split())
    notes, _, rows = capsys.readouterr().out.partition("\n\n")
    assert notes.splitlines() == [
        "Pairs: 36 train, 16 dev, 20 test.",
        "DSSM reads 17 letter trigrams.",
    ]
    head, _, row = rows.splitlines()
    assert head.startswith("| system | ") and " f1 | accuracy |" in head
    name, *cells = row.strip("|").split("|")
    assert name.strip() == "DSSM" and len(cells) == head.count("|") - 2
    for cell in cells:  # the same seed has the same scores again
        first, _, again = map(float, cell.split(","))
        assert first == again


DOCUMENTS = [
    Document(name, (Section("", f"{name} has words here. " * 6),)) for name in "abc"
]
FLAGS = argparse.Namespace(
    words=20, blocks=2, layers=1, width=8, pretraining=0, batch=2, rate=None
)


def test_arc1_and_han_read_the_same_words(capsys):
    flat = siamese.arc1(DOCUMENTS, FLAGS).inputs
    assert flat.shape == (3, 20) and (flat != siamese_models.PADDING).all()
    by_sentence = siamese.han(DOCUMENTS, FLAGS).inputs
    assert by_sentence.shape == (3, 5, siamese.SENTENCE)
    for one, other in zip(flat, by_sentence, strict=True):
        assert other[other != siamese_models.PADDING].tolist() == one.tolist()
    assert capsys.readouterr().out.count("words of a document leave out") == 2


def test_smith_reads_blocks_and_counts_the_rest(capsys):
    system = siamese.smith_system(DOCUMENTS, FLAGS)
    assert system.inputs.shape == (3, 2, smith.TOKENS) and system.rate == 5e-5
    assert system.loss is smith.matching_loss
    assert "SMITH leaves out " in capsys.readouterr().out


def test_han_reads_long_sentences_in_several_rows(capsys):
    text = "a " * 40 + ". " + "b " * 5
    words, vocabulary = siamese_data.words_of([Document("a", (Section("", text),))], 43)
    assert [len(sentence) for sentence in words[0]] == [40, 3] and vocabulary >= 3
    assert "4.4%" in capsys.readouterr().out  # 2 of 45


@pytest.mark.parametrize(
    "flags, message",
    [
        ("--epochs 0", "siamese: --epochs 0: give 1 or more"),
        ("--batch 999", "--batch 999: there are .* training pairs; give at most"),
        ("--pairs none.tsv", r"siamese: none\.tsv: cannot be read"),
        ("--documents none.jsonl", "siamese: none.jsonl"),
    ],
)
def test_a_mistake_is_one_line(folder, monkeypatch, flags, message):
    with pytest.raises(SystemExit, match=message) as error:
        run(monkeypatch, folder, *flags.split())
    assert "\n" not in str(error.value)


def test_pairs_of_unknown_documents_are_named(folder, monkeypatch):
    with (folder / "pairs.tsv").open("a") as stream:
        stream.write("train\ttopic0-0\tgone\t0\n")
    with pytest.raises(SystemExit, match="1 of its documents .* first is 'gone': give"):
        run(monkeypatch, folder)
