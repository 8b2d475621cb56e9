"""Heat maps of a few documents of a run, their sections and segments, for the report."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from docjax.explain import similarity_maps
from docjax.types import Document, Task, TaskData, TaskOfPairs

PAIRS = 3  # similar pairs whose documents are shown
Similarities = similarity_maps.Similarities


def maps(
    tasks: Mapping[str, Task],
    data: TaskData,
    documents: Iterable[Document],
    similarities: Callable[[Sequence[Document]], Similarities],
    folder: Path,
) -> dict[str, Path]:
    """The maps of the documents of the first similar pairs that a task on pairs scores,
    by kind; none without such a task. The documents of a pair stand side by side.

    Args:
      documents: those of the run, with their texts.
      similarities: `DocumentModel.similarities` of the trained model.

    Raises:
      UserError: without such pairs, or for documents with too many passages.
    """
    of_pairs = [task for task in tasks.values() if isinstance(task, TaskOfPairs)]
    if not of_pairs:
        return {}
    similar = of_pairs[0].similar(data, "test")[:PAIRS]
    names = list(dict.fromkeys(name for pair in similar for name in pair))
    chosen = {document.id: document for document in documents if document.id in names}
    cosines = similarities([chosen[name] for name in names])
    return similarity_maps.write(folder / "similarities", cosines)
