"""A trained model as one folder for transformers, sentence-transformers and docjax.

docjax writes the folder beside its place, compares its vectors with the model's and
then renames it: the folder is complete and right, or it is not there.
`docjax.huggingface.exported` and `docjax.export.libraries` describe its files.
"""

import contextlib
import dataclasses
import functools
import itertools
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

import docjax
from docjax.data.corpus import Corpus
from docjax.data.records import full_text
from docjax.data.sources.pydocs import pydocs
from docjax.data.tokenizer import load_tokenizer
from docjax.errors import UserError
from docjax.export import card, libraries, parity
from docjax.huggingface import docjax_json, exported, files
from docjax.huggingface.family import family_of
from docjax.model.document_model import DocumentModel
from docjax.model.load import doubt, in_dtype, load
from docjax.parts import named
from docjax.run import metrics
from docjax.storage import atomic, json_file, manifest
from docjax.types import Document, Section

logger = logging.getLogger(__name__)

MOST = 1e-4  # the largest difference that a number of an export may have
SAMPLE = 8  # documents to compare vectors of, besides one of LONG words
LONG = 2000
COMMIT = r"[^@]+@[0-9a-f]{40}"  # a hub name pinned to a commit


def export(
    model: DocumentModel | str | Path,
    out: str | Path,
    documents: Sequence[Document] | None = None,
    truncate_dim: int | None = None,
    allow: str | Sequence[str] = (),
) -> Path:
    """Writes a model, or that of a run, folder or hub name, to the new folder `out`.

    Args:
      truncate_dim: the numbers of a vector that docjax and sentence-transformers keep;
        None: as many as the model keeps.
      documents: the libraries must give the same vectors for these; None: some
        documents of the run's corpus, or docstrings if there is no run.
      allow: packages outside of docjax, as for `load`.

    Raises:
      UserError: if `out` exists or cannot be written, if a part of the model has no
        torch form, if a number of a vector differs by more than 1e-4, if vectors are
        shorter than `truncate_dim`, or if sentence-transformers is not installed. Then
        no folder is left.
    """
    out = Path(out)
    if out.exists():
        raise UserError(f"{out} exists: remove it, or export to another folder")
    if not isinstance(model, DocumentModel):
        model = load(model, allow=allow)
    source = model.source or model
    if truncate_dim is not None:
        model = dataclasses.replace(model, truncate_dim=truncate_dim)
    with _filled(out, model, source, documents) as partial:
        atomic.rename(partial, out)
    return out


def export_run(run: Path, allow: str | Sequence[str] = ()) -> Path:
    """Writes a run to RUN/export, unless an export of the same parameters is there."""
    out, model = run / "export", load(run, allow=allow)
    if _holds(out, model):
        logger.info("%s already holds these parameters", out)
        return out
    with _filled(out, model, run) as partial:
        shutil.rmtree(out, ignore_errors=True)
        atomic.rename(partial, out)
    return out


def _holds(out: Path, model: DocumentModel) -> bool:
    """Whether an intact export of the model lies in `out`."""
    try:
        return docjax_json.read(out).get("fingerprint") == model.fingerprint()
    except UserError:  # missing, damaged or of another docjax: to be written again
        return False


@contextlib.contextmanager
def _filled(
    out: Path,
    model: DocumentModel,
    source: DocumentModel | str | Path,
    documents: Sequence[Document] | None = None,
) -> Iterator[Path]:
    """Yields the whole export in a new folder beside `out`; removes the folder at the
    end unless it was renamed. `source` is where the model came from."""
    facts = _facts(model) | {"base": _base(source)}
    if (run := _run(source)) and (why := doubt(run)):
        facts["doubt"] = why
    beside = {"prefix": f".{out.name}.", "dir": out.parent}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(**beside, ignore_cleanup_errors=True) as name:
            partial = Path(name)
            partial.chmod(0o755)  # only the owner could read it
            _fill(partial, out.name, model, facts, _run(source), documents)
            yield partial
    except (OSError, SafetensorError) as error:
        raise UserError(f"{out}: cannot be written ({error})") from None


def _fill(
    folder: Path,
    name: str,
    model: DocumentModel,
    facts: dict[str, Any],
    run: Path | None,
    documents: Sequence[Document] | None,
) -> None:
    """Writes the files of the export called `name`, which `facts` describe."""
    _write(folder, model, facts)
    manifest.seal(folder)  # loading refuses a folder without a manifest
    facts["measured"] = _measured(folder, model, list(documents or _samples(run)))
    docjax_json.write(folder, facts)
    text = card.card(name, facts, folder, family_of(model.encoder.segment), _about(run))
    (folder / "README.md").write_text(text, encoding="utf-8")
    manifest.seal(folder)
    count, differences = (
        facts["measured"]["documents"],
        facts["measured"]["differences"],
    )
    largest = max(differences.values(), default=0.0)
    text = "exported %s: vectors of %d documents differ by at most %.1e in %s"
    logger.info(text, name, count, largest, ", ".join(differences))


def _run(model: Any) -> Path | None:
    """The run directory that `model` names, or None."""
    run = None if isinstance(model, DocumentModel) else Path(model)
    return run if run and (run / "checkpoints").is_dir() else None


def _base(model: DocumentModel | str | Path) -> str | None:
    """NAME@COMMIT of the hub weights that training started from, or of the model."""
    if isinstance(model, DocumentModel):
        return None
    start = model
    while start and _run(start):
        start = json_file.read(Path(start) / "config.json").get("init")
    if start == model:
        start = files.pinned(model)
    return start if start and re.fullmatch(COMMIT, str(start)) else None


