"""Documents from the docstrings of scientific Python packages: nothing to download.

Docstrings are read from the source files; nothing is imported or run.
`docjax.data.docstrings` parses a docstring.
"""

import ast
import functools
import gc
import importlib.metadata
import importlib.util
import logging
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from docjax.data.docstrings import Docstring, parse
from docjax.data.duplicates import near_duplicates
from docjax.data.splits import holdout
from docjax.errors import UserError
from docjax.types import Document

logger = logging.getLogger(__name__)

PACKAGES = ("numpy", "scipy", "sklearn", "jax", "flax", "optax", "matplotlib")
# Folders and files whose docstrings no user reads.
INTERNAL = frozenset(
    "tests testing test benchmarks conftest.py setup.py externals _lib _vendor _vendored "
    "_build_utils code_generators distutils f2py _pyinstaller sphinxext".split()
)
# Sub-packages whose members users find in the package itself.
FOLDED = {"numpy.lib": "numpy", "numpy.multiarray": "numpy"}


def pydocs(
    packages: Iterable[str] = PACKAGES,
    words: int = 100,
    label_documents: int = 60,
    report: Counter | None = None,
) -> Iterator[Document]:
    """The docstrings of installed packages, sorted by id.

    The id is the public dotted name, the title its last part, the query the summary
    line (which the text leaves out), the label the sub-package, and the links are the
    "See Also" names that are documents too. A fifth of each label is in the split
    "test". Always the same for the same versions.

    Args:
      packages: of repeated docstrings, the earliest package keeps its docstring.
      words: docstrings with fewer words are left out.
      label_documents: sub-packages with fewer documents have the package as label.
      report: counts "documents" and, by reason, what is left out.

    Raises:
      UserError: if a package is not installed.
    """
    docstrings, counts = _read(tuple(packages), words)
    if report is not None:
        report.update(counts)
    return holdout(_documents(docstrings, label_documents))


@functools.lru_cache(maxsize=1)
def _read(
    packages: tuple[str, ...], words: int
) -> tuple[dict[str, Docstring], Counter]:
    """The docstrings by name, and the counts. Cached: a run reads its source thrice."""
    counts: Counter = Counter()
    docstrings: dict[str, Docstring] = {}
    for package in packages:
        for name, text in _docstrings(package, _folder(package), words, counts):
            if name in docstrings:
                counts["same name"] += 1
            elif (docstring := parse(text)).words < words:
                counts["too short"] += 1
            else:
                docstrings[name] = docstring
    docstrings = _without_repetitions(docstrings, counts)
    if not docstrings:
        raise UserError(f"empty corpus: no docstring of {words} words in {packages}")
    counts["documents"] += len(docstrings)
    left = ", ".join(
        f"{n:,} {kind}" for kind, n in counts.items() if kind != "documents"
    )
    logger.info("docstrings: %d documents; left out: %s", counts["documents"], left)
    return docstrings, counts


def stamp(packages: Iterable[str] = PACKAGES, **keywords) -> list[str]:
    """The versions of the packages, which change when a package changes."""
    owners = importlib.metadata.packages_distributions()
    return [
        f"{package} {importlib.metadata.version(owners[package][0])}"
        for package in packages
        if package in owners
    ]


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(
            f"package {package!r} is not installed: leave it out of packages"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _docstrings(
    package: str, folder: Path, words: int, report: Counter
) -> Iterator[tuple[str, str]]:
    """Dotted name and docstring of every public object in a package's source."""
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).parts
        if INTERNAL.intersection(parts):
            continue
        module = _public(".".join((package, *parts)).removesuffix(".py"))
        source = file.read_bytes()
        if not _has_long_string(source, words):
            continue
        try:
            tree = _parse_source(source)
        except (SyntaxError, ValueError):
            report["unreadable file"] += 1
            continue
        for name, text in _objects(tree.body, module):
            if name.startswith(f"{package}."):
                yield name, text


