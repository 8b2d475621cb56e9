"""Title and sections of a text: plain text, Markdown, HTML, PDF and Word."""

import itertools
import logging
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from lxml import etree
from lxml import html as lxml_html
from markdown_it import MarkdownIt

from docjax.data import formats
from docjax.data.documents import BadDocument, decode, parsing
from docjax.data.streams import Opened
from docjax.errors import library

HEADINGS = {f"h{level}": level for level in range(1, 7)}
NOT_READ = (
    *("script", "style", "nav", "noscript", "template", "svg", "iframe", "object"),
    *("canvas", "button", "select", "textarea"),
)
# Elements that stand in paragraphs or lines of their own.
PARAGRAPHS = frozenset(
    "address article aside blockquote body center details dl fieldset figure footer "
    "header hr html main ol p pre section table ul".split()
)
LINES = frozenset(
    "br caption dd div dt figcaption legend li summary tbody tfoot thead tr".split()
)
PARAGRAPH, LINE = "\x1d", "\x1e"  # marks of their ends, which no page holds
ENDS = re.compile(r"\s*[\x1d\x1e]\s*")  # \s is a mark too
CELLS = ("td", "th")
CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(.*?)\r?\n(---|\.\.\.)[ \t]*(\r?\n|$)", re.DOTALL
)
TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
Sections = list[dict[str, str]]


class Text(NamedTuple):
    """title, and sections as in a record: heading and text of each."""

    title: str
    sections: Sections


def read(file: Opened, kind: str) -> Text:
    """Title and sections of an opened file of a format of `formats`.

    Raises:
      BadDocument: for a text in another encoding and a file that is damaged.
      UserError: without the library that reads the format.
    """
    return READERS[kind](file)


def _plain(file: Opened) -> Text:
    return Text("", [{"text": decode(file.stream.read(), file.name)}])


def _markdown(file: Opened) -> Text:
    text = decode(file.stream.read(), file.name)
    title, matter = "", FRONT_MATTER.match(text)
    if matter:
        named = TITLE.search(matter[1])
        title = named[1].strip("\"'") if named else ""
        text = text[matter.end() :]
    # A text that is nested deeper would be left out.
    parser = MarkdownIt("commonmark", {"maxNesting": 1 << 20}).enable("table")
    with parsing(file.name, "Markdown"):
        page = parser.render(text)
    found = _of_html(page.encode(), file.name)
    if not title or title == found.title:
        return found
    sections = found.sections or [{"heading": "", "text": ""}]
    sections[0]["heading"] = found.title or sections[0]["heading"]
    return Text(title, sections)


def _html(file: Opened) -> Text:
    raw = file.stream.read()
    try:
        decode(raw, file.name)
    except BadDocument:
        said = CHARSET.search(raw[:4096])  # the page names its own encoding
        if not said:
            raise
        try:
            raw = decode(raw, file.name, said[1].decode("ascii")).encode()
        except BadDocument:
            raise
        except ValueError as error:  # no encoding of Python
            place = file.name
            raise BadDocument(place, "invalid encoding", str(error), raw) from None
    return _of_html(raw, file.name)


def _of_html(raw: bytes, place: str) -> Text:
    """Title and sections of a page in UTF-8; headings begin sections."""
    parser = lxml_html.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True
    )
    try:
        root = lxml_html.document_fromstring(
            re.sub(rb"[\0\x1d\x1e]", b" ", raw), parser=parser
        )
    except (etree.LxmlError, ValueError, AssertionError):  # of a page without elements
        return Text("", [{"text": ""}])
    for error in parser.error_log:
        if error.level_name == "FATAL":  # the rest is not read
            detail = f"HTML that cannot be read to its end ({error.message})"
            raise BadDocument(place, "unreadable file", detail)
    title = " ".join((root.findtext(".//head/title") or "").split())
    etree.strip_elements(root, *NOT_READ, "head", with_tail=False)
    sections = _sections(root)
    of_first = [s for s in sections if s["level"] == 1]
    is_first = not any(s["heading"] or s["text"] for s in _before(sections))
    if len(of_first) == 1 and is_first:
        (first,) = of_first
        title, first["heading"] = first["heading"], ""
        sections = sections[sections.index(first) :]
    kept = [s for s in sections if s["heading"] or s["text"]]
    return Text(title, [{k: s[k] for k in ("heading", "text")} for s in kept])


