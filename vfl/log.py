"""Structured logs: one JSON line per event, to the party's own ``events.jsonl``."""

from __future__ import annotations

from pathlib import Path

import structlog


def party_log(file: Path, party: str) -> structlog.typing.FilteringBoundLogger:
    """A logger that appends to ``file``; every event carries the party's name and the time (UTC)."""
    handle = file.open("a", encoding="utf-8", buffering=1)
    processors: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.JSONRenderer(),
    ]
    logger: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(handle),
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(20),
    )
    return logger.bind(party=party)
