"""Copies the configs into the package that is built; pyproject.toml has all the rest."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """An installed docjax has its recipes in docjax/configs."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # the checkout's own configs are used
            return
        folder = Path(self.build_lib, "docjax/configs")
        self.mkpath(str(folder))
        for file in sorted(Path("configs").glob("*.py")):
            self.copy_file(str(file), str(folder / file.name))


setup(cmdclass={"build_py": BuildWithConfigs})
