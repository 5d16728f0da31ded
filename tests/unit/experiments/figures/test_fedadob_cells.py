"""What an attack finds is kept by itself as soon as it is there, and is what it finds beside all others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob import clients, studies
from vflens.experiments.figures.fedadob.cells import _apart, cells, run
from vflens.experiments.figures.fedadob.methods import ATTACKS, AUTHORS, DEFENSES, NONE, SCORING, Against
from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps.pool import Cell, Pool, Rows
from vflens.experiments.sweeps.sweep import run_cell
from vflens.plugins.attack import installed_attack
from vflens.plugins.malicious import breaks_protocol

pytest.importorskip("torch")
STUDY = replace(
    studies.studies(FigureOptions(Pool(Path()), "quick"))[0],
    data={"name": "digits", "sample": 120},
    attacked=8,
    granted=10,
    labels=10,
    effort={"wmi": {"steps": 2, "starts": 1}, "pmc": {"steps": 2}},
)
FEW = replace(STUDY, training={**STUDY.training, "epochs": 1})
READING, OTHERS = ("inverse_network:linear", "similarity"), ("cafe", "wmi", "pmc")


def against(*names: str) -> list[Against]:
    return [a for a in ATTACKS if a.name in names]


def attacks(cell: Cell) -> list[str]:
    return [a["name"] for a in cell.arguments[1]["attacks"]]


def bits(rows: Rows) -> list[str]:
    """Without ``findings``, which count the attacks beside it."""
    figures = [{k: v for k, v in r.items() if k != "findings" and v is not None} for r in rows]
    return sorted(json.dumps(f, sort_keys=True) for f in figures)


def test_parts_of_a_federation() -> None:
    """Those that read training share a part, the first; no attack changes training, or rows of others."""
    (plain,) = cells(FEW, [NONE], 0, against(*READING, *OTHERS))
    parts = _apart(plain)
    assert [attacks(p) for p in parts] == [[*READING], *([name] for name in OTHERS)]
    assert {p.group for p in parts} == {p.arguments[2] for p in parts}
    assert len({p.group for p in parts}) == 1
    (other,) = cells(FEW, [NONE], 1, against("cafe"))
    assert _apart(other)[0].group != parts[0].group
    kinds = {installed_attack(a.name) for a in (*ATTACKS, *SCORING)}
    assert not any(kind is None or breaks_protocol(kind) for kind in kinds)
    (rounds,) = cells(clients.study(FigureOptions(Pool(Path()), "quick")), [clients.DEFENDED[0]], 0, ())
    assert _apart(rounds) == [rounds]


def test_each_part_is_kept_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next call goes on behind the last one, and training is done once in each."""
    authors = next(m for m in DEFENSES if m.title == AUTHORS).at_strengths(2)
    (federation,) = cells(FEW, [authors], 0, against(*READING, *OTHERS))
    together = run_cell(*federation.arguments, scratch=str(tmp_path / "whole"))
    train, trained = Coordinator.train, []

    def counted(self: Coordinator, *more: object) -> None:
        trained.append(self)
        train(self, *more)  # type: ignore[arg-type]  # as it came

    def stopped(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Coordinator, "train", counted)
    pool = Pool(tmp_path / "cells")
    with pytest.raises(KeyboardInterrupt):
        run(FigureOptions(replace(pool, progress=stopped), "quick"), [federation])
    assert (len([*pool.folder.glob("*.parquet")]), len(trained)) == (3, 1)
    rows, notes = run(FigureOptions(pool, "quick"), [federation])
    assert [note.partition(" the ")[0] for note in notes] == ["Over"]
    assert len([*pool.folder.glob("*.parquet")]) == 4
    assert {*bits(rows)} == {
        *bits([cap.scored(r) for r in together if r["scored_set"] == "predict"])
    }  # each part has the baselines too
