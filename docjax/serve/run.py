"""Runs a server until SIGTERM or SIGINT; what has begun is answered."""

import signal
import socket

import uvicorn

from docjax.config import UserError
from docjax.model import DocumentModel
from docjax.serve.app import Server
from docjax.serve.limits import Limits


def run(model: DocumentModel, name: str, host: str, port: int, limits: Limits) -> None:
    """Serves until it is told to stop; prints one line when it takes requests.

    Raises:
      UserError: if the address cannot be had.
    """
    listening = _listen(host, port)
    url = f"http://{host}:{listening.getsockname()[1]}"
    failures: list[BaseException] = []

    def failed(error: BaseException) -> None:
        failures.append(error)
        server.should_exit = True

    served = Server(
        model, name, limits, lambda: print(f"{name} at {url}", flush=True), failed
    )
    server = uvicorn.Server(
        uvicorn.Config(
            served.asgi,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(limits.body_seconds + limits.seconds) + 5,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops at these, and raises them once more when it has.
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])
    if failures:
        raise failures[0]


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        raise UserError(f"{host}:{port} cannot be listened at ({error})") from None
    return listening
