"""Random mistakes in config files: each must give one line, or be harmless.

  python -m benchmarks.config_mutations --count 1000 --real 60

The benchmark changes every shipped config, at `:smoke`, at random and writes a file: it
deletes or renames a field, replaces a value, swaps two values, and so on. It then reads
the file as a run does, up to the corpus. It counts errors other than UserError, and
accepted configs with a value of the wrong type; beartype, which docjax itself does not
use for this, checks the types. `python -m docjax.main` also trains one step with
`--real` of the files.
"""

import argparse
import collections
import contextlib
import copy
import importlib
import inspect
import json
import math
import pkgutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from beartype import BeartypeConf, door

import docjax
from benchmarks import tiny
from docjax import config as config_lib
from docjax.errors import UserError
from docjax.parts import named
from docjax.run import fields, prepare
from docjax.run.places import Part

ROOT = Path(__file__).resolve().parents[1]
NAN, INFINITE = float("nan"), float("inf")
VALUES = (
    *(True, False, None, -1, 0, 1, 1e9, 0.5, -0.5, 10**12, NAN, INFINITE, -INFINITE),
    *("x", "", "docjax.", "a\nb", "(", [], [None], [1, "a"], {}, {"a": {"b": 1}}),
    *({"fn": "docjax.nothing"}, {"fn": None}, {"fn": "docjax.data.graphs.full"}),
)
TOWER = BeartypeConf(is_pep484_tower=True)  # a whole number is a float, too
Place = tuple[Any, Any]  # a dict or list, and the key or index of a value in it


def shipped() -> dict[str, dict[str, Any]]:
    """Every shipped config at `:smoke`, as JSON values."""
    return {
        name: named.plain(config_lib.load(name, variant="smoke"))
        for name in config_lib.shipped()
    }


def small(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The config with a corpus of 12 documents in `folder`, and one step."""
    path = folder / "corpus.jsonl"
    text = "A document says what its gradients do. " * 50
    rows = [
        dict(
            id=str(i), text=text, label="ab"[i % 2], split="test" if i > 7 else "train"
        )
        for i in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(path))
    return config | dict(source=source, steps=1, batch=4, checkpoint_every=None)


def mutated(
    config: dict[str, Any], generator: np.random.Generator
) -> tuple[dict[str, Any], str]:
    """A copy with one to three mistakes, and a description of the mistakes."""
    config, done = copy.deepcopy(config), []
    for _ in range(_choice(generator, (1, 1, 1, 2, 3))):
        change = _choice(generator, CHANGES)
        done.append(f"{change.__name__.strip('_')} {change(config, generator)}")
    return config, "; ".join(done)


def file_text(config: Any) -> str:
    """The config as a file of Python."""
    return (
        "from ml_collections import ConfigDict\n\nnan, inf = float('nan'), float('inf')"
        f"\n\n\ndef get_config():\n    return ConfigDict({config!r})\n"
    )


def read(path: Path) -> fields.RunConfig:
    """Does what a run does with a config file before it reads the corpus."""
    given = config_lib.load(path)
    config = fields.resolve(given)
    with contextlib.suppress(UserError):  # a file that a shipped config leaves open
        prepare.checked(config, path.with_suffix(".run"), None)
    again = fields.resolve(json.loads(json.dumps(config.to_json())))
    assert again == config, "config.json holds another config"
    return config


def wrong_types(config: fields.RunConfig) -> list[str]:
    """The fields and keywords whose value is not of the annotated type."""
    faults = []
    for path, value, hint in _typed(config, ""):
        odd_bool = isinstance(value, bool) and not _takes_bool(hint, value)
        odd_number = isinstance(value, float) and not math.isfinite(value)
        if odd_bool or odd_number or not door.is_bearable(value, hint, conf=TOWER):
            faults.append(f"{path} {value!r} is not {hint}")
    return faults


def _typed(config: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Every field and keyword: its path, its value and its annotation."""
    if isinstance(config, Part):
        yield from _typed_keywords(config.to_json(), path)
    elif isinstance(config, Mapping):
        for name, part in config.items():
            yield from _typed(part, f"{path}.{name}")
    elif hasattr(config, "__dataclass_fields__"):
        for name, hint in get_type_hints(type(config), include_extras=True).items():
            value = getattr(config, name)
            yield f"{path}.{name}", value, hint
            yield from _typed(value, f"{path}.{name}")


def _typed_keywords(node: Mapping, path: str) -> Iterator[tuple[str, Any, Any]]:
    parameters = inspect.signature(named.resolve(node["fn"])).parameters
    for name, value in node.items():
        if name == "fn":
            continue
        hint = parameters[name].annotation
        if get_origin(hint) is not collections.abc.Callable:
            yield f"{path}.{name}", named.build(value), hint
        if isinstance(value, Mapping) and "fn" in value:
            yield from _typed_keywords(value, f"{path}.{name}")


def _takes_bool(hint: Any, value: bool) -> bool:
    if get_origin(hint) is Literal:
        return any(value is choice for choice in get_args(hint))
    return hint in (bool, Any) or any(_takes_bool(x, value) for x in get_args(hint))


def _places(node: Any) -> list[Place]:
    """Every value in a config, by the dict or list that holds it."""
    if not isinstance(node, (dict, list)):
        return []
    keys = list(node) if isinstance(node, dict) else range(len(node))
    inner = [place for key in keys for place in _places(node[key])]
    return [(node, key) for key in keys] + inner


def _choice(generator: np.random.Generator, values: Any) -> Any:
    return values[generator.integers(len(values))]


def _delete(config: Any, generator: np.random.Generator) -> Any:
    node, key = _choice(generator, _places(config))
    del node[key]
    return key


def _rename(config: Any, generator: np.random.Generator) -> Any:
    named = [place for place in _places(config) if isinstance(place[0], dict)]
    node, key = _choice(generator, named)
    node[_choice(generator, [f"{key}s", key[:-1] or "x", "fn"])] = node.pop(key)
    return key


def _replace(config: Any, generator: np.random.Generator) -> Any:
    node, key = _choice(generator, _places(config))
    node[key] = copy.deepcopy(_choice(generator, VALUES))
    return f"{key} by {node[key]!r}"


def _wrong_fn(config: Any, generator: np.random.Generator) -> Any:
    named = [place for place in _places(config) if place[1] == "fn"]
    if not named:
        return "nothing"
    node, key = _choice(generator, named)
    folder = ".".join(str(node[key]).split(".")[:2]) + "."
    near = [name for name in functions() if name.startswith(folder)]
    node[key] = _choice(generator, near if near else functions())
    return f"{key} by {node[key]}"


def _wrong_keyword(config: Any, generator: np.random.Generator) -> Any:
    nodes = [config, *(n[k] for n, k in _places(config) if isinstance(n[k], dict))]
    names = ["x", "labels", "seed", "self", "name", "report", "path", "documents"]
    node, name = _choice(generator, nodes), _choice(generator, names)
    node[name] = copy.deepcopy(_choice(generator, VALUES))
    return f"{name} {node[name]!r}"


def _swap(config: Any, generator: np.random.Generator) -> Any:
    (a, i), (b, j) = (_choice(generator, _places(config)) for _ in "ab")
    a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])
    return f"{i} and {j}"


