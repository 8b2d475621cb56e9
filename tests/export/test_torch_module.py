"""The code in exported folders reads documents and builds graphs as docjax does."""

import importlib
import inspect
import sys

import numpy as np
import pytest

from docjax.data import graphs, segments, units
from docjax.data.documents import BadDocument
from docjax.data.documents import parse
from docjax.data.prompts import Prompted
from docjax.data.tokenizer import load_tokenizer, train_tokenizer
from docjax.data.units import Cut
from docjax.encoders import (
    chunks,
    first_segments,
    from_mean,
    graph_attention,
    pooling,
)
from docjax.export.libraries import CODE, write_code
from docjax.parts import named


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
BAD = [
    *("", " \n", 7, None, ("a", "b"), {}, {"text": ""}, {"sections": []}, {"text": 3}),
    *({"title": "T"}, {"title": 3, "text": "a"}, {"text": "a", "sections": [{}]}),
    *({"sections": [{"heading": "H"}]}, {"sections": ["a"]}, {"sections": "a"}),
    *({"text": "a", "edges": [[0, 1]]}, {"text": "a", "edges": 1}, {"text": "\ud800"}),
]


UNITS = (
    *(units.Passages(), units.Passages(7)),
    *(units.Sentences(), units.Whole(), units.WholeSections()),
)
CUTTERS = (
    segments.OneEach(),
    segments.Joined(),
    segments.Joined(across_sections=False),
    segments.Chunks(),
)


def in_folder(part) -> dict:
    """A part as docjax.json has it for the code in the folder."""
    return named.node(part, lambda kind: kind.exported_as)


@pytest.mark.parametrize("item", RECORDS)
@pytest.mark.parametrize("cutter", UNITS, ids=repr)
def test_documents_are_cut_into_the_same_units(module, item, cutter):
    expected = cutter(parse({"id": "d"} | item, "here"))
    cut = module.built(in_folder(cutter), module.whole)
    found = list(cut(module.read_document(item)))
    assert found == [(one.text, one.section) for one in expected] != []


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["Some words of a title. And more text of it."] * 9, 300)


@pytest.mark.parametrize("item", RECORDS)
@pytest.mark.parametrize("limit", [5, 24])
@pytest.mark.parametrize("cutter", CUTTERS, ids=repr)
@pytest.mark.parametrize("unit", UNITS[2:], ids=repr)
@pytest.mark.parametrize("prompt", [None, "a: "])
def test_segments_have_the_same_tokens_and_places(
    module, tokenizer, item, limit, cutter, unit, prompt
):
    """Also with units that are longer than a segment, and with a prompt."""
    same_segments(module, tokenizer, item, limit, cutter, unit, prompt)


@pytest.mark.parametrize("cutter", CUTTERS, ids=repr)
@pytest.mark.parametrize("unit", UNITS[2:], ids=repr)
@pytest.mark.parametrize(
    "texts", [["A.\n\n\u200b", "\ufeff", "B c."], ["\u200b", "\ufeff\n\n\u200b"]]
)
def test_texts_that_wordpiece_removes_are_left_out_alike(
    module, minilm, texts, cutter, unit
):
    item = {"sections": [{"text": text} for text in texts]}
    same_segments(module, load_tokenizer(minilm), item, 24, cutter, unit, None)


def same_segments(module, tokenizer, item, limit, cutter, unit, prompt):
    document = parse({"id": "d"} | item, "here")
    limit += 4 if prompt else 0
    prompted = Prompted(tokenizer, prompt) if prompt else tokenizer
    (expected,) = Cut(unit, cutter, prompted, limit).documents([document])
    model = module.LongDocuments.__new__(module.LongDocuments)
    vars(model).update(
        tokenizer=tokenizer.backend,
        prefix=tokenizer.prefix.tolist(),
        suffix=tokenizer.suffix.tolist(),
        limits={"segment_tokens": limit},
    )
    cut = module.built(in_folder(cutter), module.one_each)
    into_units = module.built(in_folder(unit), module.whole)
    found = module.LongDocuments._segments(
        model, module.read_document(item), into_units, cut, prompt
    )
    rows = np.split(expected.tokens, expected.offsets[1:-1])
    assert [ids for ids, _ in found] == [row.tolist() for row in rows]
    assert [list(place) for _, place in found] == expected.places.tolist()


@pytest.mark.parametrize("item", BAD)
def test_what_docjax_refuses_is_refused_for_the_same_reason(module, item):
    record = {"text": item} if isinstance(item, str) else item
    with pytest.raises(BadDocument) as expected:
        parse({"id": "d"} | record if isinstance(record, dict) else record, "here")
    with pytest.raises(ValueError, match="^document ") as error:
        module.read_document(item)
    assert f": {expected.value.reason}: " in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "home, file, kind",
    [
        (units, "docjax_pieces", inspect.isclass),
        (segments, "docjax_cuts", inspect.isclass),
        (graphs, "docjax_neighbours", inspect.isfunction),
        *(
            (encoders, "docjax_document_encoders", inspect.isclass)
            for encoders in (
                pooling,
                first_segments,
                from_mean,
                graph_attention,
                chunks,
            )
        ),
    ],
)
def test_what_a_part_names_is_in_the_folder(module, home, file, kind):
    there = importlib.import_module(f"exported_code.{file}")
    declared = {
        name: vars(part)["exported_as"]
        for name, part in vars(home).items()
        if kind(part) and part.__module__ == home.__name__
        if "exported_as" in vars(part)
    }
    assert declared
    for name, form in declared.items():
        assert vars(there)[form].__module__ == there.__name__, name


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
    graph = module.built({"fn": name} | keywords, module.full)
    np.testing.assert_array_equal(graph(sections, edges.tolist()), expected)
