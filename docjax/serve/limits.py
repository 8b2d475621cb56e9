"""Limits of a request: its size, and the time in which its body must arrive.

`Gate` stands before the application. It reads the whole body before the application
starts, and stops the application when the client has disconnected.
"""

import asyncio
import dataclasses
import json
import math
from collections.abc import Collection
from typing import Any

from prometheus_client import Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from docjax.errors import UserError

SPARE = 8  # the server reads up to so many times the largest body before it refuses
REQUESTS = Counter(
    "docjax_requests",
    "Requests by path and status; 499: the client disconnected.",
    ["path", "status"],
)
SECONDS = Histogram(
    "docjax_request_seconds", "Time from a request's head to its answer.", ["path"]
)
RUNNING = Gauge("docjax_running", "Requests with a body that are being answered.")


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of one server. Raises UserError for one that is not above 0."""

    max_body: float  # MiB of a request's body
    max_documents: int  # in a request
    max_connections: int  # at the same time; uvicorn answers 503 to others
    body_timeout: float  # seconds until a body has arrived

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not 0 < value < math.inf:
                flag = "--" + name.replace("_", "-")
                raise UserError(f"{flag} {value:g}: give a number above 0")


class Refusal(HTTPException):
    """The answer to a refused request: a status and one line.

    param: the wrong field of the request; code: OpenAI's name of the mistake.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        param: str | None = None,
        code: str | None = None,
    ):
        super().__init__(status, detail)
        self.param, self.code = param, code


def error(refusal: HTTPException) -> Response:
    """The refusal in the form of OpenAI's errors."""
    status, headers = refusal.status_code, {}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    if status == 503:
        headers["retry-after"] = "1"
    if status == 408:
        headers["connection"] = "close"  # the server does not wait for the rest
    facts = {"message": refusal.detail, "type": kind}
    facts |= {name: getattr(refusal, name, None) for name in ("param", "code")}
    # JSON in ASCII: a message may quote half a character of the request.
    body = json.dumps({"error": facts})
    return Response(body, status, headers, "application/json")


class Gate:
    """An ASGI application around another: it applies the limits and counts requests.

    `paths` are counted by name, other paths together.
    """

    def __init__(self, app: Any, limits: Limits, paths: Collection[str]):
        self.app, self.limits, self.paths = app, limits, paths

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path = scope["path"] if scope["path"] in self.paths else "other"
        status = 499  # the client disconnected

        async def counted(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            with SECONDS.labels(path).time():
                if scope["method"] in ("GET", "HEAD"):
                    await self.app(scope, receive, counted)
                else:
                    await self._with_body(scope, receive, counted)
        finally:
            REQUESTS.labels(path, status).inc()

    async def _with_body(self, scope, receive, send) -> None:
        """Answers a request, or refuses its body."""
        with RUNNING.track_inprogress():
            try:
                body = await self._body(receive)
            except Refusal as refusal:
                return await error(refusal)(scope, receive, send)
            if body is not None:
                await self._answer(body, scope, receive, send)

    async def _body(self, receive) -> bytes | None:
        """The whole body; None if the client disconnects.

        A body of up to SPARE times the limit is read to its end and thrown away: a
        client that is still sending may not receive the answer.
        """
        most, chunks, size = int(self.limits.max_body * 2**20), [], 0
        try:
            async with asyncio.timeout(self.limits.body_timeout):
                async for chunk in Request({"type": "http"}, receive).stream():
                    size += len(chunk)
                    if size <= most:
                        chunks.append(chunk)
                    elif size > SPARE * most:
                        break
        except ClientDisconnect:
            return None
        except TimeoutError:
            seconds = self.limits.body_timeout
            raise Refusal(
                408, f"the body did not arrive within {seconds:g} seconds"
            ) from None
        if size > most:
            raise Refusal(413, f"the body is larger than {most:,} bytes")
        return b"".join(chunks)

    async def _answer(self, body: bytes, scope, receive, send) -> None:
        """Runs the application until it has answered or the client has disconnected."""
        messages = [{"type": "http.request", "body": body, "more_body": False}]
        gone = asyncio.ensure_future(receive())

        async def replay():
            return messages.pop() if messages else await asyncio.shield(gone)

        answer = asyncio.ensure_future(self.app(scope, replay, send))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                answer.result()
        finally:
            answer.cancel()
            gone.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)
