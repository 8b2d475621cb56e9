"""The page at `/`: two texts are pasted, and it shows why they are similar."""

from collections.abc import Sequence
from pathlib import Path

from docjax.explain import compare_page as compare
from docjax.explain import page
from docjax.model.compare import Comparison

STYLE = Path(__file__).with_name("form.css").read_text("utf-8")
HINT = (
    "Paste two documents to see why they are similar: plain text, or "
    '{"title": …, "sections": [{"heading": …, "text": …}]}.'
)


def form(
    name: str,
    texts: Sequence[str] = ("", ""),
    found: Comparison | None = None,
    message: str = "",
) -> str:
    """The form with `texts`, and below it their comparison or a message."""
    boxes = "".join(
        f'<label>Document {letter}<textarea name="{letter.lower()}" required rows="9">\n'
        f"{page.text(text)}</textarea></label>"
        for letter, text in zip(compare.NAMES, texts)
    )
    body = (
        f'<header><div class="kind">docjax serve</div><h1>{page.text(name)}</h1>'
        "</header>\n<main><form method="
        f'"post" action="/">{boxes}<div><button>Compare</button> '
        f"{page.text(HINT)}</div></form>"
    )
    if message:
        body += f'<p class="missing" role="alert">{page.text(message)}</p>'
    if found:
        body += compare.parts(found)
    return page.page(
        f"{name} · docjax",
        f"{body}</main>",
        style=compare.STYLE + STYLE,
        script=compare.SCRIPT,
        forms="'self'",
    )
