"""The paths of the server, and the form of requests and answers."""

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

import numpy as np
import prometheus_client
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from docjax.data.documents import from_text
from docjax.errors import UserError
from docjax.explain import compare_page as compare
from docjax.explain import page
from docjax.model.compare import Comparison, cosines
from docjax.model.document_model import DocumentModel
from docjax.serve.batching import Batcher, Job
from docjax.serve.limits import Gate, Limits, Refusal, error
from docjax.serve.service import Service

FOLDER = Path(__file__).parent
TEMPLATE = page.template(  # a user pastes two texts, and sees why they are similar
    FOLDER / "form.html.jinja",
    script=compare.SCRIPT,
    styles=[compare.STYLE, FOLDER / "form.css"],
)
TOKENS = 8192  # tokens in one batch of segments
WANTED = "a document is a text or an object with text or sections, and no token ids"

Document = str | dict[str, Any]  # a text, or an object as in a JSON-lines corpus
Documents = Document | list[Any]  # `_list` checks the elements


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Embed(Body):
    """OpenAI's request, and `input_type`: some models read queries in another way."""

    input: Documents
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None
    input_type: Literal["document", "query"] = "document"


class Similar(Body):
    a: Documents
    b: Documents


class Compare(Body):
    a: Document
    b: Document


class Server:
    """One model behind the paths of an ASGI application, `asgi`.

    The server first compiles the model, then calls `started` and answers requests. If
    it cannot start or cannot continue, it calls `failed` with the error.
    """

    def __init__(
        self,
        model: DocumentModel,
        name: str,
        limits: Limits,
        started: Callable[[], Any],
        failed: Callable[[BaseException], Any],
    ):
        self.name, self.limits = name, limits
        self.started, self.failed = started, failed
        self.state, self.stopped = "compiling", threading.Event()
        self.service = Service(model)
        self.batcher = Batcher(self.service.read, TOKENS)
        app = self._application()
        self.asgi = Gate(app, limits, {route.path for route in app.routes})

    def _application(self) -> FastAPI:
        app = FastAPI(
            title="docjax", lifespan=self._life, docs_url=None, redoc_url=None
        )
        app.add_api_route("/v1/embeddings", self.embeddings, methods=["POST"])
        app.add_api_route("/similarity", self.similarity, methods=["POST"])
        app.add_api_route("/compare", self.compare, methods=["POST"])
        app.add_route("/healthz", self.health)
        app.add_route("/metrics", self.counts)
        app.add_route("/", self.form, methods=["GET"])
        app.add_route("/", self.compared, methods=["POST"])
        app.add_exception_handler(HTTPException, _refused)
        app.add_exception_handler(RequestValidationError, _invalid)
        app.add_exception_handler(Exception, _failed)
        return app

    async def embeddings(self, request: Embed) -> Response:
        """Vectors of documents or queries, in the form of OpenAI's API."""
        self._check_ready()
        self._check_asked(request)
        items = self._list(request.input, "input")
        jobs_of = self.service.documents
        if request.input_type == "query":
            jobs_of = self.service.queries
        vectors, usage = await self._results(jobs_of, items)
        return await asyncio.to_thread(self._embedded, request, vectors, usage)

    def _check_asked(self, request: Embed) -> None:
        """Raises Refusal for another model, or another length of the vectors."""
        if request.model not in (None, self.name):
            raise Refusal(
                404,
                f"the model {request.model!r} is not served: ask for {self.name!r}",
                "model",
                "model_not_found",
            )
        width = self.service.width
        if request.dimensions not in (None, width):
            raise Refusal(400, f"the vectors have {width} dimensions", "dimensions")

    def _embedded(
        self, request: Embed, vectors: Sequence[np.ndarray], usage: dict[str, int]
    ) -> Response:
        form = _base64 if request.encoding_format == "base64" else np.ndarray.tolist
        data = [
            {"object": "embedding", "index": i, "embedding": form(vector)}
            for i, vector in enumerate(vectors)
        ]
        answer = {"object": "list", "data": data, "model": self.name, "usage": usage}
        return _json(answer)

    async def similarity(self, request: Similar) -> Response:
        """The cosine of each document of `a` with each document of `b`."""
        self._check_ready()
        a, b = self._list(request.a, "a"), self._list(request.b, "b")
        both = self._list(a + b, "a and b")
        vectors, usage = await self._results(self.service.documents, both)
        matrix = cosines(np.stack(vectors[: len(a)]), np.stack(vectors[len(a) :]))
        return _json({"similarity": matrix.tolist(), "usage": usage})

    async def compare(self, request: Compare) -> Response:
        """Two documents: their texts and the strongest links of their parts."""
        self._check_ready()
        pair = request.a, request.b
        [comparison], usage = await self._results(self.service.comparison, pair)
        facts = await asyncio.to_thread(compare.facts, comparison)
        return _json(facts | {"usage": usage})

    async def health(self, request: Request) -> Response:
        """Status 200 if the server is ready, else 503."""
        return _json({"status": self.state}, 200 if self.state == "ready" else 503)

    async def counts(self, request: Request) -> Response:
        """The counts of the process, in the format of Prometheus."""
        counts = prometheus_client.generate_latest()
        return Response(counts, media_type=prometheus_client.CONTENT_TYPE_LATEST)

    async def form(self, request: Request) -> Response:
        """The page with a form for two texts."""
        return HTMLResponse(self._page())

    async def compared(self, request: Request) -> Response:
        """The same page with a comparison of the two texts."""
        raw = (await request.body()).decode("utf-8", "replace")
        fields = parse_qs(raw, keep_blank_values=True)
        texts = [fields.get(key, [""])[0].replace("\r\n", "\n") for key in "ab"]
        try:
            comparison = await self._compared(texts)
        except Refusal as refusal:
            html = self._page(texts, message=refusal.detail)
            return HTMLResponse(html, refusal.status_code)
        return HTMLResponse(await asyncio.to_thread(self._page, texts, comparison))

    def _page(
        self,
        texts: Sequence[str] = ("", ""),
        comparison: Comparison | None = None,
        message: str = "",
    ) -> str:
        """The form with `texts`, and a comparison or a message."""
        values = compare.values(comparison) if comparison else {"sides": None}
        boxes = dict(zip(compare.NAMES, texts))
        return TEMPLATE.render(title=self.name, texts=boxes, message=message, **values)

    async def _compared(self, texts: Sequence[str]) -> Comparison:
        self._check_ready()

        def jobs_of(texts: Sequence[str]) -> tuple[list[Job], int]:
            pair = [from_text(text, name) for text, name in zip(texts, compare.NAMES)]
            return self.service.comparison(pair)

        [comparison], _ = await self._results(jobs_of, texts)
        return comparison

    async def _results(
        self, jobs_of: Callable, items: Sequence
    ) -> tuple[list[Any], dict[str, int]]:
        """The results of the jobs that `jobs_of` makes of `items`, and their usage.

        Raises:
          Refusal: 400 for items that cannot be read.
        """
        try:
            jobs, cut = await asyncio.to_thread(jobs_of, items)
            results = await self.batcher(jobs)
        except UserError as error:
            raise Refusal(400, str(error)) from None
        tokens = sum(job.tokens for job in jobs)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens, "tokens_cut": cut}
        return results, usage

    def _check_ready(self) -> None:
        if self.state != "ready":
            raise Refusal(503, f"the server is {self.state}, not ready: try later")

    def _list(self, documents: Documents, key: str) -> list[Document]:
        items = documents if isinstance(documents, list) else [documents]
        most = self.limits.max_documents
        if not items:
            raise Refusal(400, f"{key}: an empty list; give at least 1 document", key)
        if len(items) > most:
            detail = f"{len(items):,} documents, at most {most:,} a request"
            raise Refusal(400, f"{key}: {detail}", key)
        if not all(isinstance(item, (str, dict)) for item in items):
            raise Refusal(400, f"{key}: {WANTED}", key)
        return items

    @contextlib.asynccontextmanager
    async def _life(self, app: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._start())]
        tasks.append(asyncio.create_task(self.batcher.run()))
        tasks[-1].add_done_callback(self._ended)
        yield
        self.stopped.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.batcher.close()

    async def _start(self) -> None:
        try:
            await self.batcher.in_thread(self.service.warm, self.stopped)
        except Exception as error:  # noqa: BLE001 `failed` reports the error
            self.failed(error)
            return
        if not self.stopped.is_set():
            self.state = "ready"
            self.started()

    def _ended(self, batching: asyncio.Task) -> None:
        """Stops the server: without the batcher requests would wait for ever."""
        self.state = "stopped"
        self.stopped.set()
        if not batching.cancelled() and (error := batching.exception()):
            self.failed(error)


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


def _base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")


async def _refused(request: Request, refusal: HTTPException) -> Response:
    return error(refusal)


async def _invalid(request: Request, invalid: RequestValidationError) -> Response:
    """The first mistake in a request's body, in one line."""
    first = invalid.errors()[0]
    if first["type"] == "json_invalid":
        return error(Refusal(400, f"the body is not JSON: {first['ctx']['error']}"))
    field = next((str(part) for part in first["loc"][1:]), None)
    if field is None:
        detail = "the body must be a JSON object, sent as application/json"
        return error(Refusal(400, detail))
    wanted = WANTED if field in ("input", "a", "b") else first["msg"]
    missing = "missing; " if first["type"] == "missing" else ""
    return error(Refusal(400, f"{field}: {missing}{wanted}", field))


async def _failed(request: Request, failure: Exception) -> Response:
    return error(Refusal(500, "the server failed; its log says why"))
