"""What the figures show: the CSV beside each PNG, and the drawing itself."""

import csv
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from docjax.errors import UserError
from docjax.explain import figures, style

LINES = [
    {"step": 0, "train/loss": 7.5, "eval/clustering/nmi": 0.1},
    {"step": 10, "train/loss": 3.25, "train/in_batch_accuracy": 0.5},
    {"step": 20, "train/loss": None, "eval/clustering/nmi": 0.4},
]


@pytest.fixture
def drawn(monkeypatch) -> list[Figure]:
    """The figures that are saved during the test."""
    saved = []
    original = style.save

    def save(figure, *arguments):
        saved.append(figure)
        return original(figure, *arguments)

    monkeypatch.setattr(style, "save", save)
    return saved


def rows(png: Path) -> list[dict[str, str]]:
    assert imread(png).std() > 0  # a picture that is not blank
    with png.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def attention(nodes: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).random((nodes, nodes)).astype(np.float32)
    return weights / weights.sum(1, keepdims=True)


def test_curves_draw_what_each_run_logged(tmp_path, drawn):
    runs = {"with": LINES, "without": [{"step": 0, "train/loss": 8.0}]}
    metrics = ["train/loss", "eval/clustering/nmi", "eval/matching/f1"]
    png = figures.curves(tmp_path / "figures/curves", runs, metrics)
    assert png == tmp_path / "figures/curves.png"
    table = {(r["metric"], r["run"], r["step"]): float(r["value"]) for r in rows(png)}
    assert table == {
        ("train/loss", "with", "0"): 7.5,
        ("train/loss", "with", "10"): 3.25,
        ("train/loss", "without", "0"): 8.0,
        ("eval/clustering/nmi", "with", "0"): 0.1,
        ("eval/clustering/nmi", "with", "20"): 0.4,
    }
    loss, nmi = drawn[0].axes  # no panel for a metric that no run has
    assert (loss.get_title(), nmi.get_title()) == tuple(metrics[:2])
    np.testing.assert_array_equal(loss.lines[0].get_xydata(), [[0, 7.5], [10, 3.25]])
    texts = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert texts == ["with", "without"]


def test_curves_of_nothing_name_what_was_asked(tmp_path):
    with pytest.raises(UserError, match="demo logged none of eval/x"):
        figures.curves(tmp_path / "curves", {"demo": LINES}, ["eval/x"])
    assert not list(tmp_path.iterdir())


