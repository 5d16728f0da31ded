"""A live page as a web application: its panels in one HTML page, and each panel again when it changes.

Panels travel as server-sent events, so the connection is a plain GET. A page is complete without its script.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from vflens.errors import VflensError
from vflens.experiments.pages.page import plotly, templates
from vflens.experiments.watch.access import HOSTS, Access, Guard

#: Between two readings, so that a page takes at most one core's twentieth from the parties.
_PAUSE_SECONDS, _IDLE_SHARE = 1.0, 20
_TICK_SECONDS = 0.1  # until a stream notices the server's end
_POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src-elem 'nonce-{0}'; style-src-attr 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Panels = Mapping[str, str]


class LivePage(Protocol):
    """What a live page shows. The app calls it from one thread at a time."""

    title: str

    def panels(self, chosen: Mapping[str, str]) -> Panels:
        """The panels now, by the id of their section, as HTML without scripts; ``chosen`` is the query of the
        address: untrusted text.
        """

    def report(self, chosen: Mapping[str, str]) -> str:
        """The same as a page that stays: HTML that opens offline; ``chosen`` as for the panels.

        Raises:
            VflensError: it cannot be made now.
        """


def live_app(page: LivePage, access: Access, ends: Callable[[], bool] = lambda: False) -> Starlette:
    """The application of ``page`` for the browser that ``access`` admits; streams close once ``ends()``."""
    reading = asyncio.Lock()

    async def panels(request: Request) -> Panels:
        async with reading:
            return await run_in_threadpool(page.panels, dict(request.query_params))

    async def show(request: Request) -> Response:
        nonce, found = secrets.token_urlsafe(16), await panels(request)
        html = (
            templates()
            .get_template("live.html.j2")
            .render(title=page.title, panels=found, nonce=nonce, query=request.url.query)
        )
        return HTMLResponse(html, headers={"Content-Security-Policy": _POLICY.format(nonce)})

    async def live(request: Request) -> Response:
        return StreamingResponse(_changes(lambda: panels(request), ends), media_type="text/event-stream")

    async def report(request: Request) -> Response:
        async with reading:
            try:
                html = await run_in_threadpool(page.report, dict(request.query_params))
            except VflensError as error:  # as of a folder that was damaged meanwhile
                return PlainTextResponse(f"{error}\n", 503)
        return HTMLResponse(html, headers={"Content-Disposition": 'attachment; filename="report.html"'})

    routes = [
        Route("/", show),
        Route("/live", live),
        Route("/report.html", report),
        Route("/plotly.js", _plotly),
    ]
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS)), Middleware(Guard, access=access)]
    return Starlette(routes=[Mount(access.path.rstrip("/"), routes=routes)], middleware=guards)


async def _changes(panels: Callable[[], Awaitable[Panels]], ends: Callable[[], bool]) -> AsyncIterator[str]:
    """The panels as server-sent events, each again when it changed; a comment when none did. The last state
    is sent when the server ends.
    """
    sent: dict[str, str] = {}
    last = False
    while not last:
        last, began = ends(), time.monotonic()
        found = await panels()
        changed = {name: html for name, html in found.items() if sent.get(name) != html}
        sent.update(changed)
        for name, html in changed.items():
            yield f"data: {json.dumps({'panel': name, 'html': html})}\n\n"
        if not changed:
            yield ":\n\n"  # a connection that is gone ends the stream here
        until = time.monotonic() + max(_PAUSE_SECONDS, _IDLE_SHARE * (time.monotonic() - began))
        while time.monotonic() < until and not ends():
            await asyncio.sleep(_TICK_SECONDS)


async def _plotly(request: Request) -> Response:
    """Plotly's script; the browser keeps it."""
    return Response(
        plotly(), media_type="text/javascript", headers={"Cache-Control": "private, max-age=86400"}
    )
