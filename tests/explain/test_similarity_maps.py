"""Heat maps and JSON of several documents, from a model to the files."""

import csv
import dataclasses
import json

import numpy as np
import pytest

import docjax
from docjax import cli
from docjax.data.segments import Chunks
from docjax.errors import UserError
from docjax.explain import similarity_maps
from docjax.model import compare

PARTS = ("orbit rocket moon. ", "bread butter oven. ", "violin piano opera. ")


def document(name: str, *numbers: int) -> dict:
    sections = [{"heading": f"{name}{n}", "text": PARTS[n] * 4} for n in numbers]
    return {"id": name, "title": name, "sections": sections}


DOCUMENTS = [document("a", 0, 1), document("b", 0, 2), document("c", 2)]


@pytest.fixture(scope="module")
def model(tiny):
    return docjax.load(tiny)


@pytest.fixture(scope="module")
def found(model):
    return model.similarities(DOCUMENTS)


def test_the_cosines_are_those_of_each_pair(model, found):
    for i, j in ((0, 1), (2, 0)):
        pair = model.compare(DOCUMENTS[i], DOCUMENTS[j])
        assert found.documents[i, j] == pytest.approx(pair.similarity, abs=1e-6)
    pair = model.compare(DOCUMENTS[0], DOCUMENTS[1])
    np.testing.assert_allclose(found.sections[:2, 2:4], pair.sections, atol=1e-5)
    a, b = (len(side.segments) for side in found.sides[:2])
    block = found.segments[:a, a : a + b]
    np.testing.assert_allclose(block, pair.segments, atol=1e-5)
    for part in (found.documents, found.sections, found.segments):
        np.testing.assert_allclose(np.diag(part), 1, atol=1e-5)


def test_files_hold_every_row_with_its_text(found, tmp_path):
    maps = similarity_maps.write(tmp_path / "maps", found)
    assert set(maps) == {"documents", "sections", "segments"}
    told = json.loads((tmp_path / "maps/similarities.json").read_text())
    assert [row["document"] for row in told["documents"]["rows"]] == ["a", "b", "c"]
    assert [row["section"] for row in told["sections"]["rows"]] == [
        *("a0", "a1", "b0", "b2", "c2")
    ]
    for kind, values in told.items():
        expected = getattr(found, kind)
        assert len(values["rows"]) == len(expected)
        np.testing.assert_allclose(values["cosines"], expected, atol=6e-5)
        assert maps[kind].stat().st_size > 5000
    with maps["sections"].with_suffix(".csv").open() as stream:
        [_, *names], *rows = csv.reader(stream)
    assert names == [row[0] for row in rows] and names[:2] == ["0 a0", "1 a1"]
    cosines = np.array([row[1:] for row in rows], float)
    np.testing.assert_allclose(cosines, found.sections, atol=6e-5)


def test_a_model_with_long_segments_has_a_matrix_of_its_own_chunks(model, tmp_path):
    assert model.similarities(DOCUMENTS).chunks is None  # a document is one segment
    limits = model.limits._replace(segment_tokens=14)
    chunked = dataclasses.replace(model, segments=Chunks(), limits=limits)
    found = chunked.similarities(DOCUMENTS)
    vectors = [pair[1] for pair in chunked.encode_with_passages(DOCUMENTS, {})]
    assert len(found.chunks) == sum(map(len, vectors)) != len(found.segments)
    expected = compare.cosines(*(np.concatenate(vectors),) * 2)
    np.testing.assert_allclose(found.chunks, expected, atol=1e-5)
    maps = similarity_maps.write(tmp_path, found)
    assert set(maps) == {"documents", "sections", "segments", "chunks"}
    told = json.loads((tmp_path / "similarities.json").read_text())["chunks"]
    assert len(told["rows"]) == len(told["cosines"]) == len(found.chunks)
    assert PARTS[0][:12] in told["rows"][0]["text"]


def test_documents_of_one_section_have_no_map_of_sections(model, tmp_path):
    texts = [PARTS[0] * 3, PARTS[1] * 3]
    maps = similarity_maps.write(tmp_path / "maps", model.similarities(texts))
    assert set(maps) == {"documents", "segments"}


def test_the_command_writes_the_maps(tiny, tmp_path, capsys):
    path = tmp_path / "papers.jsonl"
    path.write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    arguments = ["similarities", str(tiny), str(path), "--output", str(tmp_path / "m")]
    assert cli.main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["documents"], told["sections"], len(told["maps"])) == (3, 5, 3)
    (tmp_path / "file").write_text("")
    arguments[-1] = str(tmp_path / "file")
    assert cli.main(arguments) == 2
    assert "--output" in capsys.readouterr().err


def test_a_single_document_and_too_many_passages_are_one_line(model, monkeypatch):
    with pytest.raises(UserError, match="1 documents with .* at least 2 documents"):
        model.similarities(DOCUMENTS[:1])
    monkeypatch.setattr("docjax.model.compare.PAIRS", 16)
    with pytest.raises(UserError, match="at most 4 passages together"):
        model.similarities(DOCUMENTS)
