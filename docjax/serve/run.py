"""Runs a server until SIGTERM or SIGINT; it still answers the requests that it has."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from docjax.errors import UserError
from docjax.serve.limits import Limits

Application = Callable[[Callable[[], Any], Callable[[BaseException], None]], Any]


class Connection(H11Protocol):
    """uvicorn's connection, closed if the head of a request does not arrive in time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wait(None)

    def on_response_complete(self) -> None:
        answered = self.cycle
        super().on_response_complete()
        self._wait(answered)

    def _wait(self, last: Any) -> None:
        self.loop.call_later(self.timeout_keep_alive, self._leave, last)

    def _leave(self, last: Any) -> None:
        if self.cycle is last:  # no request has come since
            self.transport.close()


def run(
    application: Application, name: str, host: str, port: int, limits: Limits
) -> None:
    """Serves until a signal stops the server.

    Prints one line to standard error when compiling begins, and one line to standard
    output when the server is ready.

    Args:
      application: makes the ASGI application from two functions, `started` and
        `failed`, which the application calls when it is ready and when it must end.

    Raises:
      UserError: if the server cannot listen at the address.
    """
    listening = _listen(host, port)
    place = f"[{host}]" if ":" in host else host
    url = f"http://{place}:{listening.getsockname()[1]}"
    failures: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failures.append(error)
        server.should_exit = True

    asgi = application(lambda: print(f"{name} at {url}", flush=True), failed)
    server = uvicorn.Server(_options(asgi, limits))
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again after it has stopped: this must not kill it.
        signal.signal(number, server.handle_exit)
    print(
        f"compiling {name} for {url}: /healthz says when it is ready",
        file=sys.stderr,
        flush=True,
    )
    server.run(sockets=[listening])
    if failures:
        raise failures[0]


def _options(asgi: Any, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        asgi,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.body_timeout,
        timeout_graceful_shutdown=int(limits.body_timeout + limits.timeout) + 5,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise UserError(
            f"{host}:{port} cannot be listened at ({error}): give another --host or "
            "--port"
        ) from None
    return listening
