"""TREC topics: number and title."""

import pytest

from docjax.data.records import full_text
from docjax.data.sources.topics import topics
from docjax.errors import UserError

TOPICS = """
<top>

<num> Number: 301
<title> International Organized Crime

<desc> Description:
Not the title.
</top>
<top>
<num>7</num>
<title>
dogs &amp; <b>cats</b> and
more</title>
</top>
"""


def test_number_and_title_are_read(tmp_path):
    (tmp_path / "a.txt").write_text(TOPICS)
    found = {each.id: full_text(each) for each in topics(str(tmp_path / "a.txt"))}
    assert found == {
        "301": "International Organized Crime",
        "7": "dogs & <b>cats</b> and\nmore",
    }


def test_a_topic_of_another_form_is_one_line(tmp_path):
    (tmp_path / "a.txt").write_text(TOPICS.replace("<num>7</num>", "7"))
    with pytest.raises(UserError, match="1 of 2 topics have the form <top> <num>"):
        list(topics(str(tmp_path / "a.txt")))
    (tmp_path / "a.txt").write_text("301 crime")
    with pytest.raises(UserError, match="0 of 0 topics"):
        list(topics(str(tmp_path / "a.txt")))
    (tmp_path / "a.txt").write_text(TOPICS.replace("7<", "301<"))
    with pytest.raises(UserError, match="a.txt, topic 2: duplicate id"):
        list(topics(str(tmp_path / "a.txt")))
