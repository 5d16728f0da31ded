"""The server of a live page: 127.0.0.1, a free port, until a signal or the end of the launcher."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import uvicorn
from starlette.applications import Starlette

from vflens.errors import ConfigError
from vflens.experiments.watch.access import Access
from vflens.experiments.watch.app import LivePage, live_app
from vflens.services.forking.lifeline import end_with_launcher

_END_SECONDS = 8  # for the last state of the page
MakeApp: TypeAlias = Callable[[Access, Callable[[], bool]], Starlette]
_NICENESS = 10  # the parties go first where processors are short


def serve(page: LivePage, announce: Callable[[str], None], port: int = 0) -> None:
    """Serve ``page``: see :func:`serve_app`."""

    def app(access: Access, ends: Callable[[], bool]) -> Starlette:
        page.panels({})  # the first reading takes longest: before a browser waits for it
        return live_app(page, access, ends)

    serve_app(app, announce, port)


def serve_app(make: MakeApp, announce: Callable[[str], None], port: int = 0, *, takes: bool = False) -> None:
    """Serve an application until SIGINT, SIGTERM or, if a launcher started this process, until that is gone.

    Args:
        make: the application, for the browser of an access and until a function says that the server ends.
        takes: whether it takes what its browser sends.
        announce: called with the address to open, once it answers connections.
        port: 0 means a free one.

    Raises:
        ConfigError: the port is taken.
    """
    with _listening(port) as listener:
        os.nice(_NICENESS)
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of browsers that left
        port = listener.getsockname()[1]
        access = Access(port, takes=takes)
        app = make(access, lambda: server.should_exit)
        end_with_launcher()
        # A stream that does not end by itself must not hold the end back for ever.
        config = uvicorn.Config(
            app, timeout_graceful_shutdown=_END_SECONDS, log_config=None, lifespan="off", ws="none"
        )
        server = _Server(config, lambda: announce(f"http://127.0.0.1:{port}/?token={access.token}"))
        with suppress(KeyboardInterrupt):  # the usual end: uvicorn raises the signal again after its own
            server.run(sockets=[listener])


class _Server(uvicorn.Server):
    """Calls ``announce`` once it answers, in a thread: a browser in the foreground returns late."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup(sockets)
        threading.Thread(target=self._announce, daemon=True).start()


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise ConfigError(
            f"port {port} of 127.0.0.1 cannot be used ({error.strerror}): give another --port, or none"
        ) from error
