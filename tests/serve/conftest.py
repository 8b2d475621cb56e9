"""A small run, whose parameters are the first ones, and a process that serves it."""

import contextlib
from pathlib import Path

import pytest

from benchmarks import serve

FLAGS = {"max-body": 0.25, "body-timeout": 0.5, "max-connections": 24}
SENTENCES = (
    "The gradient of every passage flows back through the graph.",
    "Rivers carry sand to the sea, and the sea carries it away!",
    "Who has seen the wind? Neither you nor I.",
)


@pytest.fixture(scope="session")
def run(begun) -> Path:
    texts = [" ".join(SENTENCES[: i + 1]) for i in range(3)]
    return begun(texts, segment_tokens=32, query_tokens=32)  # few shapes to compile


@pytest.fixture(scope="session")
def serving(run):
    """Gives a process that takes requests and its port: the one before if it lives."""
    started = []
    with contextlib.ExitStack() as stack:

        def living():
            if not started or started[-1][0].poll() is not None:
                one = serve.server(str(run), FLAGS)
                started.append(stack.enter_context(one))
            return started[-1]

        yield living


@pytest.fixture
def server(serving):
    """A process that takes requests at a port."""
    return serving()


@pytest.fixture
def port(server) -> int:
    return server[1]
