"""Requests that are too large or too slow, and clients that leave."""

import asyncio
import dataclasses
import json
import math

import numpy as np
import pytest
from prometheus_client import REGISTRY

from docjax.errors import UserError
from docjax.serve.limits import Gate, Limits

LIMITS = Limits(
    max_body=10 / (1 << 20), max_documents=2, max_connections=2, body_timeout=0.05
)


class Client:
    """One request as an ASGI server hands it over: the parts of its body, in turn."""

    def __init__(self, parts, path="/x", method="POST", headers=(), stalls=False):
        self.scope = dict(type="http", method=method, path=path, headers=headers)
        self.parts, self.stalls = list(parts), stalls
        self.left, self.sent = asyncio.Event(), []

    async def receive(self):
        if self.parts:
            body = self.parts.pop(0)
            more = bool(self.parts) or self.stalls
            return dict(type="http.request", body=body, more_body=more)
        await self.left.wait()
        return dict(type="http.disconnect")

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    def message(self) -> str:
        return json.loads(self.sent[1]["body"])["error"]["message"]


class App:
    """Answers with the length of the body, once `go` is set."""

    def __init__(self):
        self.go, self.running, self.cancelled = asyncio.Event(), 0, 0

    async def __call__(self, scope, receive, send):
        self.running += 1
        try:
            body = (await receive())["body"]
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        await send(dict(type="http.response.start", status=200, headers=[]))
        await send(dict(type="http.response.body", body=b"%d" % len(body)))


def gate(go: bool = True) -> tuple[Gate, App]:
    app = App()
    if go:
        app.go.set()
    return Gate(app, LIMITS, {"/compare"}), app


async def answered(gate: Gate, client: Client) -> Client:
    await gate(client.scope, client.receive, client.send)
    return client


@pytest.mark.parametrize(
    "name, value",
    [
        ("max_body", -1.0),
        ("max_documents", 0),
        ("max_connections", -1),
        ("body_timeout", math.nan),
        ("body_timeout", math.inf),
    ],
)
def test_limits_with_which_nothing_could_be_answered_are_refused(name, value):
    flag = name.replace("_", "-")
    with pytest.raises(UserError, match=f"--{flag} {value:g}: give a number above 0"):
        dataclasses.replace(LIMITS, **{name: value})


def test_a_body_in_parts_arrives_whole():
    async def scenario():
        return await answered(gate()[0], Client([b"abc", b"", b"de"]))

    client = asyncio.run(scenario())
    assert client.status == 200 and client.sent[1]["body"] == b"5"


def test_large_bodies_are_refused_and_read_to_their_end_within_reason():
    async def scenario():
        gate_, app = gate()
        parts = [b"abcdef", b"abcdef", b"abcdef"], [b"x" * 30] * 9
        return [await answered(gate_, Client(each)) for each in parts], app.running

    clients, running = asyncio.run(scenario())
    assert [client.status for client in clients] == [413] * 2 and not running
    assert clients[0].message() == "the body is larger than 10 bytes"
    assert [len(client.parts) for client in clients] == [0, 6]


def test_slow_bodies_are_not_waited_for():
    async def scenario():
        return await answered(gate()[0], Client([b"abc"], stalls=True))

    client = asyncio.run(scenario())
    assert client.status == 408 and "within 0.05 seconds" in client.message()
    assert (b"connection", b"close") in client.sent[0]["headers"]


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


def test_when_the_client_leaves_the_work_is_cancelled_and_counted():
    async def scenario():
        gate_, app = gate(go=False)
        client = Client([b"a"], path="/compare")
        task = asyncio.create_task(answered(gate_, client))
        while not app.running:
            await asyncio.sleep(0.001)
        client.left.set()
        await task
        half = Client([])
        half.left.set()
        await answered(gate_, half)
        return client, app

    left = "docjax_requests_total"
    before = [counted(left, path=p, status="499") for p in ("/compare", "other")]
    client, app = asyncio.run(scenario())
    after = [counted(left, path=p, status="499") for p in ("/compare", "other")]
    assert client.status is None and app.cancelled == 1
    assert counted("docjax_running") == 0
    assert np.subtract(after, before).tolist() == [1, 1]
