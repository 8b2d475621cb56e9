"""Documents with late topics: what the first 512 tokens show, and the pairs."""

from benchmarks import colde_late_topics as late


def test_the_topic_stands_only_in_the_last_two_sections():
    made = late.corpus(0, 240)
    words = lambda name, parts: {
        word.strip(".")
        for document in made.documents
        for section in document.sections[parts]
        if made.topics[document.id] == name
        for word in section.text.split()
    }
    for topic in range(late.TOPICS):
        before, after = (words(topic, part) for part in (slice(2), slice(2, 4)))
        assert len(after - before) == late.TOPIC_WORDS
        assert not words((topic + 1) % late.TOPICS, slice(2, 4)) & (after - before)
    counts = [sum(len(s.text.split()) for s in d.sections[:2]) for d in made.documents]
    assert min(counts) > 512


def test_half_of_the_pairs_are_similar_and_splits_share_no_document():
    made = late.corpus(0, 240)
    seen = set()
    for pairs in made.pairs.values():
        assert sum(pair.similar for pair in pairs) * 2 == len(pairs)
        for a, b, similar in pairs:
            assert (made.topics[a] == made.topics[b]) == similar
        names = {name for pair in pairs for name in pair[:2]}
        assert not names & seen
        seen |= names


def test_shuffled_documents_have_the_same_sections():
    made = late.corpus(0, 240)
    again = late.shuffled(made.documents, 1)
    both = list(zip(made.documents, again, strict=True))
    assert all(set(a.sections) == set(b.sections) for a, b in both)
    assert sum(a.sections != b.sections for a, b in both) > len(both) / 2