def _parse_source(source: bytes) -> ast.Module:
    collected = gc.isenabled()
    gc.disable()  # collecting would take most of the time here
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(source)
    finally:
        if collected:
            gc.enable()


def _has_long_string(source: bytes, words: int) -> bool:
    """Whether a string may have `words` words; a quick test, since parsing is slow."""
    pieces = (p for quote in (b'"""', b"'''") for p in source.split(quote)[1:-1])
    return any(len(piece.split()) >= words for piece in pieces)


def _objects(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of the functions, classes, methods and properties."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _objects([*node.body, *node.orelse], prefix)
        elif isinstance(node, ast.Expr):
            yield from _added(node.value, prefix)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.name.startswith("_"):
                continue
            name = f"{prefix}.{node.name}"
            text = ast.get_docstring(node, clean=False)
            if text:
                yield name, text
            if isinstance(node, ast.ClassDef):
                yield from _objects(node.body, name)


def _added(node: ast.expr, prefix: str) -> Iterator[tuple[str, str]]:
    """Docstrings of compiled functions: add_newdoc([place,] name, text)."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "add_newdoc":
        return
    try:
        *place, name, text = map(ast.literal_eval, node.args)
    except ValueError:  # the text is computed
        return
    if isinstance(text, tuple):  # the name and text of a method
        name, text = f"{name}.{text[0]}", text[1]
    if isinstance(text, str) and not name.rpartition(".")[2].startswith("_"):
        yield _public(".".join([*place, name] if place else [prefix, name])), text


def _public(name: str) -> str:
    """A dotted name without its private parts: scipy.stats._kde.x -> scipy.stats.x."""
    return ".".join(part for part in name.split(".") if not part.startswith("_"))


def _without_repetitions(
    docstrings: Mapping[str, Docstring], report: Counter
) -> dict[str, Docstring]:
    texts = [" ".join(s.text for s in each.sections) for each in docstrings.values()]
    repeated = near_duplicates(texts)
    report["near duplicate"] += sum(number is not None for number in repeated)
    kept = zip(docstrings.items(), repeated)
    return {name: docstring for (name, docstring), number in kept if number is None}


def _documents(
    docstrings: Mapping[str, Docstring], label_documents: int
) -> Iterator[Document]:
    counts = Counter(_sub_package(name) for name in docstrings)
    labels = {}
    for name in docstrings:
        label = _sub_package(name)
        is_large = counts[label] >= label_documents
        labels[name] = label if is_large else name.partition(".")[0]
    by_title: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(docstrings):
        by_title[name.rpartition(".")[2]].append(name)
    for name in sorted(docstrings):
        docstring = docstrings[name]
        linked = (_find(name, each, by_title) for each in docstring.see_also)
        yield Document(
            id=name,
            sections=docstring.sections,
            title=name.rpartition(".")[2],
            label=labels[name],
            links=tuple(dict.fromkeys(i for i in linked if i not in (None, name))),
            query=docstring.summary or None,
        )


def _sub_package(name: str) -> str:
    place = ".".join(name.split(".")[:2])
    return FOLDED.get(place, place)


def _find(name: str, reference: str, by_title: Mapping[str, list[str]]) -> str | None:
    """The document that `name` calls `reference`; of several, the nearest to `name`."""
    *place, title = _public(reference).split(".")
    paths = [
        path
        for path in by_title.get(title, ())
        if all(part in path.split(".") for part in place)
    ]
    if not place:  # a bare name means an object of the same package
        package = name.partition(".")[0]
        paths = [path for path in paths if path.partition(".")[0] == package]
    return min(paths, key=lambda path: (-_common(path, name), path), default=None)


def _common(a: str, b: str) -> int:
    """How many leading parts two dotted names share."""
    pairs = zip(a.split("."), b.split("."))
    return next((i for i, (x, y) in enumerate(pairs) if x != y), len(a.split(".")))
