"""What every member of a federation is: complete from its first line on, and calm in every state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import horizontal
import laboratory
import pytest
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.coordinator.horizontal.server import Server
from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.member.stage import Stage

TABLES = {"a": horizontal.table(20, 1), "b": horizontal.table(15, 2), "c": horizontal.table(12, 3)}
NETWORK: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 4, "hidden": [5]},
    "training": {"batch_size": 8, "learning_rate": 0.01},
}


def _clients(home: Path, **settings: Any) -> LocalFederation:
    return horizontal.federation(horizontal.deal(home, TABLES, **settings))


#: Federations by setting and method, with noise, grants and attacks.
FEDERATIONS: dict[str, Callable[[Path], LocalFederation]] = {
    "vertical": lambda home: laboratory.federation(home, defenses=laboratory.NOISY),
    "fedavg": lambda home: _clients(home, horizontal={"rounds": 2}, defenses=[{"name": "label_dp"}]),
    "secure": lambda home: _clients(
        home, horizontal={"rounds": 2, "secure_aggregation": True}, secure_aggregation=True
    ),
    "splitfed": lambda home: _clients(home, **NETWORK, horizontal={"rounds": 2, "method": "splitfed"}),
}


@pytest.mark.parametrize("kind", FEDERATIONS)
def test_no_attribute_is_born_after_the_first_line(tmp_path: Path, kind: str) -> None:
    local = FEDERATIONS[kind](tmp_path)
    born = {m.name: {*vars(m), *dir(type(m))} for m in local.members()}
    local.run()
    for member in nonempty(local.members()):
        assert set(vars(member)) - born[member.name] == set()
    laboratory.close(local)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("vertical", name) for name in ("passive", "active", "coordinator")),
        *((kind, name) for kind in ("fedavg", "splitfed") for name in ("a", "server")),
    ],
)
def test_settle_and_flush_change_no_state(tmp_path: Path, kind: str, name: str) -> None:
    local, stages = FEDERATIONS[kind](tmp_path), list[Stage]()
    leader, member = local.leader, local.parties[name]
    assert isinstance(leader, Coordinator | Server)
    for go_on in (leader.prepare, leader.train, leader.disclose, leader.open_predictions):
        go_on()
        stage, records = member.reached.stage, len(list(member.transcript))
        for _ in range(2):
            member.settle()
            member.flush()
        assert (member.reached.stage, len(list(member.transcript))) == (stage, records)
        stages.append(stage)
    assert stages == [Stage.TRAINING, Stage.TRAINING, Stage.DISCLOSED, Stage.OPEN]
    laboratory.close(local)
