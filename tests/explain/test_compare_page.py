"""The page of a comparison: complete, escaped, and alive in a real browser."""

import dataclasses

import numpy as np
import pytest
from playwright.sync_api import expect

from docjax.explain import compare_page as compare
from docjax.explain.yardstick import Yardstick
from docjax.model.compare import Comparison, CrossAttention, Side, cosines
from docjax.types import Passage, Segments

ATTACK = "<script>alert('x')</script> & \"quotes\""
NARROW = dict(viewport=dict(width=390, height=800), has_touch=True)


def side(title: str, sections: int, segments: int, **cut) -> Side:
    """A document of `segments` segments in each of its sections."""
    tokens = Segments(
        np.zeros(8, np.int32),
        np.array([0, 8]),
        np.zeros((1, 2), int),
        np.zeros((0, 2), int),
    )
    return Side(
        title=f"{title} {ATTACK}",
        headings=[f"{title} section {n} {ATTACK}" for n in range(sections)],
        segments=[
            Passage(f"{title} {n}.{i}: {ATTACK} " + "words " * 30, n)
            for n in range(sections)
            for i in range(segments)
        ],
        tokens=tokens,
        whole=tokens,
        pieces=[Passage(f"{title} chunk {n} {ATTACK}", 0) for n in range(3)],
        same=True,
        alone=(),
        **dict(segments_cut=0, tokens_cut=0) | cut,
    )


@pytest.fixture(scope="module")
def found() -> Comparison:
    """Two documents with hundreds of segments."""
    generator = np.random.default_rng(0)
    draw = lambda rows: generator.normal(size=(rows, 4)).astype(np.float32)
    a, b = side("A", 4, 50), side("B", 5, 60, segments_cut=3, tokens_cut=1234)
    return Comparison(
        similarity=0.8125,
        sections=cosines(draw(4), draw(5)),
        segments=cosines(draw(200), draw(300)),
        a=a,
        b=b,
    )


def attention(found: Comparison) -> Comparison:
    """The same comparison by a model with chunk attention."""
    weights = np.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    cosines = np.array([[0.1, 0.9, 0.2], [0.3, 0.5, 0.4], [-0.5, 0.0, 0.3]])
    chunks = CrossAttention(weights.astype(np.float32), cosines.astype(np.float32))
    return dataclasses.replace(found, chunks=chunks)


def test_chunks_are_ranked_by_cosine_times_attention(found):
    links = compare.chunk_links(attention(found))
    assert [(link["a"][:9], link["b"][:9]) for link in links[:2]] == [
        ("A chunk 1", "B chunk 1"),  # 0.8 x 0.5
        ("A chunk 0", "B chunk 1"),  # 0.25 x 0.9
    ]
    first = links[0]
    assert [first[x] for x in ("weighted", "attention", "cosine")] == [0.4, 0.8, 0.5]
    assert compare.facts(attention(found))["chunks"][0]["weighted"] == 0.4
    assert "chunks" not in compare.facts(found) and compare.chunk_links(found) == []


def test_the_page_shows_chunk_attention_if_there_is_any(found, page_file, tmp_path):
    page = compare.write(tmp_path / "chunks.html", attention(found)).read_text("utf-8")
    assert "Chunk attention" in page and "A chunk 1" in page and ATTACK not in page
    assert "Chunk attention" not in page_file.read_text("utf-8")


@pytest.fixture(scope="module")
def page_file(found, tmp_path_factory):
    return compare.write(tmp_path_factory.mktemp("page") / "why.html", found)


def test_the_strongest_links_are_those_of_a_full_sort(found):
    links = compare.strongest(found.segments, 100)
    assert [w for *_, w in links] == sorted((w for *_, w in links), reverse=True)
    highest = np.sort(found.segments.ravel())[::-1][:100]
    np.testing.assert_allclose([w for *_, w in links], highest, atol=6e-5)
    for row, column, weight in links:
        assert abs(found.segments[row, column] - weight) < 6e-5
    assert len(compare.strongest(found.sections, 100)) == 20


def test_the_page_names_no_other_file_and_text_stays_text(page_file):
    html = page_file.read_text("utf-8")
    assert "default-src 'none'" in html and "http-equiv" in html
    assert "src=" not in html and "<link" not in html and "url(" not in html
    assert ATTACK not in html and "alert(&#39;x&#39;)" in html