def test_tsne_panels_show_the_same_sample_in_every_panel(tmp_path, drawn):
    vectors = np.random.default_rng(0).normal(size=(30, 6)).astype(np.float32)
    labels = [f"class {i % 3}" for i in range(30)]
    ids = [f"doc-{i}" for i in range(30)]
    png = figures.tsne_panels(
        tmp_path / "tsne.v1",
        {"before": vectors, "after": vectors[:, :3]},
        labels,
        ids=ids,
        most=12,
    )
    assert png.name == "tsne.v1.png"
    with (tmp_path / "tsne.v1.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    before = [r for r in table if r["panel"] == "before"]
    after = [r for r in table if r["panel"] == "after"]
    assert [r["id"] for r in before] == [r["id"] for r in after]
    assert len({r["id"] for r in before}) == 12
    assert all(labels[int(r["id"][4:])] == r["label"] for r in table)
    told = {(float(r["x"]), float(r["y"])) for r in before}
    panel = drawn[0].axes[0]
    shown = np.concatenate([points.get_offsets() for points in panel.collections])
    assert {tuple(point) for point in shown.astype(np.float32)} == {
        tuple(point) for point in np.float32(sorted(told))
    }
    assert "12 documents (sampled from 30)" in drawn[0].get_suptitle()
    assert len(drawn[0].legends) == 1


def test_rare_classes_are_drawn_as_other():
    labels = [str(i) for i in range(60)] + [str(i) for i in range(20)]
    styles = style.class_styles(labels)
    assert len(styles) == len(set(styles.values())) == 40
    assert {str(i) for i in range(20)} <= set(styles)


def test_other_classes_are_counted_in_the_legend(tmp_path, drawn):
    vectors = np.random.default_rng(0).normal(size=(45, 3)).astype(np.float32)
    figures.tsne_panels(tmp_path / "t", {"x": vectors}, [str(i) for i in range(45)])
    texts = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert len(texts) == 41 and texts[-1] == "other (5 classes)"
    shown = sum(len(p.get_offsets()) for p in drawn[0].axes[0].collections)
    assert shown == len(rows(tmp_path / "t.png")) == 45


HOSTILE = {  # label: its text in a legend
    r"$\nosuch$": r"$\nosuch$",
    "costs $5 or $10": "costs $5 or $10",
    r"escaped \$": r"escaped \$",
    "_hidden": "_hidden",
    "_nolegend_": "_nolegend_",
    "": "(empty)",
    "two\nlines": "two lines",
    "bell\a": "bell\N{REPLACEMENT CHARACTER}",
    "half \ud800": "half \N{REPLACEMENT CHARACTER}",
    "שלום عالم": "שלום عالم",
    "\N{RIGHT-TO-LEFT OVERRIDE}turned": "\N{RIGHT-TO-LEFT OVERRIDE}turned",
    "漢字": "漢字",
    "<b>bold</b>": "<b>bold</b>",
    "long " * 500: "long long long long long l…ong long long",
}


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_class_is_in_the_legend_as_text(tmp_path, drawn):
    labels = list(HOSTILE)
    vectors = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(np.float32)
    assert imread(figures.tsne_panels(tmp_path / "t", {"x": vectors}, labels)).std() > 0
    assert sorted(legend_texts(drawn[0])) == sorted(HOSTILE.values())


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_names_of_runs_panels_and_metrics_are_text(name, tmp_path, drawn):
    lines = [{"step": 0, name: 1.0}]
    figures.curves(tmp_path / "c", {name: lines, "other": lines}, [name])
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    figures.tsne_panels(tmp_path / "t", {name: vectors}, ["class"] * 5)
    assert [figure.axes[0].get_title() for figure in drawn] == [HOSTILE[name]] * 2
    assert legend_texts(drawn[0]) == [HOSTILE[name], "other"]


def test_a_legend_is_inside_its_figure_however_long_its_labels(tmp_path, drawn):
    labels = [f"{i} " + "A Long Class, " * 30 for i in range(30)]
    vectors = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    figures.tsne_panels(tmp_path / "t", {"x": vectors, "y": vectors}, labels)
    [figure] = drawn
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert 0 <= box.y0 < box.y1 < figure.axes[0].get_window_extent().y0


def test_document_attention_draws_a_bar_a_node_on_one_scale(tmp_path, drawn):
    panels = {"full graph": attention(5)[0], "section graph": attention(5, 1)[0]}
    table = rows(figures.document_attention(tmp_path / "d", panels))
    told = np.array([float(r["weight"]) for r in table], np.float32).reshape(2, 5)
    np.testing.assert_array_equal(told, list(panels.values()))  # float32 exactly
    full, section = drawn[0].axes
    heights = [bar.get_height() for bar in full.patches]
    np.testing.assert_array_equal(heights, panels["full graph"])
    assert full.get_ylim() == section.get_ylim()


def test_node_attention_draws_all_pairs_on_one_scale(tmp_path, drawn):
    weights = attention(5)
    sparse = np.where(np.eye(5, dtype=bool), 1, 0).astype(np.float32)
    panels = {"full graph": weights, "section graph": sparse}
    table = rows(figures.node_attention(tmp_path / "n", panels, sections=[0, 0, 1, 1]))
    told = {(r["panel"], int(r["receiver"]), int(r["sender"])): r for r in table}
    assert len(told) == 50
    assert float(told["full graph", 2, 4]["weight"]) == pytest.approx(weights[2, 4])
    full, section = (axis.images[0] for axis in drawn[0].axes[:2])
    np.testing.assert_array_equal(full.get_array(), weights)
    assert section.get_array().mask.sum() == 20  # no edge, no colour
    assert full.norm is section.norm
    assert len(drawn[0].axes[0].lines) == 4  # after the document and after node 2


def test_sections_change_between_their_nodes():
    assert figures.boundaries([0, 0, 1, 1, 1, 2]) == [0.5, 2.5, 5.5]
    assert figures.boundaries([]) == []


def test_the_colours_differ_for_colour_blind_readers():
    """Machado et al. 2009, severity 1; distances in CIELAB under D65."""
    simulated = {
        "normal": np.eye(3),
        "protanopia": [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        "deuteranopia": [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        "tritanopia": [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    }
    to_xyz = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ]
    bytes_ = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in style.COLOURS]
    linear = ((np.array(bytes_) / 255 + 0.055) / 1.055) ** 2.4
    for matrix in simulated.values():
        seen = np.clip(linear @ np.transpose(matrix), 0, 1)
        x, y, z = np.cbrt(seen @ np.transpose(to_xyz) / [0.9505, 1, 1.089]).T
        lab = np.stack([116 * y, 500 * (x - y), 200 * (y - z)], axis=1)
        distances = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
        assert distances[~np.eye(len(lab), dtype=bool)].min() > 22
