"""How far a party is: phase, step, time left, its last error and when its folder last changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vflens.errors import printable, shortened
from vflens.experiments.results.folders import PartyRun
from vflens.services.noted import last_error, last_step, noted, steps

_LONGEST = 600  # characters of a sentence on the page
_LOGS = ("events.jsonl", "transcript/index.jsonl", "status.json", "metrics.parquet")


@dataclass(frozen=True)
class Progress:
    """One party now; ``step`` of ``steps`` is None where its folder does not say, as is ``seconds_left``.

    ``changed`` is the local time of the last change of a file, "" without one.
    """

    party: str
    role: str
    state: str
    phase: str
    step: int | None
    steps: int | None
    seconds_left: float | None
    reason: str
    last_error: str
    changed: str


class Pace:
    """The time that a running count takes: from its first sight to its end, if it goes on as it did."""

    def __init__(self) -> None:
        self._seen: tuple[str, int, float] | None = None

    def seconds_left(self, phase: str, done: int | None, total: int | None) -> float | None:
        """The seconds to ``total`` in ``phase``; None before the first advance."""
        if done is None or not total:
            return None
        now = time.monotonic()
        if self._seen is None or self._seen[0] != phase or self._seen[1] > done:
            self._seen = phase, done, now
        _, first, began = self._seen
        return (total - done) * (now - began) / (done - first) if done > first and total >= done else None


def progress(party: PartyRun, pace: Pace) -> Progress:
    """How far ``party`` is, by its folder."""
    folder, running = party.folder, party.status.state == "running"
    phase = str(noted(folder / "state.json").get("stage", "alignment"))
    step = last_step(folder) if running else None
    total = steps(noted(folder / "federation.json")) if running else None
    done = None if step is None else step + 1
    return Progress(
        party=party.name,
        role=str(party.role or "?"),
        state=party.status.state,
        phase=shown(phase),
        step=done,
        steps=total,
        seconds_left=pace.seconds_left(phase, done, total) if running else None,
        reason=shown(party.status.reason),
        last_error=shown(last_error(folder / "events.jsonl")),
        changed=_changed(folder),
    )


def shown(text: str) -> str:
    """A sentence of a file on one line, with control characters escaped and a long middle left out."""
    return printable(shortened(text, _LONGEST))


def _changed(folder: Path) -> str:
    times = [f.stat().st_mtime for name in _LOGS if (f := folder / name).exists()]
    return datetime.fromtimestamp(max(times)).astimezone().strftime("%H:%M:%S") if times else ""
