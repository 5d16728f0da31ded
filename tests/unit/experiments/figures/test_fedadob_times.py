"""Tables VII and VIII count what the processor does for a federation, whatever else the machine does."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob import clients, studies
from vflens.experiments.figures.fedadob.cells import cells
from vflens.experiments.figures.fedadob.methods import TIMED
from vflens.experiments.figures.fedadob.times import timed
from vflens.experiments.sweeps.pool import Cell, Pool
from vflens.member.recovery import RecoveryLog
from vflens.plugins.chain import DefenseChain
from vflens.types import Exchange, Phase

pytest.importorskip("torch")
QUICK = FigureOptions(Pool(Path()), "quick")


def vertical() -> Cell:
    few = replace(studies.studies(QUICK)[0], data={"name": "digits", "sample": 120})
    return cells(replace(few, training={**few.training, "epochs": 1}), TIMED[:1], 0, ())[0]


def horizontal() -> Cell:
    few = replace(clients.study(QUICK), data={"name": "digits", "sample": 120}, horizontal={"rounds": 1})
    return cells(few, clients.TIMED[:1], 0, ())[0]


@pytest.mark.parametrize("cell", [vertical(), horizontal()], ids=["table 7", "table 8"])
def test_sleep_does_not_count(cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the processor's time is no longer than the whole, however long the parties slept in it."""
    fold, learned = DefenseChain.fold, RecoveryLog.mark_learned

    def predicted(self: DefenseChain, hook: str, value: Any, exchange: Exchange, rows: Any) -> Any:
        time.sleep(0.3 * (exchange.phase is Phase.PREDICT))
        return fold(self, hook, value, exchange, rows)

    def marked(self: RecoveryLog, step: int) -> None:
        time.sleep(0.3)
        learned(self, step)

    timed(*cell.arguments, scratch=str(tmp_path))  # what it imports takes as long as a sleep
    monkeypatch.setattr(DefenseChain, "fold", predicted)
    monkeypatch.setattr(RecoveryLog, "mark_learned", marked)
    began = time.process_time()
    (row,) = timed(*cell.arguments, scratch=str(tmp_path))
    whole = time.process_time() - began
    assert 0 < row["train"] < whole
    assert 0 < row["infer"] < whole
