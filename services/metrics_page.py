"""A party's figures as a page for Prometheus, on a port of its own at 127.0.0.1; off unless configured.

The page is text of a few lines, so the standard library writes and serves it. It holds no values of rows, no
name but the party's, its role's and its run's, and no texts of errors.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from vflens.config import MemberConfig
from vflens.errors import ConfigError
from vflens.member.member import Member
from vflens.services.identity import identity_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_QUIET_SECONDS = 5.0  # a scraper that sends nothing for so long is let go
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
        """Of the page."""
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


def calls_of(config: MemberConfig) -> Calls | None:
    """New counters where the configuration asks for a page."""
    return None if config.metrics.port is None else Calls()


def _server(party: Member, calls: Calls) -> HTTPServer:
    class Page(BaseHTTPRequestHandler):
        timeout = _QUIET_SECONDS

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            text = page(party, calls).encode() if found else b"see /metrics\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            """Scrapes are no events of the run."""

    port = party.config.metrics.port or 0
    try:
        return HTTPServer(("127.0.0.1", port), Page)
    except OSError as error:
        raise ConfigError(
            f"metrics.port {port} cannot be bound ({error.strerror}): choose another"
        ) from error


def _family(name: str, kind: str, samples: dict[str, float]) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    for labels, value in samples.items():
        yield f"{name}{labels} {value}"
