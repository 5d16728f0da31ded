"""Live pages: of a process, and a browser in this process that keeps cookies and follows redirections."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import terminals
from processes import eventually

from vflens.experiments.watch.access import Access
from vflens.experiments.watch.app import LivePage, live_app
from vflens.services.forking.forks import Fork

PORT = 1  # of the cookie; no socket is opened


class Browser:
    """Sees ``page``; a stream ends after so many readings."""

    def __init__(self, page: LivePage, *, readings: int = 1) -> None:
        self.access, left = Access(PORT), iter(range(readings - 1))
        self._app = live_app(page, self.access, lambda: next(left, None) is None)
        self.cookies, self._base = httpx.Cookies(), ""

    def get(self, path: str, **options: Any) -> httpx.Response:
        """The answer to a GET."""
        return self.request("GET", path, **options)

    def request(self, method: str, path: str, *, follow: bool = True, host: str = "") -> httpx.Response:
        """The answer to a request, with the host that the browser would name, or ``host``."""
        asked = self._ask(method, self._base + path, follow, {"Host": host} if host else {})
        with ThreadPoolExecutor(1) as thread:  # this one has a loop while Playwright has a browser
            return thread.submit(asyncio.run, asked).result()

    def enter(self) -> Browser:
        """Exchange the token for a cookie; the page lies under its own path from now on."""
        assert self.get(f"/?token={self.access.token}", follow=False).status_code == 303
        self._base = self.access.path.rstrip("/")
        return self

    async def _ask(self, method: str, path: str, follow: bool, headers: dict[str, str]) -> httpx.Response:
        base, transport = f"http://127.0.0.1:{PORT}", httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url=base, cookies=self.cookies) as client:
            answer = await client.request(method, path, follow_redirects=follow, headers=headers)
            self.cookies = client.cookies
            return answer


@contextmanager
def watching(*folders: Path) -> Iterator[tuple[Fork, str]]:
    """The process of a page, and its address; it is ended by SIGTERM."""
    with addressed("watch", *map(str, folders), "--json") as found:
        yield found


@contextmanager
def addressed(*command: str) -> Iterator[tuple[Fork, str]]:
    """The process of a command that prints where its page is, and the address; it is ended by SIGTERM."""
    with tempfile.TemporaryDirectory() as words:
        out = Path(words, "out")
        process = terminals.start([*command], out, errors=Path(words, "err"))
        try:
            eventually(lambda: "\n" in out.read_text(encoding="utf-8"))
            first = out.read_text(encoding="utf-8").partition("\n")[0]
            yield process, json.loads(first)["address"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
