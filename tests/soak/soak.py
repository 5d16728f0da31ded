"""Hours of faults: kills of real processes, mutated messages, and the memory of parties that serve.

``make soak`` runs it; it prints one table, writes it as JSON too, and ends with 1 after a failure. Each
failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vflens.wire.process import configure_process

configure_process()  # before gRPC loads

import killing
import memory
import messages
import returning
from world import quick

#: Each part, and its share of the time.
PARTS: Mapping[str, tuple[Callable[[float], dict[str, Any]], float]] = {
    "kills": (killing.soak, 0.3),
    "returning": (returning.soak, 0.1),
    "messages": (messages.soak, 0.4),
    "memory": (memory.soak, 0.2),
}
REPEATED: Mapping[str, Callable[..., None]] = {
    "kills": killing.repeat,
    "returning": returning.repeat,
    "messages": messages.repeat,
    "memory": memory.repeat,
}


def soak(minutes: float, out: Path) -> dict[str, Any]:
    """All parts in about ``minutes``; the figures of each, in ``out`` as soon as they are known."""
    out.parent.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    found: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "commit": commit.stdout.strip()}
    with quick():
        for part, (run, share) in PARTS.items():
            found[part] = run(60 * share * minutes)
            out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def table(found: Mapping[str, Any]) -> str:
    """What ran, in Markdown."""
    lines = ["| part | planned | ran | seconds | failures | figures |", "|---|---|---|---|---|---|"]
    for part in PARTS:
        figures = dict(found[part])
        own = [figures.pop(name) for name in ("planned", "ran", "seconds")]
        failures = len(figures.pop("failures"))
        text = ", ".join(f"{name} {value}" for name, value in figures.items())
        lines.append(f"| {part} | {own[0]} | {own[1]} | {own[2]} | {failures} | {text} |")
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=Path("build/soak.json"))
    parser.add_argument("--repeat", metavar="CELL", help="one cell, as a failure names it")
    options = parser.parse_args()
    if options.repeat:
        part, *cell = options.repeat.split(":")
        with quick():
            REPEATED[part](*cell)
        return 0
    found = soak(options.minutes, options.out)
    print(table(found))
    failures = [failure for part in PARTS for failure in found[part]["failures"]]
    for failure in failures:
        print(f"FAILED {failure['error']}\n  again: make soak SOAK=\"--repeat '{failure['cell']}'\"")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