def _before(sections: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The sections before the first heading of level 1."""
    return itertools.takewhile(lambda section: section["level"] != 1, sections)


def _sections(root: Any) -> list[dict[str, Any]]:
    """The sections of a page, each with the level of its heading."""
    sections: list[dict[str, Any]] = [{"heading": [], "text": [], "level": 0}]
    words, verbatim = sections[0]["text"], 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        starts, tag = event == "start", element.tag
        if tag in HEADINGS and starts:
            sections.append({"heading": [], "text": [], "level": HEADINGS[tag]})
            words = sections[-1]["heading"]
        elif tag in HEADINGS:
            words = sections[-1]["text"]
        else:
            words.append(_end(tag))
        if tag == "pre":
            verbatim += 1 if starts else -1
        text = (element.text if starts else element.tail) or ""
        words.append(text if verbatim else re.sub(r"\s+", " ", text))
    return [_joined(**section) for section in sections]


def _end(tag: str) -> str:
    """The mark before and behind an element."""
    if tag in PARAGRAPHS:
        return PARAGRAPH
    return LINE if tag in LINES else " " * (tag in CELLS)


def _joined(heading: list[str], text: list[str], level: int) -> dict[str, Any]:
    blank = lambda match: "\n\n" if PARAGRAPH in match[0] else "\n"
    words = re.sub(ENDS, blank, "".join(text)).strip()
    name = " ".join("".join(heading).split())
    return {"heading": name, "text": words, "level": level}


def _pdf(file: Opened) -> Text:
    """The text of all pages; the title of the file if its first page shows it."""
    pypdf = library("pypdf", f"{file.name}: PDF", "files")
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    with warnings.catch_warnings(), parsing(file.name, "PDF"):
        warnings.simplefilter("ignore")  # of what it mends itself
        reader = pypdf.PdfReader(file.whole())
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadDocument(file.name, "unreadable file", "the PDF has a password")
        pages = [page.extract_text() for page in reader.pages]
        title = " ".join(str((reader.metadata or {}).get("/Title") or "").split())
    text = "\n\n".join(page.strip() for page in pages if page.strip())
    if not text:
        detail = "the PDF holds no text; a scan has to be read by OCR first"
        raise BadDocument(file.name, "empty text", detail)
    text = text.encode("utf-8", "replace").decode()
    is_shown = title and title in " ".join(pages[0].split())
    return Text(title if is_shown else "", [{"text": text}])


def _word(file: Opened) -> Text:
    docx = library("docx", f"{file.name}: Word", "files")
    with parsing(file.name, "Word"):
        document = docx.Document(file.whole())
        blocks = [_block(block) for block in document.iter_inner_content()]
    title, sections = "", [{"heading": "", "text": ""}]
    for style, text in blocks:
        if style == "title" and not title:
            title = text
        elif style.startswith("heading"):
            sections.append({"heading": text, "text": ""})
        elif text:
            sections[-1]["text"] += f"{text}\n\n"
    for section in sections:
        section["text"] = section["text"].strip()
    return Text(title, [s for s in sections if s["heading"] or s["text"]])


def _block(block: Any) -> tuple[str, str]:
    """The style of a paragraph and its text; a table is a line a row."""
    if hasattr(block, "rows"):
        rows = (dict.fromkeys(cell.text for cell in row.cells) for row in block.rows)
        return "table", "\n".join(" ".join(cells) for cells in rows)
    style = block.style.name.lower() if block.style is not None else ""
    return style, block.text.strip()


READERS = {
    formats.TEXT: _plain,
    formats.MARKDOWN: _markdown,
    formats.HTML: _html,
    formats.PDF: _pdf,
    formats.WORD: _word,
}
