"""A real server process: good and bad clients, and its end."""

import asyncio
import base64

import numpy as np
import pytest

import docjax
from benchmarks import serve
from benchmarks.serve import post, send
from docjax import cli
from docjax.explain import compare_page as compare
from docjax.serve.app import Server
from docjax.serve.batching import Batcher
from docjax.serve.limits import Limits
from docjax.serve.service import Service

LIMITS = Limits(max_body=1.0, max_documents=9, max_connections=9, body_timeout=9.0)
TEXTS = [
    "The gradient of every passage flows back. " * 3,
    "Rivers carry sand to the sea. Who has seen the wind?",
    "Neither you nor I.",
    "Long documents are read whole. " * 20,
]


@pytest.fixture(scope="module")
def model(run) -> docjax.model.document_model.DocumentModel:
    return docjax.load(run)


@pytest.fixture(scope="module")
def expected(model) -> serve.Expected:
    return serve.Expected.of(model, TEXTS)


def ask(port, path, value):
    return asyncio.run(post(port, path, value))


def get(port, path):
    status, body = asyncio.run(send(port, path, b"", method="GET"))
    return status, body.decode()


def test_many_clients_get_right_answers_beside_bad_ones(port, expected):
    outcome = asyncio.run(
        serve.load(port, expected, clients=len(serve.KINDS), seconds=2)
    )
    assert outcome.wrong == []
    assert 0 < outcome.error < 1e-6
    kinds = {kind for kind, _ in outcome.statuses}
    assert kinds == {check.__name__[1:] for check in serve.KINDS}


def test_more_connections_than_it_takes_are_told_so(port, expected):
    assert asyncio.run(serve.burst(port, expected, 24 + 100)).wrong == []


def test_embeddings_have_the_form_of_openai(port, model):
    asked = {"input": TEXTS[2], "model": "run", "user": "me", "dimensions": 32}
    status, found = ask(port, "/v1/embeddings", asked)
    vectors, stats = model.encode([TEXTS[2]], return_stats=True)
    tokens = {"prompt_tokens": stats["tokens"], "total_tokens": stats["tokens"]}
    assert status == 200 and found.pop("usage") == tokens | {"tokens_cut": 0}
    [data] = found.pop("data")
    assert found == {"object": "list", "model": "run"}
    np.testing.assert_allclose(data.pop("embedding"), vectors[0], atol=1e-6)
    assert data == {"object": "embedding", "index": 0}


def test_base64_is_little_endian_float32(port, model):
    asked = {"input": TEXTS[:2], "encoding_format": "base64"}
    data = ask(port, "/v1/embeddings", asked)[1]["data"]
    found = [np.frombuffer(base64.b64decode(d["embedding"]), "<f4") for d in data]
    np.testing.assert_allclose(found, model.encode(TEXTS[:2]), atol=1e-6)


def test_what_the_cap_leaves_out_is_told(port, model):
    _, stats = model.encode([TEXTS[3]], return_stats=True)
    usage = ask(port, "/v1/embeddings", {"input": [TEXTS[3]]})[1]["usage"]
    assert usage["tokens_cut"] == stats["tokens_cut"] > 0


def test_documents_with_sections_are_read_as_the_model_reads_them(port, model):
    sections = [{"heading": "One", "text": "Sand."}, {"heading": "Two", "text": "Sea."}]
    document = {"title": "Rivers", "sections": sections}
    found = ask(port, "/v1/embeddings", {"input": document})[1]["data"][0]
    np.testing.assert_allclose(
        found["embedding"], model.encode([document])[0], atol=1e-6
    )
    status, found = ask(port, "/compare", {"a": document, "b": TEXTS[1]})
    right = compare.facts(model.compare(document, TEXTS[1]))
    assert status == 200 and found["documents"][0] == right["documents"][0]
    assert found["documents"][0]["headings"] == ["One", "Two"]