def test_a_script_that_is_not_the_pages_own_does_not_run(browser, page_file, tmp_path):
    html = page_file.read_text("utf-8")
    changed = tmp_path / "changed.html"
    changed.write_text(
        html.replace("<main>", "<main><script>alert(1)</script>"), "utf-8"
    )
    page, _ = browser(changed.as_uri())
    assert page.locator("main > script:not([type])").count() == 1
    expect(page.locator(".map path")).to_have_count(sum(compare.DRAWN.values()))


def test_numbers_and_what_was_cut_are_said(page_file):
    html = page_file.read_text("utf-8")
    assert "<b>0.812</b>" in html and "no corpus belongs to this model" in html
    assert "1,234 tokens (3 segments) at the end of document B" in html
    assert "the end of document A" not in html


def test_a_similarity_has_its_percentile_among_pairs_of_the_corpus(found, tmp_path):
    quantiles = np.linspace(-1, 1, 1001).tolist()  # 0.8125 is above 90.6 % of them
    yardstick = Yardstick(documents=1000, quantiles=quantiles)
    page = compare.write(tmp_path / "a.html", found, yardstick).read_text("utf-8")
    assert (
        "more similar than <b>90.6 %</b> of the pairs" in page
        and "1,000 documents" in page
    )
    facts = compare.facts(found, yardstick)
    assert facts["similarity"] == 0.8125 and facts["percentile"] == 90.6
    assert compare.facts(found)["percentile"] is None


# How far each end of each line is from the passage that it links, in pixels: of solid
# lines both ends, of dotted ones the end that is in view.
AWAY = """() => {
  const box = document.querySelector('.map').getBoundingClientRect();
  const panes = [...document.querySelectorAll('.pane')];
  const links = JSON.parse(document.getElementById('links').textContent);
  const paths = [...document.querySelectorAll('.map [data-kind=segments]:not(.hidden)')];
  return paths.map((path) => {
    const ends = [0, path.getTotalLength()].map((at) => path.getPointAtLength(at));
    const away = ends.map(({x, y}, side) => {
      const number = links.segments[path.dataset.link][side];
      const passage = panes[side].querySelector(`[data-segments="${number}"]`);
      const [own, pane] = [passage, panes[side]].map((e) => e.getBoundingClientRect());
      const top = Math.max(own.top, pane.top), bottom = Math.min(own.bottom, pane.bottom);
      if (bottom - top <= 1) return null;
      const [px, py] = [box.x + x, box.y + y];
      return Math.max(own.left - px, px - own.right, top - py, py - bottom, 0);
    });
    return [path.classList.contains('away'), ...away];
  });
}"""


def check_ends(page, solid: int) -> None:
    """Lines end on their passages; at least `solid` lines have both ends in view."""
    page.wait_for_timeout(100)
    ends = page.evaluate(AWAY)
    for away, *both in ends:
        assert away == (None in both) and both != [None, None]
        assert all(distance < 2 for distance in both if distance is not None)
    assert sum(not away for away, *_ in ends) >= solid


@pytest.mark.parametrize("options", [{}, NARROW], ids=["wide", "narrow"])
def test_lines_end_on_the_passages_that_they_link(browser, page_file, options):
    page, _ = browser(page_file.as_uri(), **options)
    check_ends(page, solid=1)  # the strongest link is in view first
    page.locator(".links button >> nth=9").click()
    check_ends(page, solid=1)
    for pane, top in ((0, 700), (1, 1900)):
        page.locator(f".pane >> nth={pane}").evaluate("(e, y) => e.scrollTo(0, y)", top)
        check_ends(page, solid=0)
    page.evaluate("scrollTo(0, 300)")
    check_ends(page, solid=0)
    page.set_viewport_size(dict(width=700, height=500))
    check_ends(page, solid=0)
    page.set_viewport_size(dict(width=1100, height=900))
    page.locator(".links button >> nth=7").click()
    check_ends(page, solid=1)


def test_links_are_drawn_without_network(browser, page_file, found):
    page, requests = browser(page_file.as_uri(), offline=True)
    assert requests == [page_file.as_uri()]
    expect(page.locator(".map path")).to_have_count(sum(compare.DRAWN.values()))
    assert page.locator(".pane p").count() == 500
    assert page.inner_text(".pane p >> nth=0").startswith(f"A 0.0: {ATTACK}")
    strengths = page.eval_on_selector_all(
        ".map [data-kind=segments]", "all => all.map((e) => +e.getAttribute('opacity'))"
    )
    assert strengths == sorted(strengths) and strengths[0] < 0.3 < strengths[-1] == 1


