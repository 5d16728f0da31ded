"""Structured logs: one JSON line per event, to the party's own ``events.jsonl``."""

import contextlib
from pathlib import Path
from typing import TextIO, cast

import structlog

from vflens.storage.regular import opened_to_write


def party_log(file: Path, party: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that appends to ``file``; every event carries the party's name and the time (UTC)."""
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ]
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, _Lines(file))),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(20),
    )
    return logger.bind(party=party)


class _Lines:
    """Appends whole lines to ``file``, opened for each one: events are rare.

    A line that cannot be written is lost: a full disk must not stop a party from answering or ending in
    order.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def write(self, line: str) -> None:
        """Append ``line``, whole."""
        with contextlib.suppress(OSError), opened_to_write(self._file, "ab") as out:
            out.write(line.encode())

    def flush(self) -> None:
        """Do nothing: each line is already written."""
