import itertools

import numpy as np

from docjax.data.duplicates import near_duplicates


def shuffle(text, changes, generator):
    """The text with some words replaced."""
    words = text.split()
    for place in generator.choice(len(words), changes, replace=False):
        words[place] = f"new{'abcdefghij'[place % 10]}"
    return " ".join(words)


def texts(count, generator, length=200):
    letters = np.array(list("abcdefghijklmnop"))
    vocabulary = ["".join(generator.choice(letters, 5)) for _ in range(500)]
    return [" ".join(generator.choice(vocabulary, length)) for _ in range(count)]


def runs(text):
    words = text.lower().split()
    return set(zip(words, words[1:], words[2:]))


def test_case_numbers_and_punctuation_do_not_tell_texts_apart():
    assert near_duplicates(["A big, red dog (1).", "a BIG red; dog!", "A cat."]) == [
        None,
        0,
        None,
    ]


def test_the_overlap_of_three_word_runs_decides():
    generator = np.random.default_rng(0)
    originals = texts(30, generator)
    changed = [
        shuffle(text, 3 * (i % 20), generator) for i, text in enumerate(originals)
    ]
    everything = originals + changed
    found = near_duplicates(everything, similarity=0.7)
    assert found[:30] == [None] * 30
    for i, text in enumerate(changed):
        a, b = runs(originals[i]), runs(text)
        overlap = len(a & b) / len(a | b)
        if overlap >= 0.8:
            assert found[30 + i] == i
        if overlap < 0.7:
            assert found[30 + i] is None
    assert 5 < sum(one is not None for one in found) < 25


def test_what_repeats_a_repetition_points_to_the_first():
    assert near_duplicates(["one two three four"] * 4) == [None, 0, 0, 0]


def test_texts_shorter_than_a_run_are_compared_too():
    assert near_duplicates(["", "word", "word", "", "other"]) == [
        None,
        None,
        1,
        None,
        None,
    ]


def test_texts_that_are_kept_do_not_repeat_each_other():
    generator = np.random.default_rng(1)
    everything = texts(20, generator) * 2
    found = near_duplicates(everything)
    kept = [text for text, number in zip(everything, found) if number is None]
    for a, b in itertools.combinations(map(runs, kept), 2):
        assert len(a & b) < 0.7 * len(a | b)