def middle(page, path) -> tuple[float, float]:
    """A point of the window that lies on a path."""
    return path.evaluate(
        """(path) => {
          const box = document.querySelector('.map').getBoundingClientRect();
          const {x, y} = path.getPointAtLength(path.getTotalLength() / 2);
          return [box.x + x, box.y + y]; }"""
    )


@pytest.mark.parametrize("options", [{}, NARROW], ids=["wide", "narrow"])
def test_hover_tells_the_weight_and_a_click_moves_to_the_passages(
    browser, page_file, found, options
):
    page, _ = browser(page_file.as_uri(), **options)
    row, column, weight = compare.strongest(found.segments, 1)[0]
    path = page.locator(".map [data-kind=segments][data-link='0']")
    path.scroll_into_view_if_needed()
    page.mouse.move(*middle(page, path))
    assert page.inner_text("#shown").startswith(f"{weight:.3f} · A ")
    ends = [(".pane >> nth=0", row), (".pane >> nth=1", column)]
    page.mouse.click(*middle(page, path))
    page.mouse.move(0, 0)
    for pane, number in ends:
        chosen = page.locator(pane).locator(".on")
        assert chosen.get_attribute("data-segments") == str(number)
        inside = chosen.evaluate(
            """(e) => { const [a, b] = [e, e.closest('.pane')].map(
              (one) => one.getBoundingClientRect());
              return a.top >= b.top && a.bottom <= b.bottom; }"""
        )
        assert inside
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_marked_passage_leads_to_the_other_end_of_its_strongest_link(
    browser, page_file, found
):
    page, _ = browser(page_file.as_uri())
    row, column, weight = compare.strongest(found.segments, 1)[0]
    page.locator(f".pane >> nth=0 >> .linked[data-segments='{row}']").click()
    assert page.inner_text("#shown").startswith(f"{weight:.3f} · A ")
    other = page.locator(".pane >> nth=1 >> .on")
    assert other.get_attribute("data-segments") == str(column)


def test_a_control_chooses_how_many_links_are_drawn(browser, page_file):
    page, _ = browser(page_file.as_uri())
    slider = page.locator("[data-kind=segments][type=range]")
    slider.fill("7")
    assert page.locator(".map [data-kind=segments]").count() == 7
    slider.fill("0")
    assert page.locator(".map [data-kind=segments]").count() == 0
    slider.focus()
    page.keyboard.press("End")
    most = compare.LINKS["segments"]
    assert page.locator(".map [data-kind=segments]").count() == most


def test_the_table_does_by_keyboard_what_a_click_does(browser, page_file, found):
    page, _ = browser(page_file.as_uri(), color_scheme="dark")
    row, column, weight = compare.strongest(found.sections, 1)[0]
    page.locator(".links button >> nth=0").focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#shown").startswith(f"{weight:.3f} · A section {row}")
    chosen = page.locator(".pane >> nth=1").locator("div.on")
    assert chosen.get_attribute("data-sections") == str(column)
    assert (page.locator(".pane >> nth=1").evaluate("(e) => e.scrollTop") > 0) == (
        column > 0
    )


def test_documents_of_one_section_have_no_section_links(browser, tmp_path):
    one = Comparison(
        0.5, np.ones((1, 1), np.float32), np.ones((1, 2), np.float32),
        side("A", 1, 1), side("B", 1, 2),
    )  # fmt: skip
    page, _ = browser(compare.write(tmp_path / "one.html", one).as_uri())
    expect(page.locator(".map path")).to_have_count(2)
    assert page.locator("[type=range]").count() == 1


def test_texts_of_any_script_stay_in_their_places(browser, tmp_path):
    a, b = side("A", 1, 1), side("B", 1, 2)
    hebrew = Passage("שלום עולם", 0)
    a = dataclasses.replace(a, title="\N{RIGHT-TO-LEFT OVERRIDE}a\0\ud800")
    b = dataclasses.replace(b, title="", headings=[""], segments=[hebrew, hebrew])
    cosines = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
    file = compare.write(tmp_path / "any.html", Comparison(0.5, *cosines, a, b))
    page, _ = browser(file.as_uri())
    directions = page.eval_on_selector_all(
        ".pane p", "all => all.map((e) => getComputedStyle(e).direction)"
    )
    assert directions == ["ltr", "rtl", "rtl"]
    assert page.inner_text(".pane h3 bdi >> nth=0").endswith("a" + 2 * "\ufffd")
    assert page.locator(".links tbody tr").count() == 2
