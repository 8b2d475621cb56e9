"""`docjax serve` under many clients, good and bad; every answer is checked.

    python -m benchmarks.serve --path 20news.jsonl.xz --clients 200 --seconds 60

Starts a real server on a free port. Each client sends random requests, one after
another. Answers with vectors of documents and queries, similarities and comparisons
must equal the results of `encode` and `compare` in this process. Requests that are too
large, malformed, too slow or cancelled must get the right status. Then the benchmark
opens more connections at once than the server takes, and sends a SIGTERM while the server
answers. Prints a row of Markdown, and exits with 1 if anything was wrong.
"""

import argparse
import asyncio
import base64
import contextlib
import dataclasses
import itertools
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import docjax
from benchmarks import runs, tiny
from docjax.data.records import full_text
from docjax.data.sources.jsonl import jsonl
from docjax.explain import compare_page as compare
from docjax.model.document_model import DocumentModel

TOLERANCE = 1e-5  # relative to the longest vector
TEXTS = 64  # documents of which requests are made
QUERY = 4  # words of a document that make a query
FLAGS = {"max-body": 0.25, "body-timeout": 2, "max-connections": 256}
LARGE = b" " * (300 << 10)  # over max-body


@dataclasses.dataclass
class Expected:
    """Texts, and their results in this process."""

    texts: list[str]
    vectors: np.ndarray
    queries: np.ndarray
    pairs: dict[tuple[int, int], dict[str, Any]]

    @classmethod
    def of(cls, model: DocumentModel, texts: Sequence[str]) -> "Expected":
        pairs = {
            (i, i + 1): json.loads(
                json.dumps(compare.facts(model.compare(*texts[i : i + 2])))
            )
            for i in range(0, min(8, len(texts) - 1), 2)
        }
        short = [" ".join(text.split()[:QUERY]) for text in texts]
        return cls(list(texts), model.encode(texts), model.encode_queries(short), pairs)


@dataclasses.dataclass
class Outcome:
    """The result of a load."""

    statuses: Counter = dataclasses.field(default_factory=Counter)  # kind, status
    seconds: list[float] = dataclasses.field(default_factory=list)  # of good answers
    documents: int = 0
    tokens: int = 0
    error: float = 0.0
    wrong: list[str] = dataclasses.field(default_factory=list)


