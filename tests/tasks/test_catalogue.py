"""Tasks by name: those of docjax, and those of another package."""

import importlib
import pkgutil
import sys

import pytest

import docjax.tasks
from docjax.errors import UserError
from docjax.tasks import catalogue
from docjax.types import Reads, Task


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package `mylab`, which is forgotten after the test."""
    (tmp_path / "mylab").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> None:
        (tmp_path / "mylab" / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "mylab"]:
        del sys.modules[name]


def test_every_class_with_a_command_is_found_by_its_name():
    modules = [
        importlib.import_module(f"docjax.tasks.{module.name}")
        for module in pkgutil.iter_modules(docjax.tasks.__path__)
    ]
    classes = {
        value.command: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "command", "")
    }
    assert len(classes) >= 12 and list(catalogue.names()) == sorted(classes)
    for name, cls in classes.items():
        assert catalogue.find(name) is cls
        assert cls.reads in Reads.__args__
        fields = {"path": "a"} if cls.reads in ("pairs", "collection") else {}
        assert isinstance(cls(**fields), Task)


def test_a_class_of_docjax_without_a_command_goes_by_its_dotted_name():
    found = catalogue.find("docjax.tasks.classification.EndToEnd")
    assert found.reads == "labels" and not found.command


DEFAULTS = "from docjax.tasks.task import TaskDefaults\n"


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("mylab.a.None_", "", "--task: fn 'mylab.a.None_': mylab.a has no 'None_'"),
        ("mylab.b.Mine", "", "No module named 'mylab.b'"),
        ("mylab.a.mine", "def mine(data, part): ...", "mine is a function: give a cl"),
        ("mylab.a.Mine", "raise KeyError('x')", "mylab.a cannot be imported: KeyErr"),
        (
            "mylab.a.Mine",
            "class Mine:\n  def check(self, data, part): ...",
            "on_baselines, is_score, tables: inherit docjax.tasks.task.Task",
        ),
        (
            "mylab.a.Mine",
            f"{DEFAULTS}class Mine(TaskDefaults):\n  def check(self, data, part): ...",
            "mylab.a.Mine is no task: it lacks __call__(self, data, part)",
        ),
        (
            "mylab.a.Mine",
            f"{DEFAULTS}class Mine(TaskDefaults):\n  reads = 'words'",
            "it reads 'words', which is not one of labels, texts, pairs, collection",
        ),
        (
            "mylab.a.Mine",
            f"{DEFAULTS}class Mine(TaskDefaults):\n  def check(self, data): ...",
            "check takes (self, data), a task has check(self, data, part)",
        ),
    ],
)
def test_what_is_no_task_is_refused_by_what_it_lacks(package, name, text, message):
    package("a", text)
    with pytest.raises(UserError) as error:
        catalogue.find(name, ["mylab."])
    assert message in str(error.value) and "\n" not in str(error.value)


def test_code_from_outside_is_not_imported_unless_it_is_allowed(package):
    package("a", "raise SystemExit")
    for allow in ([], ["json."], "json.", ["tests"]):
        with pytest.raises(UserError, match=r"add --allow=mylab\. if you trust the"):
            catalogue.find("mylab.a.Mine", allow)
    for allow in (["my"], "myla", ["lab."]):
        with pytest.raises(UserError, match="there is no package"):
            catalogue.find("mylab.a.Mine", allow)
    assert "mylab.a" not in sys.modules


def test_the_allowed_package_may_be_a_text(package):
    package("a", f"{DEFAULTS}class Mine(TaskDefaults):\n  reads = 'words'")
    with pytest.raises(UserError, match="it reads 'words'"):
        catalogue.find("mylab.a.Mine", "mylab.")
