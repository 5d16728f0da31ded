"""The server of a live page: 127.0.0.1, a free port, until a signal or the end of the launcher."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from vflens.errors import ConfigError
from vflens.experiments.watch.access import Access
from vflens.experiments.watch.app import LivePage, live_app
from vflens.services.lifeline import end_with_launcher

_NICENESS = 10  # the parties go first where processors are short


def serve(page: LivePage, announce: Callable[[str], None], port: int = 0) -> None:
    """Serve ``page`` until SIGINT, SIGTERM or, if a launcher started this process, until that is gone.

    Args:
        page: what is shown.
        announce: called with the address to open, once it answers connections.
        port: 0 means a free one.

    Raises:
        ConfigError: the port is taken.
    """
    with _listening(port) as listener:
        os.nice(_NICENESS)
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of browsers that left
        page.panels({})  # the first reading takes longest: before a browser waits for it
        end_with_launcher()
        port = listener.getsockname()[1]
        access = Access(port)
        app = live_app(page, access, lambda: server.should_exit)
        # A stream that does not end by itself must not hold the end back for ever.
        config = uvicorn.Config(app, timeout_graceful_shutdown=1, log_config=None, lifespan="off", ws="none")
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
