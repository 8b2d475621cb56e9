"""Jobs of a real model without a cap, in the pieces that a batcher makes of them."""

import asyncio
import dataclasses

import numpy as np
import pytest
from prometheus_client import REGISTRY

import docjax
from docjax.data.graphs import full
from docjax.data.units import Passages
from docjax.errors import UserError
from docjax.serve import service as service_lib
from docjax.serve.batching import Batcher
from docjax.serve.limits import Refusal
from docjax.serve.service import Service

LONG = "Rivers carry sand to the sea. Who has seen the wind? " * 400
SHORT = "Neither you nor I. The sea carries it away!"


@pytest.fixture(scope="module")
def model(tiny) -> docjax.model.document_model.DocumentModel:
    return docjax.load(tiny)


def answers(model, ask) -> tuple[list, float]:
    """The results of `ask(service)`, read in batches of 512 tokens, and their number."""

    async def run():
        service = Service(model)
        batcher = Batcher(service.read, 512)
        running = asyncio.create_task(batcher.run())
        try:
            return await batcher(ask(service))
        finally:
            running.cancel()
            batcher.close()

    before = batches()
    return asyncio.run(run()), batches() - before


def batches() -> float:
    return REGISTRY.get_sample_value("docjax_batch_tokens_count")


def test_a_long_document_has_the_vector_that_encode_gives(model):
    right, stats = model.encode([LONG, SHORT], return_stats=True)
    assert stats["segments"] > 64
    found, count = answers(
        model,
        lambda service: (
            service.documents([LONG, SHORT])[0] + service.queries([SHORT])[0]
        ),
    )
    np.testing.assert_allclose(found[:2], right, atol=1e-6)
    np.testing.assert_allclose(found[2], model.encode_queries([SHORT])[0], atol=1e-6)
    assert count >= stats["tokens"] / 512


def test_a_long_document_is_compared_as_compare_does(model):
    right = model.compare(LONG, SHORT)  # by passages, which are no segments
    assert right.a.whole is not right.a.tokens
    [found], count = answers(
        model, lambda service: service.comparison([LONG, SHORT])[0]
    )
    assert found.similarity == pytest.approx(right.similarity, abs=1e-6)
    np.testing.assert_allclose(found.segments, right.segments, atol=1e-5)
    np.testing.assert_allclose(found.sections, right.sections, atol=1e-5)
    assert count > 10


@pytest.mark.parametrize("ask", ["documents", "comparison"])
def test_a_document_whose_graph_would_be_too_large_is_refused(model, monkeypatch, ask):
    monkeypatch.setattr(service_lib, "LARGEST", 2)
    pair = [SHORT, {"sections": [{"text": "Sand."}] * 3}]
    service = Service(model)
    getattr(service, ask)(pair)  # without a graph
    service = Service(dataclasses.replace(model, units=Passages(), graph=full))
    getattr(service, ask)(pair[:1] * 2)
    with pytest.raises(Refusal, match="3 segments, at most 2 are read") as error:
        getattr(service, ask)(pair)
    assert error.value.status_code == 413


def test_prompts_of_two_lengths_outside_of_the_mean_cannot_be_served(model):
    """Queries and documents are read in one call."""
    prompts = {"query": "query: ", "document": "a longer prompt: "}
    prompted = dataclasses.replace(model, prompts=prompts)
    assert Service(prompted)
    left_out = dataclasses.replace(prompted, include_prompt=False)
    with pytest.raises(UserError, match="cannot serve it; use docjax encode"):
        Service(left_out)
