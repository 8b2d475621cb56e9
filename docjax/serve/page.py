"""The page at `/`: two texts are pasted, and it shows why they are similar."""

from collections.abc import Sequence

from docjax.comparison import Comparison
from docjax.explain import compare, page


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


HINT = (
    "Paste two documents to see why they are similar: plain text, or "
    '{"title": …, "sections": [{"heading": …, "text": …}]}.'
)
STYLE = """
form { display:grid; grid-template-columns:1fr 1fr; gap:.8rem 1rem; }
form div { grid-column:1/3; color:var(--soft); font-size:.9rem; }
textarea { display:block; width:100%; font:inherit; font-size:.93rem; resize:vertical;
  color:inherit; background:var(--card); border:1px solid var(--line);
  border-radius:6px; padding:.5rem .7rem; }
form button { font:inherit; padding:.3rem 1.2rem; margin-right:.8rem; cursor:pointer;
  color:var(--ground); background:var(--accent); border:0; border-radius:6px; }
main { padding-bottom:2.5rem; }
@media (max-width:44rem) { form { grid-template-columns:1fr; }
  form div { grid-column:1; } }
"""
