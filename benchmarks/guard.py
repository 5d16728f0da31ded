"""``make bench-guard``: this checkout beside an earlier one, by processor time; fails where it costs more.

Each command runs for both at once, so that a busy moment falls on both. Python and its packages are those of
this environment. ``AGAINST`` is a commit, a tag or a wheel.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np
import pandas as pd
import tomli_w

from benchmarks.guarded import GUARDED, Guarded

ROOT = Path(__file__).parents[1]
LEAST_ROUNDS = 3

#: For each side: seconds of every command, by its name.
Seconds = dict[str, float]


def main() -> None:
    """Measure, print, and exit with 1 where a median ratio is above the limit."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as place:
        sides = {"earlier": _unpacked(arguments.against, Path(place)), "now": ROOT}
        wanted = chosen(arguments.only)
        rounds, refused = measure(sides, Path(place), arguments.minutes, wanted)
    lines, slower = judge(rounds, arguments.limit)
    print("\n".join([*lines, *refused]))
    print(f"medians of {len(rounds)} pairs; the earlier one is {arguments.against}")
    if len(lines) == 1:
        sys.exit(f"nothing was compared: {arguments.against} refuses every command; name a later one")
    if slower:
        sys.exit(f"costs more than {arguments.limit} times as much: {', '.join(slower)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-guard", description=__doc__)
    parser.add_argument("--against", required=True, help="a commit, a tag, or the path of a wheel")
    parser.add_argument("--minutes", type=float, default=5, help=f"at least {LEAST_ROUNDS} rounds are run")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="figures, such as audit-40")
    parser.add_argument("--limit", type=float, default=1.15, help="of the ratio now over earlier")
    return parser.parse_args()


def _unpacked(against: str, place: Path) -> Path:
    """A folder in which ``vflens`` of the earlier one lies; compiled, as this one is."""
    folder = place / "checkout"
    folder.mkdir()
    if against.endswith(".whl"):
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), against], check=True)
    else:
        archive = subprocess.run(["git", "archive", against], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            sys.exit(f"AGAINST is '{against}', which git does not know here: fetch it, or name another one")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    for checkout in (folder, ROOT):
        subprocess.run([sys.executable, "-m", "compileall", "-qq", checkout / "vflens"], check=True)
    return folder


def chosen(names: Sequence[str]) -> list[Guarded]:
    """The commands behind the figures ``names``, all where there are none: what one subtracts runs too."""
    if unknown := sorted(set(names) - {guarded.name for guarded in GUARDED}):
        sys.exit(f"--only names {unknown[0]!r}, which is no figure: {', '.join(g.name for g in GUARDED)}")
    less = {guarded.less for guarded in GUARDED if guarded.name in names}
    return [guarded for guarded in GUARDED if not names or guarded.name in {*names, *less}]


def measure(
    sides: Mapping[str, Path], place: Path, minutes: float, wanted: Sequence[Guarded] = ()
) -> tuple[list[dict[str, Seconds]], list[str]]:
    """Rounds of the ``wanted`` commands, or all, for both; a line for each that the earlier one refuses."""
    rounds: list[dict[str, Seconds]] = []
    refused: dict[str, str] = {}
    began = monotonic()
    while len(rounds) < LEAST_ROUNDS or (monotonic() - began) * (1 + 1 / len(rounds)) < 60 * minutes:
        rounds.append({side: {} for side in sides})
        for guarded in wanted or GUARDED:
            if guarded.name in refused or guarded.less in refused:
                continue
            seconds = _pair(guarded, sides, place)
            if isinstance(seconds, str):
                refused[guarded.name] = seconds
                continue
            for side, spent in seconds.items():
                rounds[-1][side][guarded.name] = spent
        print(f"round {len(rounds)}: {monotonic() - began:.0f} s", file=sys.stderr)
    return rounds, [f"{name} is left out: the earlier one said: {words}" for name, words in refused.items()]


def _pair(guarded: Guarded, sides: Mapping[str, Path], place: Path) -> Seconds | str:
    """Processor seconds of the command and its children, for both at once; else the earlier one's words."""
    started = {side: _started(guarded, checkout, place / f"runs-{side}") for side, checkout in sides.items()}
    seconds: Seconds = {}
    failed: dict[str, str] = {}
    for side, process in started.items():
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds[side] = used.ru_utime + used.ru_stime
        if status:
            failed[side] = (place / f"runs-{side}" / "errors").read_text(encoding="utf-8").strip()[-300:]
    if "now" in failed:
        sys.exit(f"vflens {' '.join(guarded.command)} failed: {failed['now']}")
    return failed.get("earlier", seconds)


def _started(guarded: Guarded, checkout: Path, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    if guarded.experiment is not None:
        (folder / f"{guarded.name}.toml").write_text(tomli_w.dumps(guarded.experiment), encoding="utf-8")
    if guarded.columns:
        _made_up(folder / f"{guarded.name}.csv", guarded.columns)
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "vflens.cli.main", *guarded.command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def _made_up(file: Path, columns: int) -> None:
    """2,000 rows of correlated columns, and a label y of two classes that some of them tell."""
    rng = np.random.default_rng(columns)
    x = rng.normal(size=(2_000, 5)) @ rng.normal(size=(5, columns)) + rng.normal(size=(2_000, columns))
    table = pd.DataFrame(x.round(4), columns=[f"c{j}" for j in range(columns)])
    table["y"] = (x[:, :4].sum(axis=1) + rng.normal(size=2_000) > 0).astype(int)
    table.to_csv(file, index_label="id")


def judge(rounds: Sequence[Mapping[str, Seconds]], limit: float) -> tuple[list[str], list[str]]:
    """A line for each figure, and the names of those whose median ratio is above ``limit``."""
    lines = [f"{'':<22}{'earlier':>12}{'now':>12}   now over earlier"]
    slower = []
    for guarded in GUARDED:
        earlier, now = (
            [_figure(guarded, r[side]) for r in rounds if guarded.name in r[side]]
            for side in ("earlier", "now")
        )
        ratios = [b / a for a, b in zip(earlier, now, strict=True)]
        if not ratios:
            continue
        lines.append(
            f"{guarded.name:<22}{_shown(median(earlier)):>12}{_shown(median(now)):>12}   "
            f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
        if median(ratios) > limit:
            slower.append(guarded.name)
    return lines, slower


def _figure(guarded: Guarded, seconds: Seconds) -> float:
    """Seconds of what the command counts."""
    less = seconds[guarded.less] if guarded.less else 0.0
    return (seconds[guarded.name] - less) / guarded.count


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1e6:.0f} µs"


if __name__ == "__main__":
    main()
