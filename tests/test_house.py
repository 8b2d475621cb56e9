"""The house: few modules at the top, short functions, short chains of imports.

  python -m tests.test_house

prints what is counted.
"""

import ast
import collections
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Copied into exported folders; they import their neighbours there.
EXPORTED = set((ROOT / "docjax/export").glob("torch_*.py"))
# At the top lies keep.py, whose classes configs name as docjax.keep.Judged.
AT_THE_TOP, CHAIN, LINES, NAMES = 11, 13, 50, 4
# Files of one name: the command, and what it calls.
SAME = {"compare.py", "evaluate.py", "search.py"}
# The source of people's files has the name that configs give it.
SAME |= {"files.py"}
# The record of a family may have the name of its module.
RECORDS = ROOT / "docjax/huggingface/families"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    module_name(path): path
    for path in sorted((ROOT / "docjax").rglob("*.py"))
    if path not in EXPORTED
}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def imports(tree: ast.AST) -> set[str]:
    """The modules of docjax that are imported, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {_module(name) for name in found} - {""}


def _module(name: str) -> str:
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name


# The package itself imports nothing before a name is used.
ARROWS = {name: imports(tree) - {name, "docjax"} for name, tree in TREES.items()}


@functools.cache
def chain(name: str) -> tuple[str, ...]:
    """The longest chain of imports from a module. Raises RecursionError for a circle."""
    below = [chain(other) for other in ARROWS[name]]
    return name, *max(below, key=len, default=())


def room(name: str) -> str:
    """The folder of a module, or the module itself if it lies at the top."""
    return (name.split(".") + [""])[1]


def circles() -> list[str]:
    """The rooms that import each other, perhaps by way of others."""
    rooms = collections.defaultdict(set)
    for name, others in ARROWS.items():
        rooms[room(name)] |= {room(other) for other in others} - {room(name)}
    reach = {name: set(others) for name, others in rooms.items()}
    for _ in rooms:
        for others in reach.values():
            others |= {far for near in others for far in reach.get(near, ())}
    return sorted(name for name, others in reach.items() if name in others)


def long_functions() -> list[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [
        f"{name}.{node.name} {node.end_lineno - node.lineno + 1}"
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.end_lineno - node.lineno >= LINES
    ]


def same_names() -> set[str]:
    files = [
        path.name
        for path in MODULES.values()
        if path.name != "__init__.py" and path.parent != RECORDS
    ]
    return {name for name, count in collections.Counter(files).items() if count > 1}


def longest() -> tuple[str, ...]:
    return max(map(chain, MODULES), key=len)


def at_the_top() -> list[str]:
    return sorted(path.name for path in (ROOT / "docjax").glob("*.py"))


# Where the parts lie that a config may name.
PARTS = (
    *("data/units", "data/segments", "data/examples", "data/sources", "data/splits"),
    *("views/", "encoders/", "objectives/", "tasks/", "training/rows", "keep"),
    *("training/optimizer", "retrieval/judged_queries"),
)
ASKED = 5  # times that code asks for the class of a part of another module


def questions() -> list[str]:
    """Where code asks whether a part is of a class of another module."""
    files = set((ROOT / "docjax").rglob("*.py")) - EXPORTED
    paths = {path: str(path.relative_to(ROOT / "docjax")) for path in sorted(files)}
    trees = {path: ast.parse(path.read_text("utf-8")) for path in paths}
    home = {
        node.name: path
        for path, tree in trees.items()
        if paths[path].startswith(PARTS)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    return [
        f"{paths[path]}:{call.lineno} {name}"
        for path, tree in trees.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "isinstance"
        for node in ast.walk(call.args[1])
        if (name := getattr(node, "id", getattr(node, "attr", None)))
        if home.get(name, path) != path
    ]


def test_code_hardly_asks_for_the_class_of_a_part():
    assert len(questions()) <= ASKED, questions()


def test_few_modules_lie_at_the_top():
    assert len(at_the_top()) <= AT_THE_TOP


def test_chains_of_imports_are_short():
    assert len(longest()) <= CHAIN, " > ".join(longest())


def test_rooms_do_not_import_each_other_in_circles():
    assert not circles()


def test_functions_are_short():
    assert not long_functions()


def test_a_file_has_a_name_of_its_own():
    assert same_names() <= SAME and len(SAME) <= NAMES


if __name__ == "__main__":
    print(f"modules at the top: {len(at_the_top())}")
    print(f"longest chain of imports: {len(longest())} ({' > '.join(longest())})")
    print(f"functions over {LINES} lines: {len(long_functions())}")
    print(f"names of several files: {', '.join(sorted(same_names()))}")
    print(f"circles: {', '.join(circles()) or 'none'}")
