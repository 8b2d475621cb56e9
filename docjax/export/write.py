"""A trained model as one folder for transformers, sentence-transformers and docjax.

The folder is written beside its place, its vectors are compared with the model's, and
then it is renamed: it is complete and right, or not there. Its files are described in
`docjax.huggingface.exported` and `docjax.export.libraries`.
"""

import contextlib
import itertools
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from safetensors import SafetensorError

import docjax
from docjax import config as config_lib
from docjax.data.corpus import Corpus
from docjax.data.documents import full_text
from docjax.data.sources.pydocs import pydocs
from docjax.data.tokenizer import load_tokenizer
from docjax.errors import UserError
from docjax.export import card, libraries, parity
from docjax.huggingface import exported, files
from docjax.model.document_model import DocumentModel
from docjax.model.load import load
from docjax.run import metrics
from docjax.storage import manifest
from docjax.types import Document, Section

MOST = 1e-4  # that a number of a vector may differ
SAMPLE = 8  # documents that are compared, and one of LONG words
LONG = 2000
COMMIT = r"[^@]+@[0-9a-f]{40}"  # a hub name in one version


def export(
    model: DocumentModel | str | Path,
    out: str | Path,
    documents: Sequence[Document] | None = None,
) -> Path:
    """Writes a model, or that of a run, folder or hub name, to the new folder `out`.

    Args:
      documents: whose vectors are compared between the libraries; None takes some of
        the run's corpus, or docstrings where there is none.

    Raises:
      UserError: if `out` exists or cannot be made, a vector differs by more than
        1e-4 (nothing is left then), or sentence-transformers is not installed.
    """
    out = Path(out)
    if out.exists():
        raise UserError(f"{out} exists: remove it, or export to another folder")
    with _beside(out) as partial:
        _fill(partial, out.name, model, documents)
        partial.rename(out)
    return out


def export_run(run: Path) -> Path:
    """Writes a run to RUN/export, unless that is there and of its present parameters."""
    out, model = run / "export", load(run)
    if out.exists() and exported.read(out).get("fingerprint") == model.fingerprint():
        logging.info("%s is there, of these parameters", out)
        return out
    with _beside(out) as partial:
        _fill(partial, out.name, run, None)
        shutil.rmtree(out, ignore_errors=True)
        partial.rename(out)
    return out


@contextlib.contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A new folder beside `out`, which is gone at the end if it was not renamed."""
    partial = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        partial.chmod(0o755)  # it is made for its owner alone
        yield partial
    except (OSError, SafetensorError) as error:
        raise UserError(f"{out}: cannot be written ({error})") from None
    finally:
        if partial:
            shutil.rmtree(partial, ignore_errors=True)


def _fill(
    folder: Path,
    name: str,
    model: DocumentModel | str | Path,
    documents: Sequence[Document] | None,
) -> None:
    """Writes the files of an export that will be called `name`; see `export`."""
    parity.check_installed()
    run, base = _run(model), _base(model)
    model = model if isinstance(model, DocumentModel) else load(model)
    facts = _write(folder, model) | {"base": base}
    manifest.seal(folder)  # or nobody would read it
    facts["measured"] = _measured(folder, model, list(documents or _samples(run)))
    exported.write(folder, facts)
    text = card.card(name, facts, libraries.is_stock(folder), _about(run))
    (folder / "README.md").write_text(text, encoding="utf-8")
    manifest.seal(folder)
    logging.info("exported %s: %s", name, facts["measured"])


def _run(model: Any) -> Path | None:
    """The run directory that `model` names, if it does."""
    run = None if isinstance(model, DocumentModel) else Path(model)
    return run if run and (run / "checkpoints").is_dir() else None


def _base(model: DocumentModel | str | Path) -> str | None:
    """NAME@COMMIT of the hub's weights that training began with, or that are these."""
    if isinstance(model, DocumentModel):
        return None
    found = model
    while found and _run(found):
        found = config_lib.read_json(Path(found) / "config.json").get("init")
    if found == model:
        found = files.pinned(model)
    return found if found and re.fullmatch(COMMIT, str(found)) else None


def _write(folder: Path, model: DocumentModel) -> dict[str, Any]:
    """Writes all but the model card and the manifest; gives docjax.json."""
    facts = {
        "docjax": docjax.__version__,
        "encoder": config_lib.node(model.encoder),
        "segments": config_lib.node(model.segments),
        "graph": config_lib.node(model.graph),
        "limits": dict(model.limits),
        "labels": list(model.labels),
        "similarity": model.similarity_fn_name,
        "fingerprint": model.fingerprint(),
    }
    exported.write(folder, facts)
    exported.write_params(folder, model.encoder, model.params)
    model.tokenizer.save(folder / "tokenizer.json")
    if libraries.is_transformer(facts):
        known = model.tokenizer.backend.get_vocab(with_added_tokens=True)
        libraries.write_transformer(folder, facts, set(known))
    special = len(model.tokenizer.prefix) + len(model.tokenizer.suffix)
    libraries.write_modules(folder, facts, special > 0)
    return facts


def _samples(run: Path | None) -> list[Document]:
    """Documents of the run, else docstrings; at the end all of them as a long one."""
    corpus = run / "corpus" if run else None
    found = list(_read_back(corpus)) if corpus and corpus.is_dir() else []
    found = found or list(itertools.islice(pydocs(("optax",)), SAMPLE))
    words = " ".join(full_text(one) for one in found).split()
    long = " ".join((words * (LONG // len(words) + 1))[:LONG])
    return [*found, Document("long", (Section("", long),))]


def _read_back(folder: Path) -> Iterator[Document]:
    """Some documents of a corpus by length, the texts as the tokenizer gives them back.

    Those of more than LONG words are left out, unless all are.
    """
    corpus = Corpus.open(folder)
    backend = load_tokenizer(folder.parent / "tokenizer.json").backend
    order = np.argsort(corpus.words, kind="stable")
    order = order[: max(1, int((corpus.words <= LONG).sum()))]
    for place in np.linspace(0, len(order) - 1, min(SAMPLE, len(order))):
        one = corpus[int(order[int(place)])]
        texts = [""] * (1 + int(one.sections.max()))
        for i, number in enumerate(one.sections):
            ids = one.tokens[one.offsets[i] : one.offsets[i + 1]]
            texts[number] += backend.decode(ids.tolist()) + " "
        edges = tuple((int(a), int(b)) for a, b in one.edges)
        if any(map(str.strip, texts)):
            sections = tuple(Section("", text) for text in texts)
            yield Document(str(int(place)), sections, edges=edges)


def _measured(
    folder: Path, model: DocumentModel, documents: Sequence[Document]
) -> dict[str, Any]:
    """The largest differences by library, and of how many documents and words.

    Raises:
      UserError: if one is too large.
    """
    found = parity.differences(folder, model, documents)
    if not all(value <= MOST for value in found.values()):
        raise UserError(
            f"the exported vectors differ from the model's by {found}, more than {MOST} "
            "allows: nothing is exported"
        )
    words = [len(full_text(one).split()) for one in documents]
    return {
        "differences": found,
        "documents": len(words),
        "words": [min(words), max(words)],
    }


def _about(run: Path | None) -> dict[str, Any]:
    """Of a run: its config, its last metrics, and what its corpus holds."""
    if run is None:
        return {}
    corpus = run / "corpus"
    return {
        "config": config_lib.read_json(run / "config.json"),
        "metrics": (metrics.read(run) or [{}])[-1],
        "corpus": Corpus.open(corpus).summary() if corpus.is_dir() else {},
    }
