"""How long will mine take: processor time and memory of runs and audits by size, and the law that fits them.

``python -m benchmarks.scale`` prints the table at the top of docs/performance.md; each command is a process
of its own, with all parties in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomli_w

_ATTACKS = ("lmmse", "rcc2", "half_star")


class Size(NamedTuple):
    """A command: what grows, how many ``units`` of it, in words, and its arguments in a folder."""

    law: str
    units: float
    words: str
    arguments: list[str]


def sizes(folder: Path) -> Iterator[Size]:
    """What is measured, the small ones first."""
    for rows, columns in (*((1_000, d) for d in (5, 10, 20, 40, 80)), (10_000, 20)):
        table = folder / f"{rows}_{columns}.csv"
        values = np.random.default_rng(1).normal(size=(rows, columns))
        names = ",".join(["id", *(f"c{j}" for j in range(columns))])
        lines = (f"{i},{','.join(f'{v:.4f}' for v in row)}" for i, row in enumerate(values))
        table.write_text("\n".join([names, *lines, ""]), encoding="utf-8")
        out = ["--classes", "2", "--out", str(folder / "audit.html")]
        yield Size("audit, column", columns, f"audit, {rows:,} × {columns}", ["audit", str(table), *out])
    for rows, columns in ((10_000, 10), (100_000, 10), (100_000, 40)):
        settings = _vertical(rows, columns)
        words = f"vertical run, one epoch, {rows:,} × {columns}"
        yield Size("run, million cells", rows * columns / 1e6, words, _run(folder, settings))
    for count in range(len(_ATTACKS) + 1):
        settings = {**_vertical(10_000, 10), "attacks": [{"name": a} for a in _ATTACKS[:count]]}
        yield Size("attack, all 2,000 rows", count, f"the same, {count} attacks", _run(folder, settings))
    for clients in (5, 40):
        settings = {
            **{"name": "clients", "data": {"name": "synthetic", "rows": 300 * clients, "features": 10}},
            **{"parties": {"clients": clients}, "horizontal": {"rounds": 2}},
        }
        words = f"horizontal run, two rounds, {clients} clients of 300 × 10"
        yield Size("run, client", clients, words, _run(folder, settings))


def _vertical(rows: int, columns: int) -> dict[str, Any]:
    data = {"name": "synthetic", "rows": rows, "features": columns, "classes": 2}
    training = {"epochs": 1, "batch_size": 256}
    return {
        "name": "rows",
        "data": data,
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": training,
    }


def _run(folder: Path, settings: dict[str, Any]) -> list[str]:
    file = folder / f"run{len(list(folder.glob('*.toml')))}.toml"
    file.write_text(tomli_w.dumps(settings), encoding="utf-8")
    return ["run", str(file), "--in-process", "--out", str(folder / file.stem)]


def measured(arguments: list[str]) -> tuple[float, float]:
    """Processor seconds and the most MiB of ``vflens`` with these ``arguments``."""
    command = [sys.executable, "-m", "vflens.cli.main", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    words = process.stderr.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"vflens {' '.join(arguments)} ended with {process.returncode}: {words[-500:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Print a row a size, then seconds and MiB for each unit of what grows."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    print("| what | seconds of a core | MiB |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes(Path(folder)):
            seconds, mib = measured(size.arguments)
            found.setdefault(size.law, []).append((size.units, seconds, mib))
            print(f"| {size.words} | {seconds:.1f} | {mib:,.0f} |", flush=True)
    print("\n| for each | seconds | MiB | beside |\n|---|---|---|---|")
    for law, points in found.items():
        units, *figures = np.array(points).T
        (each, base), (more, least) = (np.polyfit(units, of, 1) for of in figures)
        print(f"| {law} | {each:.2g} | {more:.2g} | {base:.1f} s, {least:,.0f} MiB |")


if __name__ == "__main__":
    main()
