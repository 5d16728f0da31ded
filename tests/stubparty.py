"""A party that answers as it is told, served over gRPC or in this process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from vflens.config import Limits
from vflens.protocol.acts import Act
from vflens.protocol.link import Handlers, Party
from vflens.protocol.vertical.access import ACCESS
from vflens.services.servicer import Servicer
from vflens.types import Role
from vflens.wire.channel import new_server
from vflens.wire.messages import RPCS

LIMITS = Limits()
CALLERS = {str(role): (role, f"the-token-of-the-{role}") for role in Role}


class Stub(Party):
    """Answers every act of the wire with ``answer``."""

    access = ACCESS

    def __init__(self, answer: Callable[[Any], Any], role: Role) -> None:
        self.name, self.role, self._answer = "callee", role, answer

    def handlers(self) -> Handlers:
        return dict.fromkeys(RPCS, self._answer)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name: pytest's are too long."""
    folder = Path(tempfile.mkdtemp(prefix="vfl"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def served(party: Party, *, tcp: bool = False, limits: Limits = LIMITS, log: Any = None) -> Iterator[str]:
    """Serve ``party`` to every role of :data:`CALLERS`; the address."""
    with (
        short_folder() as folder,
        served_at("127.0.0.1:0" if tcp else f"unix:{folder}/s", party, limits=limits, log=log) as port,
    ):
        yield f"127.0.0.1:{port}" if tcp else f"unix:{folder}/s"


@contextmanager
def served_at(address: str, party: Party, *, limits: Limits = LIMITS, log: Any = None) -> Iterator[int]:
    """The same at ``address``; its port."""
    with ThreadPoolExecutor(8) as workers:
        server = new_server(workers, limits)
        server.add_generic_rpc_handlers((Servicer(party, CALLERS, log or structlog.get_logger()),))
        port = server.add_insecure_port(address)
        server.start()
        try:
            yield port
        finally:
            server.stop(0).wait()


def raising(error: Exception) -> Callable[[Act[Any]], Any]:
    """An answer that fails."""

    def answer(act: Act[Any]) -> Any:
        raise error

    return answer
