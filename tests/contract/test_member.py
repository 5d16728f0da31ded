"""What every member of a federation is: complete from its first line on, and calm in every state."""

from __future__ import annotations

from pathlib import Path

import pytest
from laboratory import federation

from vflens.member.stage import Stage


def test_no_attribute_is_born_after_the_first_line(tmp_path: Path) -> None:
    local = federation(tmp_path)
    born = {m.name: set(vars(m)) for m in local.members()}
    local.run()
    for member in local.members():
        cached = {"_answers", "performed"}  # a cached property and a counter of every party
        assert set(vars(member)) - cached == born[member.name]


@pytest.mark.parametrize("name", ["passive", "active", "coordinator"])
def test_settle_and_flush_change_no_state(tmp_path: Path, name: str) -> None:
    local = federation(tmp_path, attacks=[])
    member, stages = local.parties[name], list[Stage]()
    for go_on in (
        local.coordinator.prepare,
        local.coordinator.train,
        local.coordinator.disclose,
        local.coordinator.open_predictions,
    ):
        go_on()
        stage, records = member.reached.stage, len(list(member.transcript))
        for _ in range(2):
            member.settle()
            member.flush()
        assert (member.reached.stage, len(list(member.transcript))) == (stage, records)
        stages.append(stage)
    assert stages == [Stage.TRAINING, Stage.TRAINING, Stage.DISCLOSED, Stage.OPEN]
    member.close()
