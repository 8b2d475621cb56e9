"""Requests that are too large, too slow or too many, and clients that leave."""

import asyncio
import dataclasses
import json
import math

import pytest

from docjax.errors import UserError
from docjax.serve.counters import Metrics
from docjax.serve.limits import Gate, Limits

LIMITS = Limits(
    max_body=10 / (1 << 20),
    max_documents=2,
    max_requests=2,
    body_timeout=0.05,
    timeout=9.0,
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
    return Gate(app, LIMITS, Metrics()), app


async def answered(gate: Gate, client: Client) -> Client:
    await gate(client.scope, client.receive, client.send)
    return client


@pytest.mark.parametrize(
    "name, value",
    [
        ("max_body", -1.0),
        ("max_documents", 0),
        ("max_requests", 0),
        ("body_timeout", math.nan),
        ("timeout", math.inf),
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
        found = [await answered(gate_, Client(one)) for one in parts]
        told = Client([b"x"], headers=[(b"content-length", b"81")])
        return [*found, await answered(gate_, told)], app.running

    clients, running = asyncio.run(scenario())
    assert [client.status for client in clients] == [413] * 3 and not running
    assert clients[0].message() == "the body is larger than 10 bytes"
    assert [len(client.parts) for client in clients] == [0, 6, 1]


def test_slow_bodies_are_not_waited_for():
    async def scenario():
        return await answered(gate()[0], Client([b"abc"], stalls=True))

    client = asyncio.run(scenario())
    assert client.status == 408 and "within 0.05 seconds" in client.message()
    assert (b"connection", b"close") in client.sent[0]["headers"]


def test_more_requests_than_the_limit_are_refused_but_get_is_not():
    async def scenario():
        gate_, app = gate(go=False)
        tasks = [asyncio.create_task(answered(gate_, Client([b"a"]))) for _ in "ab"]
        while app.running < 2:
            await asyncio.sleep(0.001)
        third = await answered(gate_, Client([b"a"]))
        health = asyncio.create_task(answered(gate_, Client([b""], method="GET")))
        while app.running < 3:
            await asyncio.sleep(0.001)
        app.go.set()
        return third, await asyncio.gather(*tasks, health)

    third, others = asyncio.run(scenario())
    assert third.status == 429
    assert (b"retry-after", b"1") in third.sent[0]["headers"]
    assert [client.status for client in others] == [200] * 3


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
        return client, app, gate_

    client, app, gate_ = asyncio.run(scenario())
    assert client.status is None and app.cancelled == 1 and gate_.running == 0
    counts = gate_.metrics.text().decode()
    assert 'docjax_requests_total{path="/compare",status="499"} 1.0' in counts
    assert 'docjax_requests_total{path="other",status="499"} 1.0' in counts
