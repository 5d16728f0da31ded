"""Asks every route about the forty tables, and writes ``report.txt``: make truth.

What is said of a table is kept in the folder ``.truth`` under a digest of the code. A call goes on where the
last one stopped, and asks again what other code was asked.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from truth.constructions import LEAKING, NOTHING, UNKNOWN, Built
from truth.lab import Laboratory
from truth.routes import Said, few_defences, said_of
from vflens.types import Document, Facts

ROOT = Path(__file__).parents[2]
TABLES = (*NOTHING, *LEAKING)
_CODE = ("attacks", "clients", "coordinator", "defenses", "services", "vflens", "tests/truth")
_WRONG = ("false alarm", "false comfort", "open, no number of rows")


def kept(folder: Path, built: Built) -> Document:
    """What was said of a table; it is asked now if nothing is kept."""
    file = folder / f"{built.name}.json"
    if not file.exists():
        began = time.process_time()
        with tempfile.TemporaryDirectory() as home:
            found = _asked(Laboratory(built, Path(home)))
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**found, "seconds": round(time.process_time() - began)}))
    document: Document = json.loads(file.read_text())
    return document


def _asked(lab: Laboratory) -> Document:
    found = said_of(lab)
    wrong = [{**s._asdict(), "verdict": s.verdict} for s in found if s.verdict in _WRONG]
    states = {route: Counter(s.state for s in found if s.route == route) for route in _routes(found)}
    return {
        "contradictions": lab.contradictions(),
        "states": states,
        "verdicts": Counter(s.verdict for s in found),
        "wrong": wrong,
        "taken": {name: [round(float(of.max()), 3) for of in ends] for name, ends in lab.measured().items()},
    }


def _routes(found: Sequence[Said]) -> dict[str, None]:
    return dict.fromkeys(s.route for s in found)


def code() -> str:
    """A digest of the files that decide what is said."""
    digest = blake2b(digest_size=6)
    for file in sorted(file for top in _CODE for file in (ROOT / top).rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def lines_of(built: Built, found: Facts) -> list[str]:
    """A table in the report."""
    claims = ", ".join(f"{k}: {v}" for k, v in built.claims._asdict().items())
    taken = ", ".join(f"{name} {low:.3f} to {high:.3f}" for name, (low, high) in found["taken"].items())
    lines = [
        f"{built.name}: {built.reason}",
        f"  leaks: {claims}",
        f"  taken of the most exposed column: {taken}",
    ]
    lines += [f"  ! contradicts the table: {one}" for one in found["contradictions"]]
    for route, states in found["states"].items():
        lines.append(f"  {route}: " + ", ".join(f"{n} {state}" for state, n in sorted(states.items())))
    for one in found["wrong"]:
        low, high = one["truth"]
        lines.append(f"  ! {one['verdict']}: {one['what']}, {one['route']}, true {low:.3f} to {high:.3f}")
        lines.append(f"    {one['words'][:300]}")
    return lines


def main() -> int:
    """Print, and of all tables write, what is said and what is true."""
    few_defences()
    folder = ROOT / ".truth" / code()
    wanted = [b for b in TABLES if not sys.argv[1:] or any(a in b.name for a in sys.argv[1:])]
    total, lines, contradictions = Counter[str](), list[str](), 0
    for built in wanted:
        found = kept(folder, built)
        total.update(found["verdicts"])
        contradictions += len(found["contradictions"])
        lines += (new := ["", *lines_of(built, found)])
        print("\n".join(new), f"\n  ({found['seconds']} s)", flush=True)
    head = [
        f"{len(wanted)} tables: {total['false alarm']} false alarms, {total['false comfort']} false comfort"
    ]
    head += [f"{verdict}: {n:,} statements" for verdict, n in sorted(total.items()) if verdict not in _WRONG]
    head += [f"open without a number of rows: {total[_WRONG[2]]} statements"]
    head += [f"tables that are not what they claim: {contradictions}"]
    head += [f"training: open: {UNKNOWN}"]
    print("\n" + "\n".join(head))
    if len(wanted) == len(TABLES):
        (Path(__file__).parent / "report.txt").write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    return 1 if any(total[word] for word in _WRONG[:2]) or contradictions else 0


if __name__ == "__main__":
    sys.exit(main())
