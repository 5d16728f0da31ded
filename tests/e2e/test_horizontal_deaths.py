"""A client and the server are killed in the middle of rounds, as processes: the same bits in the end."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from laboratory import transcripts
from processes import dealt_from

from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run

SECONDS = 200  # on a loaded machine
#: Three of four clients train in a round, and the transcripts keep every second round.
SETTINGS: dict[str, Any] = {
    "name": "small",
    "data": {"name": "synthetic", "rows": 160, "features": 6, "classes": 2},
    "split": {"alpha": 3.0},
    "parties": {"clients": 4},
    "horizontal": {"rounds": 6, "participants": 3},
    "training": {"batch_size": 16},
    "limits": {"wait_seconds": 60, "rejoin_seconds": 60, "checkpoint_steps": 2},
    "transcript": {"every": 2},
}
#: In the server's second round one of its three updates is logged; of a client two updates left before.
DEATHS = {"client-1": "Step.answered:3:kill", "server": "recovery.written:5:kill"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("secure", [pytest.param(False, marks=pytest.mark.facts), True])
def test_deaths_in_rounds_change_no_bit(tmp_path: Path, secure: bool) -> None:
    horizontal = {**SETTINGS["horizontal"], "secure_aggregation": secure}
    whole = {**SETTINGS, "horizontal": horizontal, "out": tmp_path / "whole"}
    experiment = HorizontalExperiment.model_validate(whole)
    (home,) = run(experiment, in_process=True).scenarios
    with dealt_from(experiment, tmp_path / "killed") as federation:
        for party in federation.roles:
            federation.start(party, environment={"VFLENS_FAIL": DEATHS.get(party, "")})
        for party in ("server", "client-1"):  # in this order: the client is killed in a later round
            assert federation.processes[party].wait(SECONDS) == -signal.SIGKILL, federation.said(party)
            federation.start(party, flags=["--resume"])
        codes = federation.codes(SECONDS)
        assert set(codes.values()) == {0}, {party: federation.said(party) for party in codes}
        assert transcripts(federation.home) == transcripts(home)


@pytest.mark.facts
@pytest.mark.timeout(300)
def test_the_others_end_well_without_a_client_that_stays_away(tmp_path: Path) -> None:
    changes = {
        "horizontal": {"rounds": 4, "absent": "leave_out"},
        "limits": {"wait_seconds": 60, "rejoin_seconds": 1},
    }
    experiment = HorizontalExperiment.model_validate({**SETTINGS, **changes, "out": tmp_path})
    with dealt_from(experiment, tmp_path / "dealt") as federation:
        for party in federation.roles:
            fault = "Step.answered:2:kill" if party == "client-1" else ""
            federation.start(party, environment={"VFLENS_FAIL": fault})
        codes = federation.codes(SECONDS)
        assert codes == {**dict.fromkeys(federation.roles, 0), "client-1": -signal.SIGKILL}
        assert "4 rounds of 4 clients" in federation.said("server")
        assert "at the end without client-1" in federation.said("server")
        assert "accuracy" in federation.said("client-2")
