"""Doc2vecC's loss: against a plain loop, unbiased, and without leaks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docjax.errors import UserError
from docjax.objectives.negative_sampling import NegativeSampling, Rows

D, P, DRAWN, K = 6, 3, 8, 4
COLUMN = 5


def columns(array):
    """Words in the columns that a block has."""
    return jnp.swapaxes(array.reshape(-1, COLUMN, *array.shape[1:]), 0, 1)


def in_order(array):
    return np.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])


def gradient(objective, found, words, estimates, noise, window):
    """Of a block whose words are in order, as are the gradients."""
    given = found._replace(words=columns(found.words), targets=columns(found.targets))
    loss, out = jax.jit(objective.gradient)(
        given, columns(words), columns(estimates), noise, window
    )
    out = out._replace(words=in_order(out.words), targets=in_order(out.targets))
    return loss, out


def block(generator, gap=3):
    """Two documents of 5 and 7 words, `gap` places apart, in a block of 20; and the
    estimates that their words take."""
    words = np.zeros(20, np.int32)
    words[:5] = generator.integers(1, 9, 5)
    words[5 + gap : 12 + gap] = generator.integers(1, 9, 7)
    estimates = generator.integers(0, DRAWN, 20)
    estimates[5 + gap :] += DRAWN
    return jnp.asarray(words), jnp.asarray(estimates)


def rows(generator, words):
    normal = lambda *shape: jnp.asarray(generator.normal(size=shape), jnp.float32)
    real = (words > 0)[:, None]
    return Rows(
        normal(len(words), D) * real,
        normal(P, DRAWN, D),
        normal(len(words), D),
        normal(COLUMN, K, D),
    )


def plain_loss(objective, found, words, estimates, noise, window):
    """The definition, word by word."""
    first, last = objective.windows[window]
    total = 0.0
    for t in np.flatnonzero(words):
        near = [j for j in range(t + first, t + last + 1) if j != t]
        near = [j for j in near if 0 <= j < len(words) and words[j]]
        document, turn = divmod(estimates[t], DRAWN)
        circle = (turn + np.arange(objective.sample)) % DRAWN
        u = found.drawn[document, circle].mean(0) + found.words[near].sum(0)
        if objective.combine == "mean":
            u = u / (len(near) + 1)
        total += np.log1p(np.exp(-u @ found.targets[t]))
        place = t % COLUMN
        for n in np.flatnonzero(noise[place] != words[t]):
            total += np.log1p(np.exp(u @ found.noise[place, n]))
    return total


@pytest.mark.parametrize("context", ["left", "shrunk", "full"])
@pytest.mark.parametrize("combine", ["mean", "sum"])
def test_loss_and_gradient_are_those_of_a_plain_loop(context, combine):
    objective = NegativeSampling(
        window=3, negatives=K, sample=3, context=context, combine=combine
    )
    generator = np.random.default_rng(0)
    words, estimates = block(generator)
    found = rows(generator, words)
    noise = jnp.asarray(generator.integers(1, 9, (COLUMN, K)))
    exact = Rows(*(np.asarray(one, np.float64) for one in found))
    given = np.asarray(words), np.asarray(estimates), np.asarray(noise)
    for window in range(len(objective.windows)):
        loss, slopes = gradient(objective, found, words, estimates, noise, window)
        expected = plain_loss(objective, exact, *given, window)
        np.testing.assert_allclose(loss, expected, rtol=1e-5)
        for name, part in exact._asdict().items():
            way = generator.normal(size=part.shape)
            way *= (given[0] > 0)[:, None] if name == "words" else 1
            ends = [
                plain_loss(
                    objective, exact._replace(**{name: part + e * way}), *given, window
                )
                for e in (1e-5, -1e-5)
            ]
            slope = (getattr(slopes, name) * way).sum()
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, rtol=1e-4)


def test_the_estimate_of_a_document_is_unbiased():
    """Words drawn with replacement: mean and variance of the estimate are right."""
    objective = NegativeSampling(sample=5)
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(7, 2)).astype(np.float32)  # a document's words
    tries = 4000
    drawn = jnp.asarray(vectors[generator.integers(0, 7, (tries, DRAWN))])
    means = np.asarray(objective._estimates(drawn)).reshape(tries, DRAWN, 2)
    estimates = means[np.arange(tries), generator.integers(DRAWN, size=tries)]
    error = estimates.mean(0) - vectors.mean(0)
    deviation = np.sqrt(vectors.var(0) / 5)
    assert (np.abs(error) < 4 * deviation / np.sqrt(tries)).all()
    np.testing.assert_allclose(estimates.std(0), deviation, rtol=0.05)


def test_no_window_reaches_another_document_or_the_padding():
    objective = NegativeSampling(window=3, context="full")
    generator = np.random.default_rng(1)
    words, estimates = block(generator)
    found, noise = rows(generator, words), jnp.full((COLUMN, K), 20)
    first = np.asarray(estimates) < DRAWN
    _, both = gradient(objective, found, words, estimates, noise, 0)
    _, alone = gradient(
        objective, found, jnp.where(first, words, 0), estimates, noise, 0
    )
    np.testing.assert_array_equal(both.words[:5], alone.words[:5])
    np.testing.assert_array_equal(both.targets[:5], alone.targets[:5])
    padding = np.asarray(words) == 0
    assert not both.words[padding].any() and not both.targets[padding].any()


def test_a_word_alone_is_predicted_from_its_document():
    objective = NegativeSampling(window=2, sample=1)
    words, estimates = jnp.array([4] + [0] * 14), jnp.zeros(15, jnp.int32)
    found = Rows(
        words=jnp.zeros((15, 1)),
        drawn=jnp.full((1, 1, 1), 2.0),
        targets=jnp.ones((15, 1)),
        noise=jnp.zeros((COLUMN, 5, 1)),
    )
    noise = jnp.full((COLUMN, 5), 9)
    loss, _ = gradient(objective, found, words, estimates, noise, 0)
    np.testing.assert_allclose(loss, np.log1p(np.exp(-2)) + 5 * np.log(2), rtol=1e-6)


def test_frequent_words_are_read_with_the_chance_of_word2vec():
    counts = np.array([0, 900, 90, 9, 1])
    found = NegativeSampling(subsample=0.01).chances(counts)
    for count, chance in zip(counts[1:], found[1:], strict=True):
        share = count / 1000
        assert chance == pytest.approx(min(1, (0.01 / share) ** 0.5 + 0.01 / share))
    assert found[1] < found[2] < found[3] == 1


@pytest.mark.parametrize(
    "keywords, message",
    [
        ({"context": "right"}, "context 'left', 'shrunk', 'full', not 'right'"),
        ({"combine": "max"}, "'mean' or 'sum', not 'max'"),
        ({"window": 0}, "counts must be at least 1"),
        ({"sample": 0}, "'sample': 0"),
        ({"weight": -1.0}, "weight -1.0"),
        ({"head_learning_rate": 0.0}, "head_learning_rate 0.0: give a number above 0"),
        ({"subsample": -1.0}, "subsample -1.0"),
    ],
)
def test_bad_keywords_are_refused(keywords, message):
    with pytest.raises(UserError, match=message):
        NegativeSampling(**keywords)
