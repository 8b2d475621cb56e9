"""The page about a run: valid, self-contained, escaped, complete."""

import base64
import dataclasses
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import docjax
from docjax.explain import figures
from docjax.explain.run_page import (
    Attention,
    Cell,
    Cluster,
    Export,
    FirstScreen,
    Named,
    Neighbours,
    Query,
    Report,
    Retrieval,
    Shown,
    versions,
    write,
)
from docjax.types import Drawing, Section, Table

ATTACK = "<script>alert('x')</script><img src=x onerror=alert(1)> & \"quotes\""
VOID = {"meta", "img", "wbr", "br"}


class Page(HTMLParser):
    """The elements of a page; fails on a tag that is not closed in order."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str, key: str | None = None) -> list:
        return [a[key] if key else a for t, a in self.elements if t == tag]

    def text(self) -> str:
        return " ".join(t for tag, t in self.texts if tag not in ("script", "style"))


def attention() -> Attention:
    weights = np.random.default_rng(0).random((4, 4)).astype(np.float32)
    weights /= weights.sum(1, keepdims=True)
    weights[0, 3] = 1e-9  # small, but an edge
    section = np.where(np.eye(4, dtype=bool), 1, 0).astype(np.float32)
    passages = [Section("Intro", "one"), Section(ATTACK, ATTACK), Section("", "three")]
    return Attention(
        ATTACK, passages, {"full graph": weights, "section graph": section}
    )


def first_screen() -> FirstScreen:
    own = {"accuracy": Cell(".971", ".964–.978", True), "NMI": Cell(".54", ".5–.6")}
    return FirstScreen(
        finding=f"On 9 documents {ATTACK} wins.",
        advice="Take this model.",
        judged="The run keeps its start",
        reason="the neighbours agree",
        rows={"the trained model": own, ATTACK: {"accuracy": Cell(".9", ".8–.95")}},
        meanings=["accuracy: right labels."],
        notes=[f"{ATTACK}: words."],
    )


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    """A run directory with a report of everything."""
    run_dir = tmp_path_factory.mktemp("runs") / "a run #1"
    lines = [{"step": i, "train/loss": 2.0 - i} for i in range(2)]
    curves = figures.curves(run_dir / "figures/curves", {"demo": lines}, ["train/loss"])
    chosen = attention()
    bars = figures.document_attention(
        run_dir / "figures/bars", {n: w[0] for n, w in chosen.weights.items()}
    )
    heat = figures.node_attention(run_dir / "figures/heat", chosen.weights)
    report = Report(
        name=ATTACK,
        config={"seed": 0, "batch": 128, "objective": {"fn": "docjax.a.infonce"}}
        | {"note": ATTACK},
        first=first_screen(),
        clusters=[Cluster(12, ATTACK, 0.25, ["oil", ATTACK], [ATTACK])],
        neighbours=[
            Neighbours(
                Named(ATTACK, "a"),
                {"after training": [Named("near", "a"), Named("far", "")]},
            )
        ],
        scores={
            "before training": {"eval/clustering/nmi": 0.1, "eval/other/f1": 0.25},
            "after training": {"eval/clustering/nmi": np.float32(0.5)},
            "TF-IDF": {"eval/clustering/nmi": float("nan")},
        },
        data={"train": {"documents": 12345, "padding": 0.04321, "source": ATTACK}},
        curves=curves,
        attention=[dataclasses.replace(chosen, bars=bars, heat=heat)],
        export=Export(
            folder=ATTACK,
            differences={"docjax": 0.0, "transformers": 2e-7, ATTACK: 3e-6},
            documents=17,
            words=(1, 5000),
            files={"model.safetensors": 168080, "docjax_module.py": 10},
        ),
        commands={"This run was made with": f"python -m docjax.main {ATTACK}"},
    )
    assert write(run_dir, report) == run_dir / "report/index.html"
    return run_dir


def read(run_dir: Path) -> Page:
    return Page((run_dir / "report/index.html").read_text(encoding="utf-8"))


def test_the_page_needs_nothing_but_itself(run_dir):
    html = (run_dir / "report/index.html").read_text(encoding="utf-8")
    assert "http:" not in html and "https:" not in html
    found = read(run_dir)
    assert not found.all("link") and not found.all("iframe")
    assert all(
        src.startswith("data:image/png;base64,") for src in found.all("img", "src")
    )
    assert all("src" not in attributes for attributes in found.all("script"))
    assert "default-src 'none'" in found.all("meta")[2]["content"]


def test_an_export_is_shown_with_its_differences_and_how_to_load_it(run_dir, tmp_path):
    text = read(run_dir).text()
    for words in ("17 documents of 1 to 5,000 words", "2.0e-07", "3.0e-06", "168,080"):
        assert words in text, words
    assert "AutoModel.from_pretrained(" in text and "trust_remote_code=True" in text
    write(tmp_path, Report(name="x", config={}))
    assert "export" not in read(tmp_path).all("section", "id")


def test_images_and_links_lead_to_the_figures_of_the_run(run_dir):
    found = read(run_dir)
    images = [base64.b64decode(s.partition(",")[2]) for s in found.all("img", "src")]
    files = [run_dir / f"figures/{name}.png" for name in ("bars", "heat", "curves")]
    assert images == [file.read_bytes() for file in files]
    links = [href for href in found.all("a", "href") if not href.startswith("#")]
    assert len(links) == 6
    assert all((run_dir / "report" / href).is_file() for href in links)
    anchors = {href[1:] for href in found.all("a", "href") if href.startswith("#")}
    assert anchors == {a["id"] for a in found.all("section")}


def test_text_of_documents_configs_and_commands_stays_text(run_dir):
    found = read(run_dir)
    assert len(found.all("script")) == 2  # the weights and the page's own
    assert all(set(a) <= {"alt", "src"} for a in found.all("img"))
    # name (twice), finding, system, its note; cluster (thrice); document with
    # neighbours; source, document, heading, passage, folder of the export (thrice),
    # command; the config quotes it as JSON
    assert found.text().count(ATTACK) == 17
    assert json.dumps(ATTACK)[1:-1] in found.text()


def test_scores_and_counts_are_shown(run_dir):
    text = read(run_dir).text()
    for shown in ("12,345", "0.04321", "0.100", "0.500", "0.250", "not finite", "–"):
        assert shown in text


def test_the_first_screen_answers_and_marks_what_is_beyond_noise(run_dir):
    html = (run_dir / "report/index.html").read_text(encoding="utf-8")
    text = " ".join(read(run_dir).text().split())
    begin = text.index("In short On 9 documents")
    assert text[begin:].index("Take this model.") < text[begin:].index("its start")
    assert "The run keeps its start. How that was judged The neighbours agree." in text
    assert html.count('class="score best"') == 1
    assert '<span class="score best">.971</span>' in html and ".964–.978" in text
    assert "Accuracy: right labels." in text


def test_clusters_and_neighbours_have_words_titles_and_labels(run_dir):
    found, text = read(run_dir), " ".join(read(run_dir).text().split())
    assert f"12 documents, mixed: {ATTACK} 25 % oil, {ATTACK}" in text
    assert f"{ATTACK} a after training near a far" in text
    marked = [a for a in found.all("li") if a.get("class") == "relevant"]
    assert len(marked) == 1  # the neighbour of the same label


def test_only_sections_with_content_are_shown(tmp_path):
    page = write(tmp_path, Report(name="bare", config={})).read_text("utf-8")
    found = read(tmp_path)
    assert found.all("section", "id") == ["settings"] and not found.all("img")
    assert docjax.__version__ in found.text()
    assert "missing" not in page.partition("<body>")[2]


def test_searches_have_their_tables_and_name_their_systems(tmp_path):
    table = Table("Systems", {"bm25": {"p@5": 0.25}}, note="Means.", corner="system")
    queries = [
        Query("a query", {"mine": 0.5, "other": 0.25}, {"mine": [], "other": []})
    ]
    retrieval = Retrieval(
        task="retrieval",
        tables=[Shown(table)],
        curves=None,
        metric="map",
        systems=("mine", "other"),
        searches=queries,
        won=queries,
        lost=(),
    )
    write(tmp_path, Report("a", config={}, retrieval=[retrieval]))
    text = " ".join(read(tmp_path).text().split())
    for words in (
        "0.25 Means.",
        "Numbers are map.",
        "Won against other The queries on which mine gains most. a query · mine 0.50",
    ):
        assert words in text, words
    assert "Lost against" not in text and "Systems" not in text


def test_tables_of_tasks_are_drawn_whatever_they_hold(tmp_path):
    rows = {ATTACK: {"a": 0.12345, "b": float("nan")}, "other": {"b": 7.0}}
    drawing = Drawing("bars", "bars", rows, "title", "A caption.", y="value")
    tables = [
        Table(ATTACK, rows, ("b", "a", "none"), ATTACK, ATTACK, 2, drawing),
        Table("Plain", rows),
    ]
    figure = figures.drawing(tmp_path / "figures", drawing)
    report = Report("a", {}, tables=[Shown(tables[0], figure), Shown(tables[1])])
    html = write(tmp_path, report).read_text("utf-8")
    found = read(tmp_path)
    assert found.text().count(ATTACK) == 3  # title, note, corner
    assert ATTACK not in html
    for cell in (
        "<td>0.12</td>",
        "<td>7.00</td>",
        "<td>0.1235</td>",
        "not finite",
        "–",
    ):
        assert cell in html, cell
    assert html.index('scope="col">b<') < html.index('scope="col">a<')
    assert "none" not in [data for _, data in found.texts]
    [image] = found.all("img")
    assert image["alt"] == "A caption." and "analyses" in found.all("section", "id")


def test_maps_of_similar_documents_are_shown_by_kind(tmp_path):
    pictures = {
        kind: figures.node_attention(tmp_path / f"figures/{kind}", {"full": np.eye(2)})
        for kind in ("documents", "sections")
    }
    write(tmp_path, Report(name="run", config={}, maps=pictures))
    found = read(tmp_path)
    images = [base64.b64decode(s.partition(",")[2]) for s in found.all("img", "src")]
    assert images == [picture.read_bytes() for picture in pictures.values()]
    for kind in pictures:
        assert f"Cosines of the {kind} of the first similar pairs" in found.text()


def test_every_node_has_its_bar_its_row_and_its_weights(run_dir):
    found = read(run_dir)
    rows = [a for a in found.all("tr") if "data-node" in a]
    assert [a["data-node"] for a in rows] == ["0", "1", "2", "3"]
    assert len(found.all("i")) == 2 * 4
    weights = json.loads(next(d for tag, d in found.texts if tag == "script"))
    for told, given in zip(weights, attention().weights.values(), strict=True):
        np.testing.assert_allclose(told, given, rtol=1e-3)
    assert f"{attention().weights['full graph'][0, 2]:.4f}" in found.text()
    assert found.text().count("no edge") == 3


def test_a_figure_that_was_deleted_is_said_to_be_missing(tmp_path):
    gone = tmp_path / "figures/tsne.png"
    write(tmp_path, Report(name="run", config={}, tsne=gone))
    found = read(tmp_path)
    assert "tsne.png is missing" in found.text() and not found.all("img")


def test_weights_must_fit_the_passages():
    good = attention()
    with pytest.raises(ValueError, match=r"\(4, 4\) for 2 passages; give \(3, 3\)"):
        Attention("title", good.passages[:2], good.weights)


def test_versions_name_what_decides_the_numbers():
    found = versions()
    assert found["docjax"] == docjax.__version__
    assert {"jax", "flax", "numpy", "scikit-learn", "python"} <= set(found)


def test_hostile_names_of_runs_and_documents_are_shown_as_text(tmp_path):
    name = "a\0b\x07c \ud800 {{ 7 * 7 }} {% raw %} \N{HEBREW LETTER ALEF}"
    chosen = attention()
    page = write(
        tmp_path,
        Report(
            name=name,
            config={"seed": 0, "source": name},
            scores={name: {name: 0.5}},
            data={name: {name: name}},
            attention=[Attention(name, [Section(name, name)] * 3, chosen.weights)],
            words={},
            commands={name: name},
        ),
    )
    shown = name.translate(dict.fromkeys([0, 7, 0xD800], "\N{REPLACEMENT CHARACTER}"))
    # name (twice), source, scores (2), data (3), document, passages (6), command (2);
    # the config quotes it as JSON
    assert page.read_text("utf-8").count(shown) == 17
    assert [a["data-node"] for a in read(tmp_path).all("tr") if a] == list("0123")


def test_a_text_without_words_has_its_row_too(tmp_path):
    chosen = attention()
    empty = Attention("", [Section("", "")] * 3, chosen.weights)
    write(tmp_path, Report(name="", config={}, attention=[empty] * 2))
    assert [a["data-node"] for a in read(tmp_path).all("tr") if a] == list("01230123")


def test_a_report_of_words_lists_their_nearest_ones_in_place_of_attention(tmp_path):
    found = Report("words", {"seed": 0}, words={"<oil>": ["gas", "crude & ore"]})
    html = write(tmp_path, found).read_text("utf-8")
    read = Page(html)
    assert "words" in read.all("section", "id")
    assert "attention" not in read.all("section", "id")
    assert "<oil>" in read.text() and "gas, crude & ore" in read.text()
