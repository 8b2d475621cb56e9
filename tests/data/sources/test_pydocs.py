import os
import re
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from docjax.data.records import full_text
from docjax.data.sources.pydocs import PACKAGES, pydocs, stamp
from docjax.errors import UserError

REPORT = Counter()


@pytest.fixture(scope="module")
def corpus():
    """Two of the packages: a third of all words."""
    return list(pydocs(("numpy", "scipy"), report=REPORT))


def test_there_are_many_documents_of_a_hundred_words_and_more(corpus):
    assert len(corpus) >= 1500
    assert sum(len(full_text(one).split()) for one in corpus) >= 500_000
    assert min(len(full_text(one).split()) for one in corpus) >= 100


def test_ids_are_sorted_and_used_once(corpus):
    ids = [one.id for one in corpus]
    assert ids == sorted(set(ids))
    assert not any(part.startswith("_") for name in ids for part in name.split("."))


def test_texts_are_used_once(corpus):
    texts = Counter(
        " ".join(re.findall("[a-z]+", " ".join(s.text for s in one.sections).lower()))
        for one in corpus
    )
    assert max(texts.values()) == 1


def test_labels_are_sub_packages_with_enough_documents(corpus):
    counts = Counter(one.label for one in corpus)
    assert 10 <= len(counts) <= 30
    assert min(counts.values()) >= 40
    assert {"scipy.stats", "scipy.signal", "numpy.ma"} <= set(counts)
    assert all(one.id.startswith(one.label.partition(".")[0]) for one in corpus)


def test_a_fifth_of_every_label_is_held_out(corpus):
    assert {one.split for one in corpus} == {"train", "test"}
    for label in {one.label for one in corpus}:
        own = [one.split for one in corpus if one.label == label]
        assert 0.18 < own.count("test") / len(own) < 0.22


def test_the_title_is_the_bare_name_and_the_summary_only_the_query(corpus):
    known = {one.id: one for one in corpus}
    one = known["scipy.stats.bartlett"]
    assert one.title == "bartlett"
    assert one.label == "scipy.stats"
    assert one.query == "Perform Bartlett's test for equal variances."
    assert one.query not in full_text(one)
    headings = [section.heading for section in one.sections]
    assert {"Parameters", "Returns", "See Also", "Examples"} <= set(headings)
    assert sum(one.query is not None for one in corpus) > 0.95 * len(corpus)
    assert not any("." in one.title for one in corpus)


def test_see_also_names_are_links_to_documents(corpus):
    ids = {one.id for one in corpus}
    assert sum(bool(one.links) for one in corpus) > 800
    for one in corpus:
        assert one.id not in one.links
        assert ids.issuperset(one.links)
    known = {one.id: one for one in corpus}
    links = known["scipy.stats.bartlett"].links
    assert "scipy.stats.levene" in links


def test_compiled_functions_are_there_by_their_added_docstrings(corpus):
    labels = {one.id: one.label for one in corpus}
    assert labels["scipy.special.gdtr"] == "scipy.special"
    assert labels["numpy.multiarray.ndarray.partition"] == "numpy"


def test_what_is_left_out_is_counted(corpus):
    assert REPORT["documents"] == len(corpus)
    assert REPORT["too short"] > 1000
    assert REPORT["near duplicate"] > 100


def digest(seed):
    code = """if True:
        import hashlib, sys, warnings
        warnings.simplefilter("error")
        from docjax.data.sources.pydocs import pydocs
        text = repr(list(pydocs(packages=("optax",))))
        print(hashlib.sha256(text.encode()).hexdigest())
        print(sorted({"jax", "flax", "optax", "scipy"} & set(sys.modules)))
    """
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )


def test_every_process_finds_the_same_documents():
    first, second = digest(1), digest(2)
    assert first.stdout == second.stdout
    assert len(first.stdout.splitlines()[0]) == 64
    assert first.stderr == ""


def write(folder, name, text):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))


@pytest.fixture
def package(tmp_path, monkeypatch):
    words = " ".join(f"word{i} w{i}x" for i in range(60))
    write(tmp_path, "toys/__init__.py", "raise SystemExit('this was run')")
    write(
        tmp_path,
        "toys/_bricks.py",
        f'''
        class Brick:
            """A brick.

            {words} brick
            """
            def _hidden(self):
                """Hidden.

                {words} hidden hidden hidden
                """
            @property
            def weight(self):
                """Weight.

                {words[::-1]}
                """
        def _hidden():
            """Hidden.

            {words} hidden
            """
        try:
            def built():
                """Built.

                {words.replace("w", "v")}
                """
        except ImportError:
            pass
        ''',
    )
    write(tmp_path, "toys/broken.py", f'def f(:\n    """{words}"""')
    write(tmp_path, "toys/tests/test_a.py", f'def f():\n    """A.\n\n    {words} f"""')
    monkeypatch.syspath_prepend(tmp_path)


def test_public_objects_are_found_without_running_anything(package):
    report = Counter()
    found = list(pydocs(packages=("toys",), report=report))
    names = ["toys.Brick", "toys.Brick.weight", "toys.built"]
    assert [one.id for one in found] == names
    assert {one.label for one in found} == {"toys"}
    assert report["unreadable file"] == 1


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(UserError, match="'no_such_package' is not installed"):
        pydocs(packages=("no_such_package",))


def test_a_corpus_without_a_document_is_refused(package):
    with pytest.raises(UserError, match="empty corpus"):
        pydocs(packages=("toys",), words=10_000)


def test_the_stamp_names_the_versions():
    assert [one.split()[0] for one in stamp()] == list(PACKAGES)
