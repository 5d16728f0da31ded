"""Who may read a live page: the browser that its owner opened, and no page of another site.

The owner gets an address with a token, which serves once: it is exchanged for a cookie that scripts cannot
read and that a browser sends with no request of another site. A browser sends the cookies of 127.0.0.1 to
every port of it, also to another user's: so the page lies under a path of its own that nobody can guess, and
its cookie goes there only. A page in a browser can reach 127.0.0.1 by a name of its own that DNS leads here:
the app admits known names of hosts only.
"""

import hmac
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOSTS = ("127.0.0.1", "localhost")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Access:
    """The rights to one live page, which lies under ``path``; ``port`` names its cookie. A page that
    ``takes`` what its browser sends also admits POST, from itself only.
    """

    def __init__(self, port: int, *, takes: bool = False) -> None:
        self.token, self.path = secrets.token_urlsafe(32), f"/{secrets.token_urlsafe(16)}/"
        self._cookie, self._session, self._used = f"vflens_{port}", secrets.token_urlsafe(32), False
        self._takes = takes

    def answer(self, request: Request) -> Response | None:
        """The redirection of who brings the token, or a refusal; None for the owner's browser."""
        if request.method != "GET" and not (self._takes and request.method == "POST"):
            return PlainTextResponse("This page is only read: use GET.\n", 405, {"Allow": "GET"})
        if request.method == "POST" and not _same(
            request.headers.get("origin", ""), f"http://{request.headers.get('host', '')}"
        ):
            return PlainTextResponse("This page takes nothing from other pages.\n", 403)
        path = request.url.path
        knows = _same(path[: len(self.path)], self.path)
        if _same(request.cookies.get(self._cookie, ""), self._session) and knows:
            return None
        if (
            request.method != "GET"
            or path != "/"
            or self._used
            or not _same(request.query_params.get("token", ""), self.token)
        ):
            return PlainTextResponse(
                "This page is for the browser that first opened the printed address, which serves once: "
                "start the command again for a new one.\n",
                403,
            )
        self._used = True
        response = RedirectResponse(self.path, 303)
        # Lax: the owner's browser comes from a file, and a strict cookie would not follow the redirection.
        response.set_cookie(self._cookie, self._session, path=self.path, httponly=True, samesite="lax")
        return response


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())


class Guard:
    """Middleware that asks ``access`` before ``app`` sees a request, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":  # the server's own start and end
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._access.answer(Request(scope)) or self._app
        await answer(scope, receive, with_headers)
