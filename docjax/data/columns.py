"""Which column of a table is the text, the title, the label ... of a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from docjax.data.documents import KEYS
from docjax.errors import UserError

# The usual names of a column, the first being docjax's own; upper and lower case, and
# "-", " " and "_" count alike.
USUAL: dict[str, tuple[str, ...]] = {
    "id": (
        *("id", "_id", "doc_id", "docid", "document_id", "pid", "passage_id"),
        *("docno", "corpus_id", "article_id", "paper_id", "uid", "uuid"),
    ),
    "title": ("title", "headline", "name", "heading", "subject"),
    "text": (
        *("text", "body", "content", "contents", "abstract", "document", "passage"),
        *("article", "full_text", "fulltext", "description", "message", "review"),
        *("sentence", "post", "comment"),
    ),
    "label": ("label", "category", "class", "target", "topic"),
    "split": ("split", "partition", "subset"),
    "query": ("query",),
    "links": ("links",),
}
QUERIES: dict[str, tuple[str, ...]] = USUAL | {
    "id": ("id", "_id", "query_id", "queryid", "qid", "topic_id", "number", "num"),
    "title": ("title",),
    "text": ("text", "query", "question"),
    "query": (),
}
STRUCTURE = ("sections", "edges", "metadata")  # keys without other names
NEEDED = ("text", "id")  # a doubt about one of them is an error
FLAGS = {key: f"--{key}-column, or source.{key} of a run" for key in USUAL}
WAYS = {key: f"name it with {key} ({flag})" for key, flag in FLAGS.items()}


class Names(NamedTuple):
    """The column of each key, and the columns that go to metadata."""

    of: Mapping[str, str]
    rest: Sequence[str]
    doubts: Mapping[str, Sequence[str]]  # keys that two or more columns may be
    own: frozenset[str]  # other names that keep docjax's meaning where a row has them

    def record(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row by docjax's own keys."""
        found = {key: row[name] for key, name in self.of.items() if name in row}
        taken = set(self.of.values())
        rest = {key: value for key, value in row.items() if key not in taken}
        for key in self.own & rest.keys():
            found[key] = rest.pop(key)
        if rest:
            given = found.get("metadata") or {}
            if not isinstance(given, Mapping):
                given = {"metadata": given}
            found["metadata"] = {**given, **rest}
        return found

    @property
    def is_worth_telling(self) -> bool:
        """Whether a user of JSON lines may be surprised."""
        other = any(key != name for key, name in self.of.items() if name != "_id")
        return other or bool(self.doubts) or "id" not in self.of

    def __str__(self) -> str:
        parts = [f"{key} is {name!r}" for key, name in self.of.items() if key != name]
        same = [key for key, name in self.of.items() if key == name]
        told = [", ".join(same)] if same else []
        told += parts
        if "id" not in self.of:
            told.append("ids are numbers of rows")
        if self.rest:
            told.append(f"to metadata: {listed(self.rest)}")
        for key, names in self.doubts.items():
            told.append(f"no {key}, {listed(names)} may be it ({FLAGS[key]})")
        return "; ".join(told)


def resolve(
    asked: Mapping[str, str | None],
    columns: Iterable[str],
    place: str,
    usual: Mapping[str, tuple[str, ...]] = USUAL,
    mend: str = "",
    ways: Mapping[str, str] = WAYS,
) -> Names:
    """The column of each key among `columns`.

    asked: the column that the user names for a key, "" for no such column; None or no
    entry: a column with one of the `usual` names. `place` names the table in errors,
    and `mend` is what else may mend one without a text; `ways` say how to name a column.

    Raises:
      UserError: for a name that no column has, and if no column or more than one may be
        the text, or more than one the id.
    """
    columns = list(columns)
    of: dict[str, str] = {}
    for key in usual:
        if name := asked.get(key):
            of[key] = _named(key, name, columns, place)
    doubts: dict[str, Sequence[str]] = {}
    for key, names in usual.items():
        if asked.get(key) is not None:
            continue
        found = _found(names, [name for name in columns if name not in of.values()])
        if len(found) == 1:
            of[key] = found[0]
        elif found:
            doubts[key] = found
    for key in NEEDED:
        if key in doubts:
            raise UserError(
                f"{place}: {listed(doubts[key])} may each be the {key}: {ways[key]}; the "
                f"columns are {listed(columns)}"
            )
    if "text" not in of and "sections" not in columns:
        raise UserError(
            f"{place}: no column has a usual name of the text; the columns are "
            f"{listed(columns)}: {ways['text']}{mend}"
        )
    taken = {*of.values(), *STRUCTURE}
    rest = [name for name in columns if name not in taken]
    return Names(of, rest, doubts, _own(asked, of))


def _own(asked: Mapping[str, str | None], of: Mapping[str, str]) -> frozenset[str]:
    """The names that keep docjax's meaning where no column has been found for them: a
    row of JSON may have keys that the first rows lack."""
    own = {key for key in KEYS if key not in of and asked.get(key) is None}
    if "id" in of or asked.get("id") == "":
        own.discard("_id")
    if asked.get("text"):  # the user names the text, so sections are not read
        own -= {"sections", "edges"}
    return frozenset(own)


def known(columns: Iterable[str]) -> dict[str, str]:
    """The columns with usual names, by key; documents' and queries' names count."""
    columns = list(columns)
    found: dict[str, str] = {}
    for usual in (USUAL, QUERIES):
        for key, names in usual.items():
            if some := _found(names, columns):
                found.setdefault(key, some[0])
    return found


def check_unique(columns: Sequence[str], place: str) -> None:
    """Raises UserError for two columns of one name."""
    for name in columns:
        if columns.count(name) > 1:
            raise UserError(
                f"{place}: {columns.count(name)} columns are called {name!r}: rename "
                "all but one"
            )


def _named(key: str, name: str, columns: Sequence[str], place: str) -> str:
    if name in columns:
        return name
    same = [column for column in columns if _plain(column) == _plain(name)]
    if len(same) == 1:
        return same[0]
    raise UserError(
        f"{key}={name!r} ({FLAGS[key]}): {place} has no such column; the columns are "
        f"{listed(columns)}"
    )


def _found(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns with one of the usual names; docjax's own name comes first."""
    for name in names[:1]:
        if name in columns:
            return [name]
        if own := [column for column in columns if _plain(column) == name]:
            return own
    return [column for column in columns if _plain(column) in names]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def listed(columns: Sequence[str], most: int = 20) -> str:
    """Names for a message."""
    names = [repr(name if len(name) <= 40 else f"{name[:40]}...") for name in columns]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
