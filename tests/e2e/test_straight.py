"""Processes whose active party aggregates: whoever dies or is stopped ends the run for all, in a sentence."""

from __future__ import annotations

import signal
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import terminals
from processes import SLOW, Federation, dealt, eventually

from vflens.config import Limits
from vflens.errors import AccessError
from vflens.protocol.acts import Step
from vflens.storage import journal
from vflens.types import Exchange, Phase
from vflens.wire.grpc_link import GrpcLink

# Two processes import torch: 9 s to the first step, on a loaded machine more than a minute.
pytestmark = pytest.mark.timeout(300)
BEGUN_SECONDS = 200
PARTIES = ("coordinator", "active", "passive")
FACTS = pytest.mark.facts  # the other parties: the same code ends them, 9 s of CPU each
STRAIGHT: dict[str, Any] = {
    "aggregator": "active",
    "model": {"architecture": "mlp", "width": 4},
    "training": SLOW,
    "limits": {
        "wait_seconds": BEGUN_SECONDS,
        "call_seconds": BEGUN_SECONDS,
        "step_seconds": 20,
        "epochs": SLOW["epochs"],
    },
}


def until_training(federation: Federation) -> None:
    """The coordinator receives nothing."""
    files = [federation.home / party / "transcript/payload.bin" for party in ("active", "passive")]
    eventually(lambda: all(f.stat().st_size > 0 for f in files), BEGUN_SECONDS)


def assert_ended_by(federation: Federation, who: str, code: int) -> None:
    assert federation.codes() == dict.fromkeys(PARTIES, 11) | {who: code}
    for other in set(PARTIES) - {who}:
        text = federation.said(other)
        assert "Traceback" not in text
        assert text.count("error: ") == 1, text
        assert federation.status(other)["state"] == "failed"


@pytest.mark.parametrize(
    ("staleness", "who"),
    [
        *((0, "passive"), (1, "active"), (1, "coordinator")),
        *(pytest.param(*case, marks=FACTS) for case in ((1, "passive"), (0, "active"), (0, "coordinator"))),
    ],
)
def test_one_that_is_killed(tmp_path: Path, who: str, staleness: int) -> None:
    settings = {**STRAIGHT, "training": {**SLOW, "staleness": staleness}}
    with dealt(tmp_path, **settings) as federation:
        federation.start()
        until_training(federation)
        federation.processes[who].kill()
        assert_ended_by(federation, who, -signal.SIGKILL)
        for other in set(PARTIES) - {who}:
            assert f"'{who}'" in federation.status(other)["reason"]
        for party in PARTIES:
            assert "unexpected" not in (federation.home / party / "events.jsonl").read_text()


@pytest.mark.parametrize("who", ["passive", pytest.param("active", marks=FACTS)])
def test_a_disk_that_is_full(tmp_path: Path, who: str) -> None:
    """No file of the party may grow beyond 200 kB; what every party recorded stays readable."""
    wide = {"architecture": "mlp", "width": 64}  # the log is full after a few steps
    with dealt(tmp_path, **{**STRAIGHT, "model": wide}) as federation:
        federation.start(who, file_bytes=terminals.SMALL)
        federation.start(*set(PARTIES) - {who})
        codes = federation.codes(BEGUN_SECONDS)
        assert codes[who] == 12
        assert set(codes.values()) <= {11, 12, 13}
        text = federation.said(who)
        assert text.splitlines()[-1].startswith(f"error: the log {federation.home / who}/")
        assert "File too large" in text
        for party in PARTIES:
            text = federation.said(party)
            assert "Traceback" not in text
            assert text.count("error: ") == 1, text
        for party in ("active", "passive"):  # the coordinator receives nothing
            assert list(journal.read(federation.home / party / "transcript"))


@pytest.mark.parametrize(
    "who", ["active", *(pytest.param(p, marks=FACTS) for p in ("coordinator", "passive"))]
)
def test_a_signal_ends_everybody_in_order(tmp_path: Path, who: str) -> None:
    with dealt(tmp_path, **STRAIGHT) as federation:
        federation.start()
        until_training(federation)
        federation.processes[who].send_signal(signal.SIGTERM)
        assert_ended_by(federation, who, 130)
        assert federation.status(who) == {"state": "interrupted", "reason": "stopped by a signal"}


def test_whoever_holds_another_token_opens_no_stream(tmp_path: Path) -> None:
    """Neither the coordinator with its own, nor anybody in the name of the active party."""
    with dealt(tmp_path, **STRAIGHT) as federation:
        federation.start()
        until_training(federation)
        settings = tomllib.loads(federation.config("coordinator").read_text())
        passive = next(p for p in settings["peers"] if p["name"] == "passive")
        step = Step(Exchange("tiny/run", Phase.TRAIN, 0, 0), np.arange(4, dtype=np.int32), None)
        for caller, words in (
            (
                "coordinator",
                "^party 'passive': coordinator 'coordinator' may not ask passive 'passive' to Step: only the "
                "active may$",
            ),
            (
                "active",
                "^party 'passive': caller 'active' is no peer of 'passive', or its token is another: ",
            ),
        ):
            link = GrpcLink(
                "passive", passive["address"], caller=caller, token=passive["token"], limits=Limits()
            )
            with pytest.raises(AccessError, match=words):
                link.call(step)
            link.close()