CHANGES = (_delete, _rename, _replace, _replace, _wrong_fn, _wrong_keyword, _swap)


def functions() -> list[str]:
    """The dotted names of docjax's own functions and classes."""
    if not _FUNCTIONS:
        for module in pkgutil.walk_packages(docjax.__path__, "docjax."):
            if not module.name.startswith(("docjax.export", "docjax.__main__")):
                _FUNCTIONS.extend(_functions(module.name))
    return _FUNCTIONS


_FUNCTIONS: list[str] = []


def _functions(name: str) -> list[str]:
    try:
        values = vars(importlib.import_module(name))
    except ImportError:  # of an extra that is not installed
        return []
    own = [k for k, v in values.items() if getattr(v, "__module__", None) == name]
    return [f"{name}.{key}" for key in own if callable(values[key])]


def run(
    configs: Mapping[str, Any], count: int, seed: int, folder: Path
) -> dict[str, list[Path]]:
    """Reads `count` files with mistakes; returns the files by outcome."""
    outcomes, names = collections.defaultdict(list), list(configs)
    for number in range(count):
        name = names[number % len(names)]
        generator = np.random.default_rng((seed, number))
        config, done = mutated(configs[name], generator)
        path = folder / f"{name}_{number}.py"
        path.write_text(file_text(config))
        outcome, text = outcome_of(path)
        outcomes[outcome].append(path)
        if outcome in ("traceback", "wrong type"):
            print(f"{name} {number}: {done}\n{text}", file=sys.stderr)
    return outcomes


def outcome_of(path: Path) -> tuple[str, str]:
    """ "refused", "accepted", "wrong type" or "traceback", and the text that says why."""
    try:
        faults = wrong_types(read(path))
    except UserError as error:
        one_line = "\n" not in str(error)
        return ("refused" if one_line else "traceback"), str(error)
    except Exception:  # noqa: BLE001 every other error is what is looked for
        return "traceback", traceback.format_exc()
    return ("wrong type" if faults else "accepted"), "; ".join(faults)


def train(path: Path, folder: Path) -> tuple[str, str]:
    """The outcome of one step of training with a config file."""
    command = [sys.executable, "-m", "docjax.main", f"--config={path}"]
    command += [f"--workdir={folder / path.stem}"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return "timeout", ""
    if "Traceback" in done.stderr:
        return "traceback", done.stderr[-3000:]
    return ("trained" if done.returncode == 0 else "refused"), done.stderr[-300:]


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--real", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = tiny.parse(parser, given, "--count", 14)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(shipped(), arguments.count, arguments.seed, Path(folder))
        print("read:", {name: len(paths) for name, paths in outcomes.items()})
        if arguments.real:
            print("trained:", dict(train_some(arguments.real, Path(folder))))


def train_some(count: int, folder: Path) -> collections.Counter:
    """The outcomes of `count` files, half of them accepted before training."""
    configs = {name: small(config, folder) for name, config in shipped().items()}
    outcomes = run(configs, 15 * count, 1, folder)
    half, trained = count // 2, collections.Counter()
    for path in outcomes["refused"][:half] + outcomes["accepted"][:half]:
        outcome, text = train(path, folder)
        trained[outcome] += 1
        if outcome in ("traceback", "timeout"):
            print(f"{path.read_text()}\n{outcome}\n{text}", file=sys.stderr)
    return trained


if __name__ == "__main__":
    main()