@pytest.mark.parametrize(
    "asked, status, message",
    [
        ({"input": "a", "foo": 1}, 400, "foo: Extra inputs are not permitted"),
        ({"input": []}, 400, "input: an empty list"),
        ({"input": ["a"] * 257}, 400, "input: 257 documents, at most 256 a request"),
        ({"input": ["a", ""]}, 400, "document 1: empty text"),
        ({"input": [[1, 2]]}, 400, "and no token ids"),
        ({"input": 3}, 400, "input: a document is a text or an object"),
        ({}, 400, "input: missing"),
        ({"input": "a\ud800"}, 400, "invalid UTF-8"),
        ({"input": "a", "encoding_format": "int8"}, 400, "encoding_format: "),
        ({"input": "a", "dimensions": 16}, 400, "the vectors have 32 dimensions"),
        ({"input": "a", "model": "\ud800"}, 404, "ask for 'run'"),
        ({"input": "a " * 99, "input_type": "query"}, 400, "the model reads 32"),
        ({"input": {"text": "a"}, "input_type": "query"}, 400, "a query is a text"),
        (["a"], 400, "the body must be a JSON object"),
    ],
)
def test_mistakes_are_told_in_one_line(port, asked, status, message):
    found, body = ask(port, "/v1/embeddings", asked)
    error = body["error"]
    assert found == status and message in error["message"]
    assert "\n" not in error["message"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("path, status", [("/x", 404), ("/similarity", 405)])
def test_wrong_paths_and_methods_too(port, path, status):
    found, body = get(port, path)
    assert found == status and '"error"' in body


async def status(server: Server, path: str, body: bytes = b"") -> int:
    """What the application answers with, without a port."""
    parts = [dict(type="http.request", body=body, more_body=False)]
    sent = []

    async def receive():
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    scope = dict(type="http", path=path, query_string=b"")
    scope["method"] = "POST" if body else "GET"
    scope["headers"] = [(b"content-type", b"application/json")]
    await server.asgi(scope, receive, send)
    return sent[0]["status"]


@pytest.mark.parametrize(
    "path, body", [("/healthz", b""), ("/compare", b'{"a": "x", "b": "y"}')]
)
def test_before_the_model_is_compiled_there_is_no_answer(model, path, body):
    server = Server(model, "run", LIMITS, lambda: None, lambda error: None)
    assert asyncio.run(status(server, path, body)) == 503


def test_when_nothing_is_read_any_more_the_server_is_not_ready(model, monkeypatch):
    async def scenario():
        broken, ready, over, failed = asyncio.Event(), asyncio.Event(), [], []

        async def run(self):
            await broken.wait()
            raise RuntimeError("bad")

        monkeypatch.setattr(Batcher, "run", run)
        monkeypatch.setattr(Service, "warm", lambda self, stopped: None)
        server = Server(model, "run", LIMITS, ready.set, failed.append)
        end = asyncio.Event()
        events = iter(["startup", "shutdown"])

        async def receive():
            event = next(events)
            if event == "shutdown":
                await end.wait()
            return dict(type=f"lifespan.{event}")

        async def send(message):
            over.append(message["type"])

        life = server.asgi(dict(type="lifespan"), receive, send)
        task = asyncio.create_task(life)
        await ready.wait()
        before = await status(server, "/healthz")
        broken.set()
        while not failed:
            await asyncio.sleep(0.001)
        after = await status(server, "/healthz")
        end.set()
        await task
        return before, after, str(failed[0])

    assert asyncio.run(scenario()) == (200, 503, "bad")


@pytest.mark.parametrize("path", ["/healthz", "/"])
def test_head_is_get_without_a_body(port, path):
    assert asyncio.run(send(port, path, b"", method="HEAD")) == (200, b"")


def test_that_it_compiles_is_told_at_once(run, monkeypatch, capsys):
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    monkeypatch.setattr("uvicorn.Config.configure_logging", lambda config: None)
    monkeypatch.setattr(
        "uvicorn.Server.run", lambda server, sockets: sockets[0].close()
    )
    assert cli.main(["serve", str(run), "--port=0"]) == 0
    out, err = capsys.readouterr()
    assert not out and err.startswith("compiling run for http://127.0.0.1:")
    assert cli.main(["serve", str(run), "--port=0", "--body-timeout=0"]) == 2
    assert "--body-timeout 0: give a number above 0" in capsys.readouterr().err


def test_health_and_counts(port):
    assert get(port, "/healthz") == (200, '{"status": "ready"}')
    assert get(port, "/openapi.json")[0] == 200
    ask(port, "/similarity", {"a": "x", "b": ["y", "z"]})
    found, counts = get(port, "/metrics")
    assert found == 200
    assert 'docjax_requests_total{path="/similarity",status="200"}' in counts


def test_an_address_in_use_is_told_in_one_line(run, port, capsys):
    assert cli.main(["serve", str(run), "--port", str(port)]) == 2
    err = capsys.readouterr().err
    assert f"127.0.0.1:{port} cannot be listened at" in err and err.count("\n") == 1


def test_sigterm_lets_requests_end_and_takes_no_more(server, expected):
    process, port = server  # the last test: it ends the server of all others
    outcome = asyncio.run(serve.drain(port, process, expected))
    assert outcome.wrong == []
    assert outcome.statuses["drain", 200] == 8
