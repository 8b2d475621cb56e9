"""The page at `/`: a user pastes two texts, and the page shows why they are similar."""

from collections.abc import Sequence
from pathlib import Path

from docjax.explain import compare_page as compare
from docjax.explain import page
from docjax.model.compare import Comparison

FOLDER = Path(__file__).parent
TEMPLATE = page.template(
    FOLDER / "form.html.jinja",
    script=compare.SCRIPT,
    styles=[compare.STYLE, FOLDER / "form.css"],
)


def form(
    name: str,
    texts: Sequence[str] = ("", ""),
    comparison: Comparison | None = None,
    message: str = "",
) -> str:
    """The page for a model: the form with `texts`, and a comparison or a message."""
    values = compare.values(comparison) if comparison else {"sides": None}
    boxes = dict(zip(compare.NAMES, texts))
    return TEMPLATE.render(title=name, texts=boxes, message=message, **values)
