"""Runs a server until SIGTERM or SIGINT; it still answers the requests that it has."""

import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn

from docjax.errors import UserError
from docjax.serve.limits import Limits

Application = Callable[[Callable[[], None], Callable[[BaseException], None]], Any]
DRAIN = 60  # seconds for the requests that a signal finds


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

    def started() -> None:
        print(f"{name} at {url}", flush=True)

    def failed(error: BaseException) -> None:
        failures.append(error)
        server.should_exit = True

    server = uvicorn.Server(
        uvicorn.Config(
            application(started, failed),
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=limits.max_connections + 1,  # it refuses from this on
            timeout_graceful_shutdown=DRAIN,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again after it has stopped: this must not kill it.
        signal.signal(number, server.handle_exit)
    line = f"compiling {name} for {url}: /healthz says when it is ready"
    print(line, file=sys.stderr, flush=True)
    server.run(sockets=[listening])
    if failures:
        raise failures[0]


def _listen(host: str, port: int) -> socket.socket:
    six = ":" in host
    family = socket.AF_INET6 if six else socket.AF_INET
    try:
        if not (0 <= port < 1 << 16 and host.isprintable()):
            raise ValueError("a port is a number from 0 to 65535, a host a name")
        return socket.create_server((host, port), family=family, dualstack_ipv6=six)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{host}:{port} cannot be listened at ({error}): give another --host or "
            "--port"
        ) from None
