"""Corpora that no setting was chosen on: the texts of a Debian system.

    apt-get -o Acquire::Languages=en update
    apt-get install bible-kjv git-man libreoffice-help-en-us libssl-doc libxt-dev \
        linux-doc-6.1 manpages-dev perl-doc postgresql-client-15 systemd tcl8.6-doc \
        tk8.6-doc
    python -m benchmarks.training_pays --corpora packages manuals chapters kernel help ...

packages: descriptions of Debian's packages, by section of the archive; one package of
each source. manuals: manual pages with their sections, by package. chapters: those of the
King James Bible, by book. kernel: pages of Linux's documentation with their sections, by
folder. help: LibreOffice's help pages with their sections, by application. The rules
of each corpus were written before anything was measured on it.
Another version of Debian gives other documents.
"""

import collections
import gzip
import html
import os
import re
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECTIONS = (
    *("admin", "comm", "database", "editors", "education", "electronics", "games"),
    *("graphics", "hamradio", "mail", "math", "net", "news", "science", "sound"),
    *("text", "utils", "vcs", "video", "web"),
)
MANUALS = (
    *("git-man", "libssl-doc", "libxt-dev", "manpages-dev", "perl-doc"),
    *("postgresql-client-15", "systemd", "tcl8.6-doc", "tk8.6-doc"),
)
# Headings of sections that name the package and say nothing about the page.
NAMES = re.compile("AUTHORS?|AVAILABILITY|COLOPHON|COPYRIGHT|GIT|REPORTING BUGS|TCL")
KERNEL, HELP = "linux-doc-6.1", "libreoffice-help-en-us"
# A title of reStructuredText: a line above it or none, the title, a line below it.
TITLE = re.compile(
    r"^(?:([-=~^\"'#*+.`:_])\1{2,}\n)? *(\S.*)\n([-=~^\"'#*+.`:_])\3{2,} *$",
    re.MULTILINE,
)
SHOW = ("apt-cache", "-o", "Acquire::Languages=en", "show", "--no-all-versions")
MOST, LEAST_WORDS = 300, 40  # documents of a label, words of a text
MOST_MANUALS, LEAST_CHAPTERS = 150, 16
MOST_PAGES, LEAST_PAGES = 150, 40  # of a folder

Lines = Iterator[dict[str, Any]]
Sections = list[dict[str, str]]
Pages = dict[str, list[tuple[str, Sections]]]  # folder -> names and sections


def packages() -> Lines:
    """Descriptions of at least 40 words, at most 300 of a section."""
    seen: set[str] = set()
    kept: collections.Counter[str] = collections.Counter()
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    pattern = f"^Package: (.*)\n(?:.+\n)*?Section: (?:{'|'.join(SECTIONS)})$"
    names = re.findall(pattern, _output(["apt-cache", "dumpavail"]), re.MULTILINE)
    records = _output([*SHOW, *names], environment).split("\n\n")
    for record in sorted(records, key=_order):
        fields = dict(re.findall(r"^([\w-]+): (.*(?:\n .*)*)", record, re.MULTILINE))
        section = fields.get("Section", "")
        source = fields.get("Source", fields.get("Package", "")).split(" ")[0]
        described = fields.get("Description-en", fields.get("Description", ""))
        words = re.sub(r"\n \.?", "\n", described)
        short = len(words.split()) < LEAST_WORDS
        if section not in SECTIONS or source in seen or short or kept[section] == MOST:
            continue
        seen.add(source)
        kept[section] += 1
        yield {"id": fields["Package"], "text": words, "label": section}


def manuals() -> Lines:
    """Manual pages with their sections, at most 150 of a package."""
    for package in MANUALS:
        files = map(Path, _output(["dpkg", "-L", package]).split())
        pages = [f for f in files if "/man/man" in str(f) and not f.is_symlink()]
        pages = [page for page in pages if page.suffix == ".gz" and _is_page(page)]
        for page in sorted(pages, key=lambda page: _order(page.name))[:MOST_MANUALS]:
            name = page.name.removesuffix(".gz")
            sections = [*_sections(page)]
            if sections:
                yield {"id": name, "sections": sections, "label": package}


