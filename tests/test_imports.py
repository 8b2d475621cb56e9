"""Imports point one way, and what they name is declared in pyproject.toml.

A unit is a folder or a module directly under docjax/. `MAY_IMPORT` is the whole rule:
a new unit gets its line here.
"""

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Torch code that exports copy into folders: docjax never imports it.
EXPORTED = set((ROOT / "docjax/export").glob("torch_*.py"))
FILES = sorted(set((ROOT / "docjax").rglob("*.py")) - EXPORTED)

FREE = {
    "config",
    "docjax",
    "errors",
    "kernels",
    "parts",
    "progress",
    "types",
}  # for all
PARTS = {"data", "encoders", "objectives", "views"}
MODELS = {"export", "huggingface", "model", "retrieval", "tasks"}
MAY_IMPORT = {
    "docjax": set(),  # its names are imported when they are used
    "config": set(),
    "parts": set(),
    "errors": set(),
    "kernels": set(),
    "progress": {"storage"},
    "types": set(),
    "storage": set(),
    "data": {"storage"},
    "views": {"data", "storage"},
    "encoders": set(),
    "objectives": set(),
    "huggingface": {"encoders", "storage"},
    "retrieval": {"data", "storage"},
    "tasks": {"data", "encoders", "retrieval"},
    "model": PARTS | {"huggingface", "retrieval", "storage", "tasks"},
    "explain": {"model", "storage"},
    "run": (PARTS | MODELS | {"explain", "storage"}) - {"export"},
    "recipe": PARTS | {"model", "run", "storage"},
    "keep": {"recipe"},
    "training": PARTS | {"run", "storage"},
    "export": {"data", "huggingface", "model", "run", "storage"},
    "sklearn": {"model"},
    "mteb": {"model"},
    "serve": {"data", "explain", "model"},
    "main": {"export", "model", "recipe", "run", "storage", "training"},
    "commands": PARTS
    | MODELS
    | {"explain", "main", "recipe", "run", "serve", "storage"},
    "cli": {"commands", "storage"},
    "__main__": {"cli"},
}
EXTRA = {"mteb", "serve"}  # units that need the extra of their name
ONLY_IN = {
    "flax.traverse_util": {"encoders", "huggingface", "run"},  # paths of parameters
    "flax": {"encoders", "huggingface"},
    "optax": {"encoders", "training", "run"},  # run/places.py names the type
    "absl.flags": {"main", "run"},  # run/config_flag.py, called by main
    "absl.logging": set(),  # logging.getLogger(__name__): docjax/progress/log.py
    "sentence_transformers": {"export"},  # brings torch
}
NOWHERE = {"torch", "pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def unit(module: str) -> str:
    """docjax.data.corpus -> data; docjax -> docjax."""
    return (module.split(".") + ["docjax"])[1] if "." in module else module


def imported(source: str) -> set[str]:
    """Dotted names of the import statements, those inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            names |= {f"{start}.{alias.name}" for alias in node.names}
    return names


def violations(module: str, source: str) -> list[str]:
    """What the imports of `module` break; empty if nothing."""
    here = unit(module)
    if here not in MAY_IMPORT:
        return [f"{module}: {here} has no line in MAY_IMPORT"]
    return [
        f"{module} imports {name}"
        for name in sorted(imported(source))
        if not allowed(here, name)
    ] + [
        f"{module} unpickles"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle"
        if getattr(node.value, "value", True)
    ]


def allowed(here: str, name: str) -> bool:
    if name.startswith("."):
        return False  # a relative import hides where it points
    if any(f"{name}.".startswith(f"{module_name(path)}.") for path in EXPORTED):
        return False
    if name == "docjax" or name.startswith("docjax."):
        there = unit(name)
        # docjax.load and docjax.__version__ are names of the package itself
        there = there if there in MAY_IMPORT else "docjax"
        return there in FREE | MAY_IMPORT[here] | {here}
    if name.split(".")[0] in NOWHERE:
        return False
    for library, units in ONLY_IN.items():
        if f"{name}.".startswith(f"{library}."):
            return here in units
    return True


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_import_points_one_way():
    assert len(FILES) > 20
    broken = [
        line
        for path in FILES
        for line in violations(module_name(path), path.read_text("utf-8"))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("docjax.encoders.word_average", "import docjax.data.corpus"),
        ("docjax.encoders.word_average", "from docjax.data import tokens"),
        ("docjax.encoders.word_average", "from docjax import data"),
        ("docjax.objectives.infonce", "from docjax.encoders import document"),
        ("docjax.data.corpus", "def f():\n    from docjax.views import halves"),
        ("docjax.model.document_model", "from docjax.training.step import State"),
        ("docjax.training.loop", "import docjax.export.write"),
        ("docjax.tasks.clustering", "from docjax.training import metrics"),
        ("docjax.types", "from docjax.data import documents"),
        ("docjax.training.step", "import flax.linen as nn"),
        ("docjax.training.step", "from flax import linen"),
        ("docjax.tasks.probe", "import optax"),
        ("docjax.objectives.infonce", "def f():\n    from optax import losses"),
        ("docjax.training.loop", "from absl import flags"),
        ("docjax.training.loop", "from absl.flags import FLAGS"),
        ("docjax.training.loop", "from absl import logging"),
        ("docjax.storage.checkpoint", "import pickle"),
        ("docjax.storage.checkpoint", "from joblib import load"),
        ("docjax.storage.checkpoint", "numpy.load(path, allow_pickle=True)"),
        ("docjax.storage.checkpoint", "numpy.load(path, allow_pickle=trust)"),
        ("docjax.huggingface.weights", "import torch.nn"),
        ("docjax.export.write", "from docjax.export import torch_module"),
        (
            "docjax.model.document_model",
            "from sentence_transformers import SentenceTransformer",
        ),
        ("docjax.data.corpus", "from . import documents"),
        ("docjax.helpers", "x = 1"),
    ],
)
def test_a_planted_violation_is_found(module, source):
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("docjax.encoders.word_average", "import flax.linen as nn\nimport jax"),
        ("docjax.encoders.perceptron", "import optax"),
        ("docjax.data.corpus", "import logging\nimport docjax"),
        ("docjax.views.halves", "from docjax.data import tokens"),
        ("docjax.main", "from absl import flags\nfrom docjax.training import loop"),
        (
            "docjax.model.document_model",
            "from docjax import checkpoint\nimport docjax.types",
        ),
        ("docjax.explain.run_page", "from docjax import __version__"),
        ("docjax.data.corpus_files", "numpy.load(path, allow_pickle=False)"),
    ],
)
def test_what_the_layout_allows_is_no_violation(module, source):
    assert violations(module, source) == []


def test_packages_hold_a_docstring_only():
    packages = [p for p in FILES if p.name == "__init__.py" and p.parent.parent != ROOT]
    assert packages
    for path in packages:
        body = ast.parse(path.read_text("utf-8")).body
        assert len(body) == 1, path
        assert isinstance(body[0], ast.Expr), path


def declared() -> tuple[set[str], dict[str, set[str]]]:
    """Names of the packages that docjax requires, and of those of each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {distribution(line) for line in project["dependencies"]}
    extras = project["optional-dependencies"].items()
    return required, {name: {distribution(one) for one in e} for name, e in extras}


def distribution(requirement: str) -> str:
    """Name of a requirement as package indices compare it."""
    name = re.match(r"[\w.-]+", requirement).group()
    return re.sub(r"[-_.]+", "-", name).lower()


def libraries(source: str, homes: Mapping[str, list[str]]) -> set[str]:
    """Libraries that `source` imports, as packages call themselves."""
    names = {name.split(".")[0] for name in imported(source)}
    others = names - sys.stdlib_module_names - {"docjax"}
    return {distribution(homes.get(name, [name])[0]) for name in others}


def test_every_imported_library_is_declared():
    required, extras = declared()
    homes = importlib.metadata.packages_distributions()
    for path in FILES:
        tree, here = ast.parse(path.read_text("utf-8")), unit(module_name(path))
        assert libraries(ast.unparse(tree), homes) <= required.union(*extras.values())
        imports = (ast.Import, ast.ImportFrom)
        tree.body = [node for node in tree.body if isinstance(node, imports)]
        needed = ast.unparse(tree)  # to import it
        own = extras[here] if here in EXTRA else set()
        assert libraries(needed, homes) <= required | own, path
        units = {unit(name) for name in imported(needed) if name.startswith("docjax")}
        assert units & EXTRA <= {here}, path


def test_every_package_is_installed():
    """A folder without __init__.py would be missing in the wheel."""
    folders = {path.parent for path in FILES}
    assert [path for path in folders if not (path / "__init__.py").exists()] == []
