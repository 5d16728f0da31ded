"""`make test` says how long it takes: measured before the first run, then as the last run that passed."""

from __future__ import annotations

from pathlib import Path

import pytest
import timed
from costs import used


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "cache/suite_seconds"


def test_before_the_first_run_it_is_measured(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "_LOAD", "sum(range(3_000_000))")
    monkeypatch.setattr(timed, "LOADS", 60_000)
    text = timed.expected(record)
    minutes = int(text.removeprefix("about ").partition(" ")[0])
    assert minutes > 10  # the interpreter alone takes more than ten milliseconds
    assert text.endswith(" minutes on this machine, judged by how long VFLens takes to load")


def test_a_run_that_passed_is_the_next_one_s_time(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record.parent.mkdir()
    record.write_text("340\n", encoding="utf-8")
    assert timed.main(["true"], record) == 0
    assert capsys.readouterr().out == "about 6 minutes on this machine, as the last run that passed\n"
    assert float(record.read_text(encoding="utf-8")) < 60


def test_a_run_that_failed_is_none(record: Path) -> None:
    record.parent.mkdir()
    record.write_text("340\n", encoding="utf-8")
    assert timed.main(["sh", "-c", "exit 3"], record) == 3
    assert record.read_text(encoding="utf-8") == "340\n"


def test_a_record_that_is_no_number_is_measured_anew(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record.parent.mkdir()
    record.write_text("soon", encoding="utf-8")
    monkeypatch.setattr(timed, "_LOAD", "")
    assert "judged by" in timed.expected(record)


def test_processor_seconds_are_counted() -> None:
    before = used()
    while used() < before + 0.05:
        sum(range(10_000))
    assert used() >= before + 0.05
