"""`docjax serve`: a model behind HTTP, with OpenAI's embeddings and a page at `/`."""

import argparse
from pathlib import Path

import docjax
from docjax.commands import options
from docjax.errors import UserError

HELP = "answer HTTP requests for vectors and comparisons"
EXAMPLE = "docjax serve runs/demo --port 8080"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run, an exported folder or a hub name")
    options.add(parser, "allow")
    parser.add_argument("--host", default="127.0.0.1", help="%(default)s")
    parser.add_argument(
        "--port", type=int, default=8080, help="%(default)s; 0: a free port"
    )
    for name, kind, default, what in (
        ("max-body", float, 1.0, "MiB of a request"),
        ("max-documents", int, 256, "documents of a request"),
        ("max-connections", int, 256, "connections at the same time"),
        ("body-timeout", float, 10.0, "seconds that a body may take to arrive"),
    ):
        parser.add_argument(
            f"--{name}", type=kind, default=default, help=f"{what} (%(default)s)"
        )


def run(flags: argparse.Namespace) -> None:
    try:
        from docjax.serve.app import Server
        from docjax.serve.limits import Limits
        from docjax.serve.run import run as serve
    except ImportError as error:
        raise UserError(
            f"serving needs the package {error.name}: pip install 'docjax[serve]'"
        ) from None
    limits = Limits(
        max_body=flags.max_body,
        max_documents=flags.max_documents,
        max_connections=flags.max_connections,
        body_timeout=flags.body_timeout,
    )
    folder = Path(flags.model)
    name = folder.resolve().name if folder.exists() else flags.model
    model = docjax.load(flags.model, allow=flags.allow)
    application = lambda *calls: Server(model, name, limits, *calls).asgi
    serve(application, name, flags.host, flags.port, limits)
