"""The code in exported folders cuts documents and builds graphs as docjax does."""

import importlib
import itertools
import sys

import numpy as np
import pytest

from docjax.data import graphs, segments
from docjax.data.documents import parse
from docjax.data.sources.pydocs import pydocs
from docjax.huggingface.export import CODE, write_code


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The module as a folder has it, with no docjax around."""
    folder = tmp_path_factory.mktemp("exported") / "exported_code"
    folder.mkdir()
    (folder / "__init__.py").touch()
    write_code(folder)
    for name in CODE:
        assert "import docjax" not in (folder / name).read_text()
        assert "from docjax" not in (folder / name).read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder.parent))
        yield importlib.import_module("exported_code.docjax_module")
    for name in [name for name in sys.modules if name.startswith("exported_code")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Real texts of 1 to 20,000 words."""
    words = " ".join(s.text for one in pydocs(("optax",)) for s in one.sections)
    pieces = words.split(" ")
    return [" ".join(pieces[:n]) for n in (1, 2, 7, 50, 99, 100, 101, 1000, 20_000)]


RECORDS = [
    {
        "text": "A title\n\nThe text begins with it. It is read once.",
        "title": "A title",
    },
    {"text": "A text. And more of it.", "title": "Another title"},
    {"text": " \n Leading space, Dr. Smith.\n\n- a list\n- of two", "title": None},
    {"title": "Only a title", "sections": []},
    {
        "title": "T",
        "sections": [{"text": "", "heading": "Empty"}, {"text": "One. Two."}],
    },
    {
        "sections": [
            {"heading": f"H{i}", "text": "Some words. " * 30} for i in range(4)
        ],
        "edges": [[0, 2], [3, 1]],
    },
]
CUTS = {
    "passages": [{}, {"words": 5}],
    "sentences_of": [{}],
    "whole": [{}],
}


@pytest.mark.parametrize("name", CUTS)
def test_documents_are_cut_into_the_same_segments(module, texts, name):
    assert set(CUTS) == {path.rpartition(".")[2] for path in module.SEGMENTS}
    count = 0
    for item, keywords in itertools.product([*texts, *RECORDS], CUTS[name]):
        record = {"id": "d"} | ({"text": item} if isinstance(item, str) else item)
        expected = getattr(segments, name)(parse(record, "here"), **keywords)
        node = {"fn": f"docjax.data.segments.{name}"} | keywords
        cut = module.built(node, module.SEGMENTS)
        found = cut(module.read_document(item))
        assert found == [(one.text, one.section) for one in expected]
        count += len(found)
    assert count >= len(texts) + len(RECORDS)


@pytest.mark.parametrize(
    "name, keywords",
    [
        ("full", {}),
        ("section", {}),
        ("section", {"first_passage_clique": False}),
        ("user_edges", {}),
    ],
)
@pytest.mark.parametrize("sections", [[0], [0, 0, 0], [0, 0, 1, 3, 3], [0, 1, 0, 2]])
def test_graphs_have_the_same_edges(module, name, keywords, sections):
    edges = np.array([[0, 2], [3, 1]])
    built = getattr(graphs, name)(len(sections), np.array(sections), edges, **keywords)
    expected = graphs.adjacency(built, len(sections) + 1)
    graph = module.built({"fn": f"docjax.data.graphs.{name}"} | keywords, module.GRAPHS)
    np.testing.assert_array_equal(graph(sections, edges.tolist()).numpy(), expected)


def test_a_part_without_a_torch_form_is_named(module):
    with pytest.raises(ValueError, match=r"mine\.cut has no PyTorch form.*passages"):
        module.built({"fn": "mine.cut"}, module.SEGMENTS)


@pytest.mark.parametrize("item", ["", " \n", {"text": ""}, {"sections": []}])
def test_a_document_without_words_is_refused(module, item):
    with pytest.raises(ValueError, match="no words"):
        module.read_document(item)