def _facts(model: DocumentModel) -> dict[str, Any]:
    """What docjax.json says of a model. Raises UserError for what cannot be exported."""
    parity.check_installed()
    return {
        "docjax": docjax.__version__,
        "encoder": named.node(model.encoder),
        "units": named.node(model.units),
        "segments": named.node(model.segments),
        "graph": named.node(model.graph),
        "limits": model.limits._asdict(),
        "labels": list(model.labels),
        "width": model.width,
        "truncate_dim": model.truncate_dim,
        "similarity": model.similarity_fn_name,
        "prompts": dict(model.prompts),
        "default_prompt_name": model.default_prompt_name,
        "include_prompt": model.include_prompt,
        "fingerprint": model.fingerprint(),
        "torch": _in_torch(model),
    }


def _in_torch(model: DocumentModel) -> dict[str, Any]:
    """The parts of a model as `docjax_module.py` builds them: config nodes whose `fn`
    is a name in a file of the exported folder, which a part says itself (`exported_as`).

    Raises:
      UserError: for a part that has no form there, or a segment encoder of no family.
    """
    parts = {
        "units": model.units,
        "segments": model.segments,
        "graph": model.graph,
        "encoder.document": model.encoder.document,
    }
    nodes = {
        path.rpartition(".")[2]: named.node(part, functools.partial(_form, path))
        for path, part in parts.items()
    }
    return nodes | {"segment": _segment(model.encoder.segment)}


def _segment(segment: Any) -> dict[str, Any]:
    try:
        family = family_of(segment)
    except UserError:
        raise _without_form("encoder.segment", type(segment)) from None
    keywords = named.node(segment)
    return keywords | family.in_torch(keywords) | {"fn": family.exported_as}


def _form(path: str, part: Any) -> str:
    """What stands for a function or class; another class of docjax may inherit from it,
    but computes something else."""
    form = vars(part).get("exported_as")
    if form is None:
        raise _without_form(path, part)
    return form


def _without_form(path: str, part: Any) -> UserError:
    return UserError(
        f"{path} {named.dotted(part)} has no torch form: sentence-transformers cannot "
        "read this model; `docjax encode` and `docjax.load` can"
    )


def _write(folder: Path, model: DocumentModel, facts: Mapping[str, Any]) -> None:
    """Writes all but the model card and the manifest."""
    docjax_json.write(folder, facts)
    exported.write_params(folder, model.encoder, model.params)
    model.tokenizer.save(folder / "tokenizer.json")
    family = family_of(model.encoder.segment)
    if family.in_transformers:
        known = model.tokenizer.backend.get_vocab(with_added_tokens=True)
        libraries.write_transformer(folder, facts, family, set(known))
    special = len(model.tokenizer.prefix) + len(model.tokenizer.suffix)
    libraries.write_modules(folder, facts, family, special > 0)


def _samples(run: Path | None) -> list[Document]:
    """Documents of the run, else docstrings; then one document of LONG words."""
    corpus = run / "corpus" if run else None
    documents = list(_read_back(corpus)) if corpus and corpus.is_dir() else []
    documents = documents or list(itertools.islice(pydocs(("optax",)), SAMPLE))
    words = " ".join(full_text(document) for document in documents).split()
    repeated = " ".join((words * (LONG // len(words) + 1))[:LONG])
    return [*documents, Document("long", (Section("", repeated),))]


def _read_back(folder: Path) -> Iterator[Document]:
    """Some documents of a corpus, short to long; the tokenizer decodes their texts.

    Documents of more than LONG words are left out, unless all are longer.
    """
    corpus = Corpus.open(folder)
    backend = load_tokenizer(folder.parent / "tokenizer.json").backend
    order = np.argsort(corpus.words, kind="stable")
    order = order[: max(1, int((corpus.words <= LONG).sum()))]
    for place in np.linspace(0, len(order) - 1, min(SAMPLE, len(order))):
        encoded = corpus[int(order[int(place)])]
        texts = [""] * (1 + int(encoded.sections.max()))
        for i, number in enumerate(encoded.sections):
            ids = encoded.tokens[encoded.offsets[i] : encoded.offsets[i + 1]]
            texts[number] += backend.decode(ids.tolist()) + " "
        edges = tuple((int(a), int(b)) for a, b in encoded.edges)
        if any(map(str.strip, texts)):
            sections = tuple(Section("", text) for text in texts)
            yield Document(str(int(place)), sections, edges=edges)


def _measured(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> dict[str, Any]:
    """The largest differences by library, and the numbers of documents and words.
    Raises UserError if a difference is too large."""
    differences = parity.differences(
        folder, in_dtype(model, "float32"), load(folder, dtype="float32"), documents
    )
    if not all(value <= MOST for value in differences.values()):
        raise UserError(
            f"the exported vectors differ from the model's by {differences}, but at "
            f"most {MOST} is allowed; nothing is exported; please report this as a bug"
        )
    words = [len(full_text(document).split()) for document in documents]
    return {
        "differences": differences,
        "documents": len(words),
        "words": [min(words), max(words)],
    }


def _about(run: Path | None) -> dict[str, Any]:
    """The config of a run, its last metrics, and the summary of its corpus."""
    if run is None:
        return {}
    corpus = run / "corpus"
    return {
        "config": json_file.read(run / "config.json"),
        "metrics": metrics.last_metrics(run),
        "corpus": Corpus.open(corpus).summary() if corpus.is_dir() else {},
    }