def chapters() -> Lines:
    """Chapters of the books that have at least 16 of them."""
    verses = _output(["bible", "-f", "gen1:1-rev22:21"]).splitlines()
    by_chapter: dict[tuple[str, str], list[str]] = {}
    for verse in verses:
        place, text = verse.split(" ", 1)
        book, chapter = re.fullmatch(r"(.*?)(\d+):\d+", place).groups()
        by_chapter.setdefault((book, chapter), []).append(text)
    lengths = collections.Counter(book for book, _ in by_chapter)
    for (book, chapter), texts in by_chapter.items():
        if lengths[book] >= LEAST_CHAPTERS:
            yield {"id": f"{book}{chapter}", "text": " ".join(texts), "label": book}


def kernel() -> Lines:
    """Pages of at least 40 words, at most 150 of a folder, of folders with 40 or more.

    What stands before the first title, such as a licence, is left out, and so are pages
    that list others.
    """
    files = map(Path, _output(["dpkg", "-L", KERNEL]).split())
    pages: Pages = {}
    for page in (f for f in files if f.name.endswith(".rst.gz")):
        name = str(page).partition("/Documentation/")[2].removesuffix(".rst.gz")
        folder, _, rest = name.partition("/")
        if not rest or folder == "translations" or page.stem == "index.rst":
            continue
        sections = _titled(gzip.decompress(page.read_bytes()).decode(errors="replace"))
        pages.setdefault(folder, []).append((name, sections))
    yield from _of_folders(pages)


def help_pages() -> Lines:
    """As `kernel`, but what several applications share is left out."""
    files = map(Path, _output(["dpkg", "-L", HELP]).split())
    pages: Pages = {}
    for page in (f for f in files if f.suffix == ".html"):
        name = str(page).partition("/text/")[2].removesuffix(".html")
        application, _, rest = name.partition("/")
        if rest and application != "shared":
            sections = _headed(page.read_text(encoding="utf-8"))
            pages.setdefault(application, []).append((name, sections))
    yield from _of_folders(pages)


def _of_folders(pages: Pages) -> Lines:
    for folder, of_folder in sorted(pages.items()):
        kept = [(name, sections) for name, sections in of_folder if _long(sections)]
        if len(kept) < LEAST_PAGES:
            continue
        for name, sections in sorted(kept, key=lambda page: _order(page[0]))[
            :MOST_PAGES
        ]:
            yield {"id": name, "sections": sections, "label": folder}


def _long(sections: Sections) -> bool:
    return sum(len(section["text"].split()) for section in sections) >= LEAST_WORDS


def _titled(text: str) -> Sections:
    """The sections of a text in reStructuredText that have words."""
    _, *parts = TITLE.split(text)
    return _with_words(parts[1::4], parts[3::4])


def _headed(page: str) -> Sections:
    """The sections of a help page that have words."""
    text = page.partition('<div id="DisplayArea"')[2]
    text = text.partition('<div id="SearchFrame"')[0]
    _, *parts = re.split(r"<h\d[^>]*>(.*?)</h\d>", text, flags=re.DOTALL)
    plain = [html.unescape(re.sub("<[^>]*>", " ", part)) for part in parts]
    return _with_words(plain[::2], plain[1::2])


def _with_words(headings: list[str], texts: list[str]) -> Sections:
    return [
        {"heading": heading.strip(), "text": text.strip()}
        for heading, text in zip(headings, texts)
        if text.strip()
    ]


def _order(text: str) -> int:
    """A number for an order that has nothing to do with the alphabet."""
    return zlib.crc32(text.encode())


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, check=False, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command[:3])}: {done.stderr.strip()[:200]}; install the packages "
            "that benchmarks/debian_texts.py names"
        )
    return done.stdout


def _is_page(page: Path) -> bool:
    """False for a page that only names another one."""
    with gzip.open(page, "rt", encoding="utf-8", errors="replace") as stream:
        return not stream.readline().startswith(".so ")


def _sections(page: Path) -> Iterator[dict[str, str]]:
    """The sections of a page without its first and last line."""
    environment = os.environ | {"MANWIDTH": "1000", "LC_ALL": "C.UTF-8"}
    command = ["man", "--no-hyphenation", "--no-justification", "-P", "cat", str(page)]
    lines = re.sub(".\b", "", _output(command, environment)).strip().split("\n")[1:-1]
    parts = re.split(r"^(\S.*)$", "\n".join(lines), flags=re.MULTILINE)
    for heading, text in zip(parts[1::2], parts[2::2]):
        if text.strip() and not NAMES.fullmatch(heading.strip()):
            plain = re.sub(r" {2,}", " ", re.sub(r"\n\s*", "\n", text.strip()))
            yield {"heading": heading.strip(), "text": plain}
