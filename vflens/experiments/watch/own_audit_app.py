"""The page of an own audit as a web application: it takes a table from the browser, and writes to nobody."""

import json
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from vflens.errors import ConfigError, VflensError
from vflens.experiments.pages.page import templates
from vflens.experiments.watch.access import HOSTS, Access, Guard
from vflens.experiments.watch.own_audit import OwnAudit
from vflens.experiments.watch.own_audit_form import about
from vflens.experiments.weights.read import MODELS
from vflens.storage.files import whole
from vflens.tables.cells import SUFFIXES
from vflens.types import Document

MOST_BYTES = 1 << 28  # of a table or a model
_MOST_FORM = 1 << 20
_POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src-elem 'nonce-{0}'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_Answer = Callable[[Request], Awaitable[Document]]


def audit_app(audit: OwnAudit, access: Access) -> Starlette:
    """The application of ``audit`` for the browser that ``access`` admits."""
    page = _Page(audit)
    routes = [
        Route("/", page.show),
        Route("/table", page.told(page.table), methods=["POST"]),
        Route("/weights", page.told(page.weights), methods=["POST"]),
        Route("/columns", page.told(page.columns)),
        Route("/start", page.told(page.start), methods=["POST"]),
        Route("/state", page.told(page.state)),
        *(Route(f"/{file.name}", _download(file)) for file in (audit.page, audit.dpia, audit.exposed)),
    ]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS)), Middleware(Guard, access=access)]
    return Starlette(routes=[Mount(access.path.rstrip("/"), routes=routes)], middleware=guards)


class _Page:
    """What answers the requests of the page of ``audit``."""

    def __init__(self, audit: OwnAudit) -> None:
        self._audit = audit

    async def show(self, request: Request) -> Response:
        """The page itself."""
        nonce = secrets.token_urlsafe(16)
        files = {"tables": ", ".join(SUFFIXES), "models": ", ".join(MODELS)}
        html = templates().get_template("own_audit.html.j2").render(nonce=nonce, **files)
        return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY.format(nonce)})

    async def table(self, request: Request) -> Document:
        """Take a table, and describe it."""
        with about("file"):
            return await run_in_threadpool(self._audit.take, await self._sent(request))

    async def weights(self, request: Request) -> Document:
        """Take a trained model, and describe it."""
        with about("weights"):
            return await run_in_threadpool(self._audit.take_weights, await self._sent(request, model=True))

    async def columns(self, request: Request) -> Document:
        """Describe the table by another column of ids."""
        with about("id_column"):
            return await run_in_threadpool(self._audit.described, request.query_params.get("id", ""))

    async def start(self, request: Request) -> Document:
        """Begin the audit that the form asks for."""
        self._audit.start(await _form(request))
        return self._audit.state

    async def state(self, request: Request) -> Document:
        """How far it is."""
        return self._audit.state

    async def _sent(self, request: Request, *, model: bool = False) -> Path:
        place = self._audit.place(request.query_params.get("name", ""), model=model)
        await _received(request, place)
        return place

    def told(self, answer: _Answer) -> Callable[[Request], Awaitable[Response]]:
        """``answer`` as JSON, and a refusal as a sentence."""

        async def respond(request: Request) -> Response:
            try:
                return JSONResponse(await answer(request))
            except VflensError as error:
                return JSONResponse(self._audit.refusal(error), 422)

        return respond


async def _received(request: Request, place: Path) -> None:
    """Write what the browser sends to ``place``, for its owner alone.

    Raises:
        ConfigError: it is too large.
    """
    size = 0
    with whole(place, 0o600) as file:
        async for part in request.stream():
            size += len(part)
            if size > MOST_BYTES:
                raise ConfigError(
                    f"the file has more than {MOST_BYTES >> 20} MB: audit it with vflens audit FILE"
                )
            file.write(part)


async def _form(request: Request) -> object:
    """The form as the browser sends it.

    Raises:
        ConfigError: it is no JSON, or too large.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM:
            raise ConfigError(f"the form has more than {_MOST_FORM >> 20} MB: choose fewer columns")
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the form is no JSON ({error}): load the page again") from error
    return found


def _download(file: Path) -> Callable[[Request], Awaitable[Response]]:
    """What answers with ``file``, once it is there."""

    async def respond(request: Request) -> Response:
        if not file.exists():
            return PlainTextResponse("The audit has not ended: wait for its verdict.\n", 404)
        return FileResponse(file, filename=file.name)

    return respond
