"""What a party discloses is its own: nothing that it forges is recorded or relayed by the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import rebuild_all
from laboratory import NOTHING, close, federation, finish, payload

from vflens.errors import ProtocolError
from vflens.experiments.run.in_process import LocalFederation
from vflens.protocol.acts import Disclose
from vflens.types import Exchange, Phase, Point, Released

TWO = {"parties": {"passive": ["a", "b"]}, "disclose": [], "attacks": []}


def _answer_more(local: LocalFederation, forged: Released, to: str) -> None:
    """Let party "a" add ``forged`` to what it discloses to the party ``to``."""
    evil = local.data_parties["a"]
    answers: dict[Any, Callable[[Any], Any]] = dict(evil._answers)
    honest = answers[Disclose]
    answers[Disclose] = lambda act: (*honest(act), *([forged] if act.to == to else []))
    evil._answers = answers


def _forged(sender: str, point: Point, phase: Phase, step: int, **tensors: Any) -> Released:
    version = 0 if phase is Phase.TRAIN else 1
    return Released(sender, Exchange("tiny/run", phase, version, step), point, NOTHING, tensors)


CASES = {
    "an embedding of another party": (
        _forged("active", Point.EMBEDDING, Phase.PREDICT, 0, embedding=np.zeros((1, 3))),
        "coordinator",
        "embedding that 'a' discloses came in phase 'predict' of run 'tiny/run', version 1: .* is due",
    ),
    "a gradient of a step that never was": (
        _forged("active", Point.GRADIENT, Phase.TRAIN, 10**6, gradient=np.zeros((5, 3))),
        "coordinator",
        "gradient that 'a' discloses came in phase 'train' of run 'tiny/run', version 0: .* is due",
    ),
    "parameters of another party": (
        _forged("b", Point.PARAMETERS, Phase.DISCLOSE, 3, weight=np.zeros((3, 2))),
        "active",
        "parameters of 'b' came from 'a': a party discloses its own",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_forged_disclosure_is_refused_and_nobody_records_it(tmp_path: Path, case: str) -> None:
    forged, to, words = CASES[case]
    local = federation(tmp_path, **TWO)
    _answer_more(local, forged, to)
    local.coordinator.prepare()
    local.coordinator.train()
    before = {m.name: m.transcript.received for m in local.members()}
    with pytest.raises(ProtocolError, match=f"^{words}$"):
        local.coordinator.disclose()
    assert {m.name: m.transcript.received for m in local.members()} == before
    close(local)


def test_a_forged_step_in_a_log_of_an_earlier_version_is_not_resumed_from(tmp_path: Path) -> None:
    """It said that a million steps were due, and no restart of the coordinator went on."""
    local = federation(tmp_path)
    local.coordinator.prepare()
    local.coordinator.train()
    last, train = local.coordinator.recovery.learned, local.coordinator.aligned.train
    tensors = {"gradient": np.zeros((5, 3))}
    forged = payload(tensors, rows=train[:5], sender="active", point=Point.GRADIENT, step=10**6)
    local.coordinator.transcript.record(forged)
    rebuild_all(local)
    assert local.coordinator.recovery.learned == last
    local.coordinator.rejoin()
    finish(local)
    close(local)
