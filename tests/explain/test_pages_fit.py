"""The report in a real browser: nothing is wider than the page, on a phone too."""

import numpy as np
import pytest

from docjax.explain import figures
from docjax.explain.run_page import (
    Attention,
    Cell,
    Cluster,
    Export,
    FirstScreen,
    Named,
    Neighbours,
    Report,
    Shown,
    write,
)
from docjax.types import Section, Table

LONG = "a_name_without_a_space_" * 8
WORDS = "words of a title " * 12
# Elements that stick out of the page, or of a box that does not scroll.
OUTSIDE = """() => [...document.querySelectorAll('body *')].filter((e) => {
  const own = e.getBoundingClientRect();
  if (!own.width || (own.left >= -0.5 && own.right <= innerWidth + 0.5)) return false;
  for (let box = e.parentElement; box; box = box.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return false;
  return true; }).map((e) => e.outerHTML.slice(0, 90))"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A report with everything in it, with long names."""
    folder = tmp_path_factory.mktemp("run")
    cells = {f"score number {i}": Cell(".971", ".964–.978", i == 0) for i in range(5)}
    rows = {"trained model": cells, LONG: cells, "MiniLM beside LSA": cells}
    vectors = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    maps = {"after training": vectors, "TF-IDF": vectors}
    lines = [{"step": i, "train/loss": 2.0 - i} for i in range(3)]
    metrics = [f"train/{LONG[:20]}{i}" for i in range(3)]
    passages = [Section(LONG, LONG + WORDS), Section("", WORDS)]
    weights = np.full((3, 3), 1 / 3, np.float32)
    near = [Named(LONG, LONG), Named(WORDS, "a")]
    report = Report(
        name=LONG,
        config={"note": LONG, "seed": 1},
        first=FirstScreen(LONG, WORDS, WORDS, LONG, rows, [WORDS, LONG], [LONG]),
        scores={name: {f"eval/{LONG}/nmi": 0.5} for name in (*rows, "other", "more")},
        clusters=[Cluster(9, LONG, 1.0, [LONG, "oil"], [LONG, WORDS])] * 3,
        neighbours=[Neighbours(Named(LONG, "a"), dict.fromkeys(maps, near))],
        data={"train": {LONG: 12345}, "test": {LONG: 123}},
        curves=figures.curves(
            folder / "curves", {LONG: lines}, ["train/loss", *metrics]
        ),
        tsne=figures.tsne_panels(folder / "map", maps, [LONG, "b"] * 6),
        attention=[Attention(WORDS, passages, {"full": weights, "section": weights})],
        words={"oil": ["gas"] * 8, LONG: [LONG]},
        tables=[Shown(Table(WORDS, {LONG: {LONG: 1.0, "b": 2.0}}, note=WORDS))],
        export=Export(
            LONG, {"docjax": 0.0, "transformers": 1e-7}, 9, (1, 2), {LONG: 9}
        ),
        commands={"This run was made with": f"python -m docjax.main --config={LONG}"},
    )
    return write(folder, report)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(browser, page_file, width, scheme):
    size = dict(width=width, height=800)
    page, _ = browser(page_file.as_uri(), viewport=size, color_scheme=scheme)
    page.evaluate(
        "document.querySelectorAll('details').forEach((d) => (d.open = true))"
    )
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").count() == 2
    for image in page.locator("img").all():  # whole, not in a box that scrolls
        assert image.bounding_box()["width"] <= width
    for section in page.locator("section").all():
        assert section.inner_text().strip()


def test_the_first_sentence_is_on_the_first_screen_of_a_phone(browser, page_file):
    page, _ = browser(page_file.as_uri(), viewport=dict(width=390, height=800))
    assert page.locator(".finding").bounding_box()["y"] < 800
