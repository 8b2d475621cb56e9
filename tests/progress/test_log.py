"""The log has docjax's own lines and warnings; a program's own logging stays."""

import subprocess
import sys

SCRIPT = """
import logging, sys
{setup}
from docjax.progress import log
with log.shown():
    import absl.logging
    logging.getLogger("docjax.any").info("own %d", 1)
    logging.getLogger("docjax.any").warning("own %d", 2)
    logging.getLogger("docjax.any").debug("own %d", 3)
    absl.logging.set_verbosity(absl.logging.INFO)
    absl.logging.info("absl")  # as Orbax does
    logging.getLogger("jax").setLevel(logging.DEBUG)
    logging.getLogger("jax").info("Failed to open libtpu.so")
    logging.getLogger("docjaxes").info("another")
    absl.logging.warning("other %d", 4)
    full = OSError(28, "No space left on device")
    absl.logging.error("a thread failed", exc_info=full)
assert logging.getLogger("docjax").level == {level}
print(logging.root.handlers)
"""


def run(setup: str = "", level: int = 0) -> tuple[list[str], str]:
    script = SCRIPT.format(setup=setup, level=level)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stderr.splitlines(), done.stdout


def test_the_lines_are_plain_and_docjaxes_own():
    lines, handlers = run()
    assert lines == ["own 1", "warning: own 2", "warning: other 4"]
    assert handlers == "[]\n"


def test_a_program_that_has_set_up_logging_gets_the_lines_itself():
    set_up = "logging.basicConfig(format='mine %(name)s %(message)s')"
    lines, handlers = run(set_up)
    own = [line for line in lines if "docjax.any" in line]
    assert own == ["mine docjax.any own 1", "mine docjax.any own 2"]
    assert handlers.count("Handler") == 1 and "Plain" not in handlers


def test_a_program_chooses_the_level():
    lines, _ = run("logging.getLogger('docjax').setLevel(logging.WARNING)", 30)
    assert lines == ["warning: own 2", "warning: other 4"]
