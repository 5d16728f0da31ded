"""`pytest --allowed-skips FILE`, as often as needed: a skipped test that no file names fails the session."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

_skipped: set[tuple[str, str]] = set()  # (test, reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--allowed-skips", type=Path, action="append", help="names the tests that may be skipped, and why"
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember a test that was skipped."""
    _remember(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Remember a file that was skipped."""
    _remember(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a session that passed but for skips that are not allowed."""
    if _unlisted(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which."""
    files = " and ".join(map(str, config.getoption("--allowed-skips") or ()))
    for test, reason in _unlisted(config):
        terminalreporter.write_line(
            f"FAILED {test} was skipped ({reason}): {files} does not allow it", red=True
        )


def _remember(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else str(report.longrepr)
        _skipped.add((report.nodeid, reason.removeprefix("Skipped: ")))


def _unlisted(config: pytest.Config) -> list[tuple[str, str]]:
    files: list[Path] | None = config.getoption("--allowed-skips")
    if files is None:
        return []
    lines = [line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    allowed = [line.split(" :: ", 1) for line in lines if line and not line.startswith("#")]
    return sorted(
        (test, reason)
        for test, reason in _skipped
        if not any(fnmatchcase(test, pattern) and part in reason for pattern, part in allowed)
    )
