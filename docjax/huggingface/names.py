"""Our parameter paths <-> the names of tensors in the files of other libraries.

Each record of `docjax/huggingface/families/` has a `Names`. Other libraries keep the
weight of a dense layer as [out, in], we keep it as [in, out]. Files are in `files.py`.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclasses.dataclass(frozen=True, eq=False)
class Names:
    """The tensors of a family: our parameter path -> their name.

    Attributes:
      once: the tensors outside of the layers. The first shows the prefix, such as
        "bert.", that a file puts before all names of the encoder.
      layer: the tensors of each layer; "{i}" stands for the number of the layer.
      masked_lm: the tensors of the head that predicts masked tokens, as a file has
        them, without a prefix. A file may lack the head.
      prefix: what exports put before the names in `once` and `layer` in a file with a
        head; transformers asks for it.
      decoder: the weight of that head's last layer. We do not read this tensor: the
        layer takes the embeddings of the tokens.
      buffers: beginnings of names inside the encoder that are no parameters.
      missing: our paths that `layer` would name, but that no file has.
    """

    once: Mapping[str, str]
    layer: Mapping[str, str] = dataclasses.field(default_factory=dict)
    masked_lm: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""
    decoder: str = ""
    buffers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """The tensor whose name shows the prefix of a file."""
        return next(iter(self.once.values()))

    def table(self, layers: int = 0) -> dict[str, str]:
        """Our parameter path -> their name without a prefix, for the encoder alone."""
        return dict(self.once) | {
            ours.format(i=i): theirs.format(i=i)
            for i in range(layers)
            for ours, theirs in self.layer.items()
            if ours.format(i=i) not in self.missing
        }

    def encoder_names(self, names: Iterable[str]) -> dict[str, str]:
        """Name in the table -> name in the file, for the tensors of the encoder.

        Poolers and the heads of tasks lie outside of the encoder and are left out.
        Names from before 2019 (gamma, beta) become today's names. The result is empty
        for a file without the anchor.
        """
        names = list(names)
        anchors = [name for name in names if name.endswith(self.anchor)]
        if not anchors:
            return {}
        prefix = min(anchors, key=len).removesuffix(self.anchor)
        inside = {n.removeprefix(prefix): n for n in names if n.startswith(prefix)}
        return {
            _modern(short): name
            for short, name in inside.items()
            if short.startswith(self._roots) and not short.startswith(self.buffers)
        }

    def head_names(self, names: Iterable[str]) -> dict[str, str]:
        """Name in `masked_lm` -> name in the file, for the tensors in the file."""
        known = set(self.masked_lm.values())
        return {_modern(name): name for name in names if _modern(name) in known}

    def layer_count(self, names: Iterable[str]) -> int:
        """The number of layers that the names cover."""
        before, _, _ = next(iter(self.layer.values())).partition("{i}")
        numbers = (re.match(rf"{re.escape(before)}(\d+)\.", name) for name in names)
        return len({match.group(1) for match in numbers if match})

    @property
    def _roots(self) -> tuple[str, ...]:
        """How the names of the encoder begin: "embeddings.", "encoder."."""
        names = (*self.once.values(), *self.layer.values())
        return tuple({f"{name.partition('.')[0]}." for name in names})


def swap(path: str, tensor: np.ndarray) -> np.ndarray:
    """A tensor in the other layout: from ours to theirs, or back."""
    return tensor.T if swapped(path) else tensor


def swapped(path: str) -> bool:
    """Whether other libraries keep the parameter at `path` transposed."""
    return path.endswith("/kernel")


def some(items: Sequence[str], most: int = 5) -> str:
    """The first `most` items, and the number of the rest, for a message."""
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


def _modern(name: str) -> str:
    for old, new in OLD_NAMES.items():
        name = name.replace(old, new)
    return name
