"""Our parameter paths <-> the names of tensors in the files of other libraries.

Each record of `docjax/huggingface/families/` has a `Names`. Other libraries keep the
weight of a dense layer as [out, in], we keep it as [in, out]. Files are in `files.py`.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


@dataclasses.dataclass(frozen=True, eq=False)
class Names:
    """The tensors of a family: our parameter path -> their name."""

    # Outside of the layers. The first shows the prefix, such as "bert.", that a file
    # puts before all names of the encoder.
    once: Mapping[str, str]
    # Of each layer; "{i}" stands for the number of the layer.
    layer: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Of the head that predicts masked tokens, without a prefix. A file may lack it.
    masked_lm: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""  # of `once` and `layer` in an export with a head
    decoder: str = ""  # the head's last weight, not read: ours are the embeddings
    buffers: tuple[str, ...] = ()  # beginnings of names that are no parameters
    missing: tuple[str, ...] = ()  # our paths that `layer` names, but that no file has

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

        Poolers and heads of tasks are left out. Names from before 2019 (gamma, beta)
        become today's names. The result is empty for a file without the anchor.
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


def weights_and_biases(
    layers: Mapping[str, str], ours: str = "", theirs: str = ""
) -> dict[str, str]:
    """Our path -> their name of both tensors of each layer, after these beginnings.

    Layers whose path ends with "norm" are normalizations, the others are dense.
    """
    table = {}
    for path, name in layers.items():
        weight = "scale" if path.endswith("norm") else "kernel"
        table[f"{ours}{path}/{weight}"] = f"{theirs}{name}.weight"
        table[f"{ours}{path}/bias"] = f"{theirs}{name}.bias"
    return table


def read(tensor: Any, path: str) -> np.ndarray:
    """A tensor of a file as the parameter at `path`, float32 and in our layout."""
    return np.ascontiguousarray(swap(path, tensor[:].astype(np.float32, copy=False)))


def swap(path: str, tensor: np.ndarray) -> np.ndarray:
    """A tensor in the other layout: kernels are transposed in other libraries."""
    return tensor.T if path.endswith("/kernel") else tensor


def shape_in_file(path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that other libraries give to the parameter at `path`."""
    return shape[::-1] if path.endswith("/kernel") else shape


def some(items: Sequence[str], most: int = 5) -> str:
    """The first `most` items, and the number of the rest, for a message."""
    rest = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + rest


def _modern(name: str) -> str:
    for old, new in OLD_NAMES.items():
        name = name.replace(old, new)
    return name
