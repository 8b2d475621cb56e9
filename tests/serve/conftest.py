"""A small run, whose parameters are the first ones, and a process that serves it."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import serve
from configs import graph_roberta
from docjax import checkpoint
from docjax.prepare import initial_params, prepare

FLAGS = {"max-body": 0.25, "body-timeout": 0.5, "max-requests": 24}
SENTENCES = (
    "The gradient of every passage flows back through the graph.",
    "Rivers carry sand to the sea, and the sea carries it away!",
    "Who has seen the wind? Neither you nor I.",
)


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    corpus = folder / "corpus.jsonl"
    lines = [{"id": str(i), "text": " ".join(SENTENCES[: i + 1])} for i in range(3)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = graph_roberta.get_config("smoke")
    config.source = dict(fn="docjax.data.sources.jsonl.jsonl", path=str(corpus))
    config.tokenizer.train.vocabulary = 270
    config.encoder.segment.vocabulary = 270
    config.segments.words = 12
    config.limits.segment_tokens = config.limits.query_tokens = 32
    config.limits.inference_segments = 3  # few shapes to compile
    prepared = prepare(config, folder / "run")
    saved = checkpoint.Checkpointer(folder / "run" / "checkpoints")
    saved.save(1, initial_params(prepared), {"step": np.zeros(())}, {})
    saved.close()
    return folder / "run"


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
