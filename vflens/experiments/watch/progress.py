"""How far a party is: phase, step, time left, its last error and when its folder last changed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vflens.experiments.results.folders import PartyRun
from vflens.experiments.watch.events import Alarm, sentence
from vflens.services.noted import last_step, noted, steps

_LAST_SECOND = 253_370_764_800  # of 9999 but a day: a file's time can lie beyond the calendar
_LOGS = ("events.jsonl", "transcript/index.jsonl", "status.json", "metrics.parquet")


@dataclass(frozen=True)
class PartyProgress:
    """One party now: its ``state`` and ``phase``, ``step`` of ``steps`` (None where its folder does not say).

    ``seconds_left`` is to the last step, None if not known; ``error`` why it failed, or its newest warning,
    with the remedy; ``changed`` the local time of the last change of a file, "" without one.
    """

    state: str
    phase: str
    step: int | None
    steps: int | None
    seconds_left: float | None
    error: str
    changed: str


class Eta:
    """The time that a running count takes: from its first sight to its end, if it goes on as it did."""

    def __init__(self) -> None:
        self._seen: tuple[int, float] | None = None

    def seconds_left(self, done: int, total: int) -> float | None:
        """The seconds from ``done`` to ``total``; None before the first advance."""
        now = time.monotonic()
        if self._seen is None or self._seen[0] > done:
            self._seen = done, now
        first, began = self._seen
        return (total - done) * (now - began) / (done - first) if first < done <= total else None


def progress(party: PartyRun, pace: Eta, alarms: Sequence[Alarm]) -> PartyProgress:
    """How far ``party`` is, by its folder; ``alarms`` are those of its log."""
    folder, state = party.folder, _state(party)
    running = state == "running"
    last = last_step(folder) if running else None
    done = None if last is None else last + 1
    total = steps(noted(folder / "federation.json")) if running else None
    newest = f"{alarms[-1].kind}: {alarms[-1].last}" if alarms else ""
    ended_badly = state in ("failed", "interrupted")
    return PartyProgress(
        state=state,
        phase=sentence(str(noted(folder / "state.json").get("stage", "alignment"))),
        step=done,
        steps=total,
        seconds_left=pace.seconds_left(done, total) if done is not None and total else None,
        error=sentence(party.status.reason) if ended_badly else newest,
        changed=_changed(folder),
    )


def _state(party: PartyRun) -> str:
    """The state in its status; in one process a party has none before its end."""
    if (party.folder / "status.json").exists():
        return party.status.state
    return "running" if (party.folder / "events.jsonl").exists() else "not started"


def _changed(folder: Path) -> str:
    times = [f.stat().st_mtime for name in _LOGS if (f := folder / name).exists()]
    newest = min(max([0, *times]), _LAST_SECOND)
    local, today = datetime.fromtimestamp(newest).astimezone(), datetime.now().astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M") if times else ""
