from docjax.data.docstrings import parse
from docjax.types import Section

NUMPYDOC = """
    mean(a, axis=None)

    Compute the mean along
    an axis.

    The mean is the sum over the axis
    divided by the number of elements.

    Parameters
    ----------
    a : array_like
        Numbers.

    See Also
    --------
    median, average : Other means.
    scipy.stats.gmean : The geometric mean.
        With a longer description, harmonic or not.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> np.mean([1, 2])
    1.5
    """


def test_numpydoc_headings_begin_sections():
    found = parse(NUMPYDOC)
    assert found.summary == "Compute the mean along an axis."
    assert found.sections[0] == Section(
        "", "The mean is the sum over the axis\ndivided by the number of elements."
    )
    assert found.sections[1] == Section("Parameters", "a : array_like\n    Numbers.")
    assert [one.heading for one in found.sections[2:]] == ["See Also", "Examples"]


def test_names_of_see_also_are_found_without_their_descriptions():
    assert parse(NUMPYDOC).see_also == ("median", "average", "scipy.stats.gmean")


def test_imports_in_examples_are_left_out_since_they_name_the_package():
    assert parse(NUMPYDOC).sections[-1].text == ">>> np.mean([1, 2])\n1.5"


def test_headings_with_a_colon_begin_sections_too():
    found = parse(
        """Adds two arrays.

        Args:
          x: the first array.
          y: the second.
        Note: this is no heading.

        Returns:
          The sum.

        See also:
          - :func:`jax.numpy.subtract`: the difference.
          - :class:`~jax.Array`
        """
    )
    text = "  x: the first array.\n  y: the second.\nNote: this is no heading."
    assert found.sections[0] == Section("Args", text.strip())
    assert [one.heading for one in found.sections] == ["Args", "Returns", "See also"]
    assert found.see_also == ("jax.numpy.subtract", "jax.Array")


def test_a_long_first_paragraph_gives_its_first_sentence_as_summary():
    rest = " ".join(["More words follow here."] * 12)
    found = parse(f"The first sentence, e.g. this. {rest}\n\nThe end.")
    assert found.summary == "The first sentence, e.g. this."
    assert found.sections[0].text == f"{rest}\n\nThe end."


def test_signatures_of_compiled_functions_are_left_out():
    found = parse("copy($self, /)\n--\n\nReturn a copy.\n\nWith text.")
    assert found.summary == "Return a copy."
    found = parse("add(x1, x2, /, out=(None,), **kwargs[, signature])\n\nAdd.\n\nText.")
    assert (found.summary, found.sections[0].text) == ("Add.", "Text.")


def test_placeholders_of_templates_are_left_out():
    assert parse("Do it.\n\nA %(adjective)s text. $PARAMS").sections[0].text == (
        "A  text."
    )


def test_words_count_headings_and_texts_but_not_the_summary():
    assert parse("One two.\n\nNotes\n-----\nthree four").words == 3


def test_an_empty_docstring_has_nothing():
    assert parse("\n  ") == ("", (), ())


def test_rows_of_tables_are_no_headings():
    text = """Sums.

    Notes
    -----
    With two keys:

    | 8x128 | 8x128 |
    -----------------
    | 1     | 2     |
    """
    found = parse(text)
    assert [section.heading for section in found.sections] == ["Notes"]
    assert "| 1     | 2     |" in found.sections[0].text
