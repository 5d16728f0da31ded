"""`PYTHONPATH=tests .venv/bin/pytest -p costs …`: the files of tests that cost most, in processor seconds.

User and system time of a test and of all processes below it, from its set-up to its tear-down. The set-up of
what several tests share counts for the first of them. Processes that outlive their parents are not seen, nor,
on systems without /proc, those that still run.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

_MOST = 40  # files in the table
_began = 0.0
_costs: dict[str, float] = defaultdict(float)
_tests: Counter[str] = Counter()


def pytest_runtest_logstart() -> None:
    """Before the set-up of a test."""
    global _began  # noqa: PLW0603 - one test at a time
    _began = used()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After its tear-down: what it used travels with the report."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append(("processor seconds", used() - _began))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add it to its file's."""
    for name, value in report.user_properties:
        if report.when == "teardown" and name == "processor seconds":
            file = report.nodeid.partition("::")[0]
            _costs[file] += float(str(value))
            _tests[file] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table."""
    terminalreporter.section("processor seconds, tests, file")
    dearest = sorted(_costs.items(), key=lambda cost: -cost[1])[:_MOST]
    for file, seconds in [("in all", sum(_costs.values())), *dearest]:
        count = _tests[file] or sum(_tests.values())
        terminalreporter.write_line(f"{seconds:8.1f} {count:5d}  {file}")


def used() -> float:
    """Processor seconds of this process and those below it, ended or not."""
    own = os.times()
    found = own.user + own.system + own.children_user + own.children_system
    waiting = _children(os.getpid())
    while waiting:
        process = waiting.pop()
        with suppress(OSError):  # it has ended: its parent has its time
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            found += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            waiting += _children(process)
    return found


def _children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{process}/task").glob("*/children"):
            found += map(int, file.read_text(encoding="utf-8").split())
    return found
