"""A party's figures as a page for Prometheus, on a port of its own at 127.0.0.1; off unless configured.

The page is text of a few lines, so the standard library writes and serves it. It holds no values of rows, no
name but the party's, its role's and its run's, and no texts of errors.
"""

import re
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from vflens.config import PartyConfig
from vflens.errors import ConfigError
from vflens.member.member import Member
from vflens.services.identity import identity_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_REQUEST_SECONDS = 5.0  # of a request, from its connection to its answer
_MOST_REQUESTS = 8  # at a time
#: A page in a browser can reach loopback by a name of its own that DNS leads here: such names are refused.
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE)
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Calls:
    """What a party's server counted: answered calls, their seconds and bytes by act, and refusals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._bytes: Counter[str] = Counter()
        self._refused, self._last_refusal = 0, 0.0

    def answered(self, act: str, request: int, reply: int, seconds: float) -> None:
        """A call of ``act`` with so many bytes took ``seconds`` to answer."""
        with self._lock:
            self._number[act] += 1
            self._seconds[act] += seconds
            self._bytes["request"] += request
            self._bytes["reply"] += reply

    def refused(self) -> None:
        """A call ended in an error."""
        with self._lock:
            self._refused, self._last_refusal = self._refused + 1, datetime.now(UTC).timestamp()

    def lines(self) -> Iterator[str]:
        """The page's lines."""
        with self._lock:
            yield from _family("vflens_refused_calls_total", "counter", {"": self._refused})
            yield from _family("vflens_last_refusal_timestamp_seconds", "gauge", {"": self._last_refusal})
            for what in ("request", "reply"):
                yield from _family(f"vflens_{what}_bytes_total", "counter", {"": self._bytes[what]})
            yield "# TYPE vflens_call_seconds summary"
            for act, number in self._number.items():
                yield f'vflens_call_seconds_count{{act="{act}"}} {number}'
                yield f'vflens_call_seconds_sum{{act="{act}"}} {self._seconds[act]!r}'


def page(party: Member, calls: Calls) -> str:
    """The figures of ``party`` now, in Prometheus' text format."""
    who = {"party": party.name, "role": party.role, "run": party.config.run}
    labels = ",".join(f'{name}="{str(value).translate(_ESCAPED)}"' for name, value in who.items())
    federation, phase = party.federation, "alignment"
    if federation is not None:
        phase = str(party.reached.stage)
    lines = [
        *_family("vflens_party", "gauge", {f"{{{labels}}}": 1}),
        *_family("vflens_phase", "gauge", {f'{{phase="{phase}"}}': 1}),
        *_family("vflens_training_steps", "gauge", {"": 0 if federation is None else federation.steps}),
        *_family("vflens_training_steps_done", "gauge", {"": party.recovery.learned + 1}),
        *_family("vflens_received_messages_total", "counter", {"": party.transcript.received}),
        *_family("vflens_received_bytes_total", "counter", {"": party.transcript.nbytes}),
        *_family("vflens_restarts", "gauge", {"": party.reached.incarnation}),
        *calls.lines(),
    ]
    if (identity := identity_of(party.config)) is not None:
        ends = identity.files.ends.timestamp()
        lines += _family("vflens_certificate_end_timestamp_seconds", "gauge", {"": ends})
    return "\n".join([*lines, ""])


@contextmanager
def metrics_page(party: Member, calls: Calls | None) -> Iterator[int]:
    """Serve :func:`page` at ``[metrics] port`` while the block runs; gives the port, 0 without ``calls``.

    Raises:
        ConfigError: the port is taken.
    """
    if calls is None:
        yield 0
        return
    with _server(party, calls) as server:
        thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def calls_of(config: PartyConfig) -> Calls | None:
    """New counters where the configuration asks for a page."""
    return None if config.metrics.port is None else Calls()


class _Server(ThreadingHTTPServer):
    """Bounded in requests and their time: no client keeps other scrapers or the party's end waiting."""

    block_on_close = False

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: dict[socket.socket, float] = {}  # connection → its last moment
        super().__init__(("127.0.0.1", port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or close the connection if there are too many."""
        if len(self._open) >= _MOST_REQUESTS:
            self.shutdown_request(request)
            return
        self._open[request] = time.monotonic() + _REQUEST_SECONDS
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Close what is late; the server calls this twice a second."""
        now = time.monotonic()
        _hang_up(request for request, end in list(self._open.items()) if end < now)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection of a request that is answered, late or refused."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def server_close(self) -> None:
        """Stop to listen, and close what is open."""
        super().server_close()
        _hang_up(list(self._open))

    def handle_error(self, *_: Any) -> None:
        """A client that breaks its connection is no event of the run."""


def _hang_up(connections: Iterable[socket.socket]) -> None:
    """End the waiting of the threads that read from ``connections``."""
    for connection in connections:
        with suppress(OSError):  # its thread has closed it
            connection.shutdown(socket.SHUT_RDWR)


def _server(party: Member, calls: Calls) -> _Server:
    class Page(BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            if not _HOST.fullmatch(self.headers.get("Host", "")):
                self._answer(403, "ask for 127.0.0.1 or localhost\n")
            elif self.path.partition("?")[0] == "/metrics":
                self._answer(200, page(party, calls))
            else:
                self._answer(404, "see /metrics\n")

        def _answer(self, code: int, text: str) -> None:
            data = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Scrapes are no events of the run."""

    port = party.config.metrics.port or 0
    try:
        return _Server(port, Page)
    except OSError as error:
        raise ConfigError(
            f"metrics.port {port} cannot be bound ({error.strerror}): choose another"
        ) from error


def _family(name: str, kind: str, samples: dict[str, float]) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    for labels, value in samples.items():
        yield f"{name}{labels} {value}"
