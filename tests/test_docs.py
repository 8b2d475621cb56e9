"""The pages of docs/ and the README: their form, and that their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESULTS = (ROOT / "docs/results.md").read_text("utf-8").splitlines()
HEADER = "| what | published or bar | ours | command | date | commit |"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rows() -> list[str]:
    return [line for line in RESULTS if line.startswith("|")]


def anchors(page: Path) -> set[str]:
    """The names by which links reach the headings of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^()\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", path):  # another site
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


def test_the_results_stay_short():
    assert len(RESULTS) <= 150
    assert [line for line in RESULTS if len(line) > 300] == []


def test_every_row_of_the_results_fills_all_columns():
    assert rows().count(HEADER) == sum(line.startswith("## ") for line in RESULTS)
    columns = HEADER.count("|") - 1
    for row in rows():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == columns and all(cells), row


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_to_files_and_headings(page):
    assert broken_links(page) == []


def test_a_link_to_nothing_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#a-title) [b](#b) [c](c.md) [d](https://d.org)")
    assert broken_links(page) == ["#b", "c.md"]


def test_every_result_has_a_day_and_a_commit():
    for row in rows():
        if row != HEADER and not row.startswith("|---"):
            *_, date, commit, _ = (cell.strip() for cell in row.split("|"))
            assert re.fullmatch(r"20\d\d-\d\d-\d\d( [A-Z](, [A-Z])*)?|-", date), row
            assert re.fullmatch(r"[0-9a-f]{7,10}|-", commit), row


def test_the_pages_that_code_names_exist():
    code = [
        p for d in ("docjax", "configs", "benchmarks") for p in (ROOT / d).rglob("*.py")
    ]
    for path in [*code, *PAGES]:
        for name in re.findall(r"(?<![\w/.])docs/[\w/.-]*\w", path.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{path}: {name}"


def test_every_file_of_the_log_is_in_its_index():
    index = (ROOT / "docs/log/README.md").read_text("utf-8")
    for path in (ROOT / "docs/log").glob("*.md"):
        assert path.name == "README.md" or f"]({path.name})" in index
