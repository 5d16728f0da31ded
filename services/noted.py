"""What a party's folder says of its run, from small files and the ends of its logs: no process is asked.

A file may be absent, damaged, or half written.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vflens.storage.json_file import json_object
from vflens.storage.regular import opened, read_text
from vflens.types import Phase, Setting

_TAIL_BYTES = 1 << 20  # of a log: its last lines


def noted(file: Path) -> dict[str, Any]:
    """The object in ``file``; {} where it is absent or being written."""
    with suppress(OSError, ValueError):
        return json_object(read_text(file))
    return {}


def _last_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects in the last whole lines of ``file``, the newest first."""
    try:
        with opened(file) as lines:
            lines.seek(max(0, lines.seek(0, 2) - _TAIL_BYTES))
            tail = lines.read().split(b"\n")[:-1]
    except OSError:
        return
    for line in reversed(tail):
        with suppress(ValueError):
            yield json_object(line)


def last_step(folder: Path) -> int | None:
    """The last training step received, kept or left out by sampling; None before the first."""
    recorded = (
        count(line.get("step"))
        for line in _last_lines(folder / "transcript" / "index.jsonl")
        if line.get("phase") == Phase.TRAIN
    )
    counts = noted(folder / "transcript" / "left_out.json").values()
    left_out = (count(counted[-1]) for counted in counts if isinstance(counted, list) and counted)
    steps = [next((step for step in recorded if step is not None), None), *left_out]
    return max((step for step in steps if step is not None), default=None)


def steps(federation: dict[str, Any]) -> int | None:
    """The training steps of the run, unless it stops early, or its rounds; None before it is prepared."""
    named = federation.get("setting", Setting.VERTICAL)
    return next((counted(federation) for setting, counted in STEPS.items() if setting == named), None)


def _rounds(federation: dict[str, Any]) -> int | None:
    rounds = federation.get("horizontal")
    return count(rounds.get("rounds")) if isinstance(rounds, dict) else None


def _batches(federation: dict[str, Any]) -> int | None:
    if not isinstance(training := federation.get("training"), dict):
        return None
    epochs, batch = count(training.get("epochs")), count(training.get("batch_size"))
    rows = count(federation.get("train_rows"))
    return epochs * -(-rows // batch) if epochs and batch and rows else None


#: How many steps, or rounds, a run of each setting has by its ``federation.json``.
STEPS: Mapping[Setting, Callable[[dict[str, Any]], int | None]] = {
    Setting.VERTICAL: _batches,
    Setting.HORIZONTAL: _rounds,
}


def count(value: object) -> int | None:
    """``value`` if it is a count; None for what else a damaged file can hold."""
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else None


def last_error(events: Path) -> str:
    """The newest warning or error in the party's log, "" without any."""
    for event in _last_lines(events):
        if event.get("level") in ("warning", "error"):
            what = event.get("error") or event.get("reason") or ""
            return f"{event.get('timestamp', '')} {event.get('event', '')}: {what}"
    return ""
