"""The report's sentence on the adversary, from made-up records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runfolder import metric, write_party, write_run

from vflens.experiments.pages.adversary import adversary
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import RecordedRun, read_runs

KEEPS = "It follows the protocol and reads"
BREAKS = "It follows the protocol, except in runs marked MALICIOUS above, and reads"


def record(folder: Path, **config: Any) -> RecordedRun:
    """A run whose active party has ``config``."""
    write_run(folder)
    accuracy = [metric("accuracy", 0.96, scored_set="predict")]
    write_party(folder / "active", "active", config=config, metrics=accuracy)
    (run,) = read_runs([folder])
    return run


@pytest.mark.parametrize(
    ("config", "joint", "protocol"),
    [
        ({"attacks": [{"name": "lmmse"}]}, "", KEEPS),
        (
            {"attacks": [{"name": "lmmse"}, {"name": "lmmse:with-b", "colluders": ["b"]}]},
            "Some attacks join what several parties know: the active party with b. ",
            KEEPS,
        ),
        ({"attacks": [{"name": "lmmse"}], "malicious": True}, "", BREAKS),
    ],
)
def test_the_report_says_who_attacks_with_whom_and_by_the_rules(
    tmp_path: Path, config: dict[str, Any], joint: str, protocol: str
) -> None:
    run = record(tmp_path / "demo", **config)
    seat = "The adversary sits in the active party and attacks the passive party. "
    text = adversary([run])
    assert text.startswith(f"{seat}{joint}{protocol} what its party received")
    assert text in render([run])
    assert ("MALICIOUS" in render([run]).replace(text, "")) == (protocol == BREAKS)


def test_a_coalition_of_a_later_run_is_named_once(tmp_path: Path) -> None:
    joint = {"attacks": [{"name": "lmmse:with-b", "colluders": ["b"]}]}
    runs = [record(tmp_path / name, **config) for name, config in (("a", {}), ("b", joint), ("c", joint))]
    assert adversary(runs).count("the active party with b") == 1
