"""What a party discloses is its own: nothing that it forges is recorded or relayed by the coordinator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import rebuild_all
from laboratory import NOTHING, close, federation, finish, payload
from oneprocess import LocalFederation

from vflens.config import PassiveConfig
from vflens.errors import ProtocolError
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
    return Released(sender, Exchange("tiny/run", phase, version, step), point, NOTHING, tensors=tensors)


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


@pytest.mark.parametrize("what", ["auxiliary", "candidates"])
def test_a_party_grants_each_kind_once_to_a_receiver(tmp_path: Path, what: str) -> None:
    """Two numbers of rows are two disclosures, of which a receiver would record both."""
    config = federation(tmp_path, **TWO).passive["a"].config
    granted = [{"what": what, "to": "active", "rows": rows} for rows in (4, 6)]
    words = (
        "auxiliary to active is given twice" if what == "auxiliary" else "a client grants them to its server"
    )
    with pytest.raises(ValueError, match=words):
        PassiveConfig.model_validate({**config.model_dump(), "disclose": granted})


def test_two_numbers_of_rows_of_one_kind_are_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, **TWO)
    evil = local.passive["a"]
    answers: dict[Any, Callable[[Any], Any]] = dict(evil._answers)
    answers[Disclose] = lambda act: tuple(evil.disclosed("auxiliary", rows, act.version) for rows in (4, 6))
    evil._answers = answers
    local.coordinator.prepare()
    local.coordinator.train()
    with pytest.raises(
        ProtocolError, match=r"^'a' discloses auxiliary to 'coordinator' twice: each is due once$"
    ):
        local.coordinator.disclose()
    assert not list(local.coordinator.transcript.select(Point.AUXILIARY))


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
