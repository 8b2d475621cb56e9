"""A retrieval collection in a folder, in BEIR's layout or with the files of TREC.

corpus.jsonl, queries.jsonl   documents; also .tsv (MS MARCO's), .csv, .json, .parquet,
                              .arrow and .xlsx (`docjax/data/sources/files.py`)
queries.txt                   TREC topics (`docjax/data/sources/topics.py`)
qrels/SPLIT.tsv               query-id, corpus-id, score; may begin with a header
qrels/SPLIT.qrels             TREC's: query-id, 0, corpus-id, score
folds.json                    optional: groups of queries (`docjax/retrieval/folds.py`)

All but the last also as .gz, .xz, .zst or .bz2.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

from docjax.data.counted import MEND
from docjax.data.documents import BadDocument, NoDocuments, decode
from docjax.data.formats import stem
from docjax.data.records import full_text
from docjax.data.sources import files as files_lib
from docjax.data.sources.lines import open_lines
from docjax.data.sources.topics import topics
from docjax.data.streams import PACKED
from docjax.errors import UserError
from docjax.retrieval import folds as folds_lib
from docjax.types import Document, Qrels, Reader

TABLES = (".jsonl", ".tsv", ".csv", ".json", ".parquet", ".arrow", ".xlsx")
TOPICS = ".txt"
KINDS = {"corpus": TABLES, "queries": (*TABLES, TOPICS)}
QRELS = (".qrels", ".tsv")
FOLDS = "folds.json"
Judgement = tuple[str, str, str, int]  # place, query, document, grade
SCORES = (  # names of the last column in a header
    *("score", "relevance", "rel", "grade", "gain", "label"),
    *("judgment", "judgement", "rating", "value"),
)


@dataclasses.dataclass(frozen=True)
class BeirFolder:
    """The files of a collection, each read when it is asked for.

    Every method raises UserError for a file that is missing or damaged.
    """

    folder: Path

    def reader(self) -> Reader:
        """A function of max_bad_fraction that yields the documents."""
        return functools.partial(read_documents, str(self._file("corpus")))

    def queries(self) -> dict[str, str]:
        """The text of each query by its id."""
        queries = read_queries(str(self._file("queries")))
        return {query.id: full_text(query) for query in queries}

    def splits(self) -> tuple[str, ...]:
        """The splits with judgements."""
        return tuple(self._qrels)

    def judgements(self, split: str, queries: Container[str] | None = None) -> Qrels:
        """The judgements of all queries of a split.

        queries: the ids that a query may have; None: any.

        Raises UserError for a line that is not a judgement or comes twice, and for a
        judged query that is not in `queries`.
        """
        qrels: Qrels = {}
        for place, query, document, gain in _judgements(self._qrels[split]):
            if queries is not None and query not in queries:
                raise UserError(
                    f"{place}: no query has the id {query!r}: add the query, or remove "
                    "this line"
                )
            gains = qrels.setdefault(query, {})
            if document in gains:
                raise UserError(
                    f"{place}: query {query!r} and document {document!r} were judged "
                    "before: remove one line"
                )
            gains[document] = gain
        return qrels

    def folds(self, queries: Iterable[str]) -> Sequence[Sequence[str]]:
        """The given folds, which hold all `queries`; none without a file of folds."""
        file = self.folder / FOLDS
        return folds_lib.read(file, queries) if file.is_file() else ()

    def mend(self, split: str) -> str:
        """How a user gives a split that is missing."""
        return f"add qrels/{split}.tsv or {split}.qrels"

    def files(self, splits: Iterable[str]) -> list[Path]:
        """The files of queries, of these splits' judgements, and of folds."""
        files = [self._file("queries"), *(self._qrels[split] for split in splits)]
        if (self.folder / FOLDS).is_file():
            files.append(self.folder / FOLDS)
        return files

    def __str__(self) -> str:
        return str(self.folder)

    @functools.cached_property
    def _qrels(self) -> dict[str, Path]:
        """The files of judgements by split."""
        self._check_folder()
        files: dict[str, Path] = {}
        listed = sorted((self.folder / "qrels").glob("*"))
        for file in (file for file in listed if _kind(file) in QRELS):
            split = stem(file).stem
            if split in files:
                raise UserError(
                    f"{file.parent}: {files[split].name} and {file.name} judge the "
                    "same split: remove one file"
                )
            files[split] = file
        return files

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            what = "is no folder" if self.folder.exists() else "no such folder"
            raise UserError(
                f"{self.folder}: {what}; give the folder of a collection, with a corpus, "
                "queries and qrels/test.tsv"
            )

    def _file(self, name: str) -> Path:
        self._check_folder()
        names = [
            name + kind + packed for kind in KINDS[name] for packed in ("", *PACKED)
        ]
        existing = [file for file in map(self.folder.joinpath, names) if file.is_file()]
        if len(existing) != 1:
            raise UserError(
                f"{self.folder}: {len(existing)} files are called "
                f"{' or '.join(name + kind for kind in KINDS[name])} (also .gz, .xz, "
                ".zst), not 1: a collection has a corpus, queries and qrels/test.tsv"
            )
        return existing[0]


def read_documents(
    path: str, max_bad_fraction: float = 0.0, report: Counter | None = None, **reading
) -> Iterator[Document]:
    """The documents of the files that `path` matches, or of a folder; `reading` are
    keywords of `docjax.data.sources.files.files`, which also says what it raises."""
    counting = {"max_bad_fraction": max_bad_fraction, "report": report}
    return files_lib.files(path, **counting, **reading)


def read_queries(
    path: str, encoding: str | None = None, text: str | None = None
) -> Iterator[Document]:
    """The queries of the files that `path` matches: also TREC topics (.txt).

    encoding, text: as keywords of `files`. Raises UserError as `files` or `topics`; no
    bad query is left out.
    """
    try:
        if _kind(Path(path)) == TOPICS:
            yield from topics(path)
        else:
            yield from files_lib.queries(path, encoding, text)
    except NoDocuments:
        raise UserError(f"{path}: no queries; add one or more") from None
    except BadDocument as error:
        what = str(error).removesuffix(MEND)
        raise UserError(f"{what}: mend this query, or take it out") from None


def _judgements(file: Path) -> Iterator[Judgement]:
    """The judgements in a file, each with its place."""
    is_trec = _kind(file) == ".qrels"
    for number, line in enumerate(open_lines(file), start=1):
        place = f"{file}, line {number}"
        text = decode(line, place).rstrip("\r\n")
        may_be_header = number == 1 and not is_trec
        last = (text.lower().split() or [""])[-1]
        if last and not (may_be_header and last in SCORES):
            yield _judgement(text, place, is_trec, may_be_header)


def _judgement(text: str, place: str, is_trec: bool, may_be_header: bool) -> Judgement:
    fields = text.split(None if is_trec else "\t")
    try:
        query, *between, document, score = fields
        if len(between) != is_trec or abs(int(score)) >= 1 << 31:  # as trec_eval
            raise ValueError
        return place, query, document, int(score)
    except ValueError:
        form = "query-id, corpus-id and a whole score, with tabs between: mend the line"
        if is_trec:
            form = "query-id, 0, corpus-id and a whole score: mend the line"
        elif may_be_header and fields[-1].isalpha():
            form += ", or call its last column score if it is a header"
        elif len(text.split()) == 4:
            form += ", or rename .tsv to .qrels if the file has the form of TREC"
        raise UserError(f"{place}: {text!r} is not {form}") from None


def _kind(file: Path) -> str:
    """The suffix that says what a file holds."""
    return stem(file).suffix.lower()
