"""What an installation has: configs, types and metadata, and no import hook."""

import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import docjax
from docjax import config

ROOT = Path(__file__).resolve().parents[1]
BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder `docjax`, as a clone has it, and what pip builds of it."""
    folder = tmp_path_factory.mktemp("beside") / "docjax"
    without = shutil.ignore_patterns("__pycache__")
    for name in ("docjax", "configs"):
        shutil.copytree(ROOT / name, folder / name, ignore=without)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def built(clone: Path, kind: str) -> zipfile.ZipFile:
    """The wheel of a clone: `build_wheel`, or `build_editable`."""
    into = clone.parent / kind
    command = [sys.executable, "-c", BUILD, kind, str(into)]
    said = subprocess.check_output(command, cwd=clone, stderr=subprocess.STDOUT)
    return zipfile.ZipFile(into / said.decode().split()[-1])


def test_a_wheel_has_the_configs_the_types_and_the_pages(clone):
    names = set(built(clone, "build_wheel").namelist())
    configs = {
        f"docjax/configs/{path.name}" for path in (ROOT / "configs").glob("*.py")
    }
    assert len(configs) > 10 and configs <= names
    assert {"docjax/py.typed", "docjax/__init__.pyi"} <= names
    assert {"docjax/explain/page.html.jinja", "docjax/export/card.md.jinja"} <= names
    others = {name.split("/")[0] for name in names} - {"docjax"}
    assert others == {f"docjax-{docjax.__version__}.dist-info"}


def test_an_editable_install_is_a_path_so_that_a_script_beside_the_clone_finds_it(
    clone, tmp_path
):
    """An import hook would lose to the clone's folder, which Python takes for a package
    without __init__.py; and editors do not run it."""
    wheel = built(clone, "build_editable")
    code = [name for name in wheel.namelist() if "dist-info" not in name]
    assert [Path(name).suffix for name in code] == [".pth"]
    assert wheel.read(code[0]).decode().split() == [str(clone)]
    wheel.extractall(tmp_path / "site")
    script = clone.parent / "script.py"
    script.write_text(
        "import site, sys\n"
        "sys.path = [p for p in sys.path if p.endswith(('beside0', 'python311.zip'))"
        " or 'lib' in p]\n"
        f"site.addsitedir({str(tmp_path / 'site')!r})\n"
        "import docjax\n"
        "print(docjax.UserError.__module__, len(docjax.config.shipped()))\n"
    )
    said = subprocess.check_output([sys.executable, script], text=True)
    assert said.split() == ["docjax.errors", str(len(config.shipped()))]


def test_metadata():
    about = metadata.metadata("docjax")
    assert about["Version"] == docjax.__version__
    assert about["License-Expression"] == "Apache-2.0"
    assert about["Requires-Python"] == ">=3.11"
    versions = [each for each in about.get_all("Classifier") if ":: 3.1" in each]
    assert [each.split(":: ")[-1] for each in versions] == ["3.11", "3.12", "3.13"]
    assert about.get_all("Project-URL")