@contextlib.contextmanager
def server(
    model: str, flags: dict[str, float]
) -> Iterator[tuple[subprocess.Popen, int]]:
    """A ready server and its port; the server is killed at the end."""
    command = [sys.executable, "-m", "docjax", "serve", model, "--port=0"]
    command += [f"--{name}={value}" for name, value in flags.items()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the server ended with {process.wait()}")
        yield process, int(line.rsplit(":", 1)[1])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def send(
    port: int, path: str, body: bytes, head: str = "", method: str = "POST"
) -> tuple[int, bytes]:
    """The status and the body of an answer, over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = head or f"content-length: {len(body)}\r\n"
        writer.write(
            f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            f"content-type: application/json\r\n{head}\r\n".encode()
            + body
        )
        answer = await reader.read()
    finally:
        writer.close()
    if not answer:
        raise ConnectionResetError("the server closed without an answer")
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


async def post(port: int, path: str, value: Any) -> tuple[int, Any]:
    """The status and the JSON of the answer to a JSON request."""
    status, body = await send(port, path, json.dumps(value).encode())
    return status, json.loads(body)


async def load(port: int, expected: Expected, clients: int, seconds: float) -> Outcome:
    """Sends requests from `clients` clients for a given time; checks the answers."""
    outcome = Outcome()
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        generator = random.Random(number)
        check = list(KINDS)[number % len(KINDS)]  # at first, so that each occurs
        while time.monotonic() < end:
            try:
                await check(port, expected, generator, outcome)
            except (OSError, ValueError, KeyError, IndexError) as error:
                outcome.wrong.append(f"{check.__name__}: {error!r}")
            [check] = generator.choices(list(KINDS), KINDS.values())

    await asyncio.gather(*map(client, range(clients)))
    return outcome


async def _embed(port, expected, generator, outcome, kind="embed") -> None:
    count = generator.choice([1, 1, 1, 4])
    chosen = [generator.randrange(len(expected.texts)) for _ in range(count)]
    texts = [expected.texts[i] for i in chosen]
    asked: dict[str, Any] = {"input": texts[0] if count == 1 else texts}
    right = expected.vectors[chosen]
    if kind == "query":
        asked = {"input": [" ".join(text.split()[:QUERY]) for text in texts]}
        asked["input_type"], right = "query", expected.queries[chosen]
    if kind == "base64":
        asked["encoding_format"] = "base64"
    found = await _good(port, "/v1/embeddings", asked, outcome, kind)
    if found is None:
        return
    vectors = [one["embedding"] for one in found["data"]]
    if kind == "base64":
        vectors = [np.frombuffer(base64.b64decode(v), "<f4") for v in vectors]
    _near(outcome, kind, np.array(vectors), right, np.abs(expected.vectors).max())
    outcome.documents += count
    outcome.tokens += found["usage"]["prompt_tokens"]


async def _base64(*arguments) -> None:
    await _embed(*arguments, kind="base64")


async def _query(*arguments) -> None:
    await _embed(*arguments, kind="query")


async def _similarity(port, expected, generator, outcome) -> None:
    a, b = (generator.sample(range(len(expected.texts)), 2) for _ in range(2))
    asked = {key: [expected.texts[i] for i in one] for key, one in (("a", a), ("b", b))}
    found = await _good(port, "/similarity", asked, outcome, "similarity")
    if found is None:
        return
    unit = expected.vectors / np.linalg.norm(expected.vectors, axis=1, keepdims=True)
    _near(outcome, "similarity", np.array(found["similarity"]), unit[a] @ unit[b].T, 1)
    outcome.documents += 4
    outcome.tokens += found["usage"]["prompt_tokens"]


async def _compare(port, expected, generator, outcome) -> None:
    pair = generator.choice(list(expected.pairs))
    asked = dict(zip("ab", (expected.texts[i] for i in pair)))
    found = await _good(port, "/compare", asked, outcome, "compare")
    if found is None:
        return
    right = expected.pairs[pair]
    numbers = [
        np.array([one["similarity"], *(w for *_, w in one["links"]["segments"])])
        for one in (found, right)
    ]
    _near(outcome, "compare", *numbers, 10)  # links are rounded to 4 digits
    if found["documents"] != right["documents"]:
        outcome.wrong.append("compare: other texts")
    outcome.documents += 2
    outcome.tokens += found["usage"]["prompt_tokens"]


async def _good(port, path, asked, outcome, kind) -> Any:
    started = time.perf_counter()
    status, found = await post(port, path, asked)
    if _status(outcome, kind, status, 200):
        outcome.seconds.append(time.perf_counter() - started)
        return found
    return None


async def _oversize(port, expected, generator, outcome) -> None:
    status, _ = await send(port, "/v1/embeddings", LARGE)
    _status(outcome, "oversize", status, 413)


async def _chunked(port, expected, generator, outcome) -> None:
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE)
    head = "transfer-encoding: chunked\r\n"
    status, _ = await send(port, "/v1/embeddings", body, head)
    _status(outcome, "chunked", status, 413)


async def _malformed(port, expected, generator, outcome) -> None:
    bodies = (
        b'{"input": ',
        b"[]",
        b'{"inputs": "a"}',
        b'{"input": "a", "x": 1}',
        b"\xff",
        b"[" * 100_000,
    )
    path = generator.choice(["/v1/embeddings", "/similarity", "/compare"])
    status, body = await send(port, path, generator.choice(bodies))
    _status(outcome, "malformed", status, 400)
    if "\n" in json.loads(body)["error"]["message"]:
        outcome.wrong.append(f"malformed: {body!r}")


async def _empty(port, expected, generator, outcome) -> None:
    asked = {"input": [generator.choice(expected.texts), " "]}
    _status(outcome, "empty", (await post(port, "/v1/embeddings", asked))[0], 400)


async def _slow(port, expected, generator, outcome) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.ensure_future(reader.readline())
    try:
        head = b"POST /similarity HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n"
        writer.write(head + b"{")
        await asyncio.wait({answer}, timeout=0.1)
        writer.write(b"x")
        status = int((await answer).split()[1])
    finally:
        writer.close()
    _status(outcome, "slow", status, 408)


async def _cancel(port, expected, generator, outcome) -> None:
    """Sends a request or a part of a request, and disconnects."""
    text = generator.choice(expected.texts)
    body = json.dumps({"input": [text] * 8}).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    part = generator.choice([20, len(body) // 2, len(body)])
    writer.write(
        f"POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n"
        "content-type: application/json\r\n\r\n".encode()
        + body[:part]
    )
    await asyncio.sleep(generator.uniform(0, 0.5))
    writer.close()
    outcome.statuses["cancel", 0] += 1


KINDS = {  # how often each is sent
    _embed: 8,
    _base64: 2,
    _query: 2,
    _similarity: 2,
    _compare: 1,
    _oversize: 1,
    _chunked: 1,
    _malformed: 1,
    _empty: 1,
    _slow: 1,
    _cancel: 2,
}


def _status(outcome: Outcome, kind: str, status: int, right: int) -> bool:
    outcome.statuses[kind, status] += 1
    if status != right:
        outcome.wrong.append(f"{kind}: {status} in place of {right}")
    return status == right


def _near(outcome: Outcome, kind: str, found, right, scale: float) -> None:
    error = np.inf
    if found.shape == right.shape:
        error = float(np.abs(found - right).max() / scale)
    outcome.error = max(outcome.error, error)
    if not error <= TOLERANCE:
        outcome.wrong.append(f"{kind}: differs by {error:.2g}")


async def burst(port: int, expected: Expected, requests: int) -> Outcome:
    """Opens more connections at once than the server takes: 503, and afterwards 200."""
    outcome = Outcome()

    async def ask(text: str, statuses: set[int]) -> None:
        body = json.dumps({"input": text}).encode()
        status, _ = await send(port, "/v1/embeddings", body)
        _status(outcome, "burst", status, status if status in statuses else 503)

    texts = itertools.cycle(expected.texts)
    await asyncio.gather(*(ask(next(texts), {200, 503}) for _ in range(requests)))
    if not outcome.statuses["burst", 503]:
        outcome.wrong.append(f"burst: {dict(outcome.statuses)}")
    await ask(next(texts), {200})
    return outcome


async def drain(port: int, process: subprocess.Popen, expected: Expected) -> Outcome:
    """Sends SIGTERM while requests wait: the server answers them and takes no more."""
    outcome = Outcome()
    asked = {"input": expected.texts[:16]}
    begun = [asyncio.create_task(post(port, "/v1/embeddings", asked)) for _ in range(8)]
    while await _running(port) + sum(one.done() for one in begun) < len(begun):
        await asyncio.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(ConnectionError):
        for _ in range(100):  # it hears the signal within a tenth of a second
            await send(port, "/healthz", b"", method="GET")
            await asyncio.sleep(0.05)
        outcome.wrong.append("drain: requests are taken after SIGTERM")
    for status, _ in await asyncio.gather(*begun):
        _status(outcome, "drain", status, 200)
    code = await asyncio.to_thread(process.wait)
    if code:
        outcome.wrong.append(f"drain: exit code {code}")
    return outcome


async def _running(port: int) -> int:
    """The number of requests in the server, by its own count."""
    _, body = await send(port, "/metrics", b"", method="GET")
    return int(float(re.search(rb"\ndocjax_running (\S+)", body)[1]))


def row(model: str, clients: int, seconds: float, outcome: Outcome) -> str:
    """Clients, rates and latencies of the load as a row of Markdown."""
    p50, p95, p99 = np.percentile(outcome.seconds, [50, 95, 99])
    rates = [f"{n / seconds:,.1f}" for n in (len(outcome.seconds), outcome.documents)]
    cells = [
        model,
        clients,
        f"{seconds:.0f}",
        *rates,
        f"{outcome.tokens / seconds:,.0f}",
    ]
    cells += [f"{p50:.2f}", f"{p95:.2f}", f"{p99:.2f}", f"{outcome.error:.1g}"]
    return " | ".join(["", *map(str, cells), str(len(outcome.wrong)), ""]).strip()


HEAD = """\
| model | clients | s | answers/s | documents/s | tokens/s | p50 s | p95 s | p99 s | error | wrong |
|---|---|---|---|---|---|---|---|---|---|---|"""


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default=runs.MINILM)
    parser.add_argument("--path", required=True, help="JSON lines with documents")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--words", type=int, default=100, help="of a document")
    sizes = "--path", tiny.documents, "--model", tiny.checkpoint, "--words", 8
    flags = tiny.parse(parser, given, *sizes, "--clients", len(KINDS), "--seconds", 0.1)
    documents = itertools.islice(jsonl(flags.path), 0, TEXTS * 50, 50)
    texts = [" ".join(full_text(one).split()[: flags.words]) for one in documents]
    expected = Expected.of(docjax.load(flags.model), texts)
    with server(flags.model, FLAGS) as (process, port):
        started = time.monotonic()
        outcome = asyncio.run(load(port, expected, flags.clients, flags.seconds))
        seconds = time.monotonic() - started
        more = asyncio.run(burst(port, expected, int(FLAGS["max-connections"]) + 150))
        last = asyncio.run(drain(port, process, expected))
    print(HEAD)
    print(row(Path(flags.model).name, flags.clients, seconds, outcome))
    counts = outcome.statuses + more.statuses + last.statuses
    for (kind, status), count in sorted(counts.items()):
        print(f"{kind}: {count} x {status or 'no answer is waited for'}")
    wrong = outcome.wrong + more.wrong + last.wrong
    for line, count in Counter(wrong).most_common(20):
        print(f"WRONG {count} x {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
