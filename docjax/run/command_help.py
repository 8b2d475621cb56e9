"""What `python -m docjax.main --help` prints."""

import ast
from collections.abc import Sequence

from absl import flags

from docjax import config as config_lib

ASKS = frozenset(("-h", "-help", "--help"))
CONFIG = ("--config=", "-config=")
FLAGS = (
    *("config", "workdir", "mode", "allow"),
    *("distributed", "coordinator", "processes", "process"),
)


def text(purpose: str, values: flags.FlagValues, argv: Sequence[str]) -> str:
    """The text of the config that `argv` names, or the purpose, flags and configs.
    Raises UserError for an unknown config."""
    for argument in argv:
        if argument.startswith(CONFIG):
            return _docstring(argument.partition("=")[2])
    lines = [purpose.strip(), "", "Flags, and --config.FIELD=VALUE for any field:"]
    lines += [f"  --{name}: {values[name].help}" for name in FLAGS]
    lines += ["", "Configs (--config=NAME --help says more, and names the variants):"]
    for name in config_lib.shipped():
        lines.append(f"  {name}: {_docstring(name).splitlines()[0]}")
    return "\n".join(lines)


def _docstring(name: str) -> str:
    """The text at the beginning of a config file."""
    path, _ = config_lib.find(name)
    return ast.get_docstring(ast.parse(path.read_bytes())) or f"{path} has no docstring"
