"""Scoring in a federation: which rows count, and who learns what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from laboratory import federation, figures, finish

from vflens.clients.vertical.passive import PassiveParty
from vflens.errors import ProtocolError, StateError, StorageError
from vflens.experiments.offline.score import score_estimate
from vflens.protocol.acts import Guess, Receipt, Submission
from vflens.types import Array, Phase, numbered, statuses

RELEASED = np.arange(60, dtype=np.int32)


def _submit(party: PassiveParty, scored_set: str, rows: Array) -> Receipt:
    guess = Guess("x", np.full((len(rows), len(party.table.columns)), 0.5), numbered(statuses(len(rows))))
    return party.score(Submission("tiny/run", "active", scored_set, rows, guesses=(guess,)))


def test_disclosed_auxiliary_rows_are_not_scored(tmp_path: Path) -> None:
    grants = [
        {"what": "auxiliary", "to": "active", "rows": 12},
        {"what": "auxiliary", "to": "coordinator", "rows": 5},
    ]
    local = federation(tmp_path, disclose=grants)
    local.coordinator.prepare()
    local.coordinator.train()
    finish(local)
    target, train = local.passive["passive"], local.coordinator.aligned.train
    to_active, to_coordinator = (
        {int(row) for r in member.transcript if r.exchange.phase is Phase.DISCLOSE for row in r.rows}
        for member in (local.active, local.coordinator)
    )
    assert (len(to_active), len(to_coordinator)) == (12, 5), "each receives what it was granted"
    given = to_active | to_coordinator
    assert given == to_active
    scored = np.array(sorted(set(train.tolist()) - given), np.int32)
    assert _submit(target, "train", scored).rows == len(train) - 12
    with pytest.raises(ProtocolError, match=r"^submission of 72 train rows: it must name the first rows"):
        _submit(target, "train", train)


def test_only_rows_released_so_far_are_scored(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.open_predictions()
    target, rows = local.passive["passive"], local.coordinator.aligned.predict
    with pytest.raises(ProtocolError, match="must name the first rows that were released"):
        _submit(target, "predict", rows[:1])
    local.active.predictions.ask(rows[[4, 2, 9]])
    assert _submit(target, "predict", rows[[4, 2]]).rows == 2
    with pytest.raises(ProtocolError, match="must name the first rows that were released"):
        _submit(target, "predict", rows[[2, 4]])


def _events(home: Path, event: str) -> list[str]:
    lines = (home / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if f'"event": "{event}"' in line]


def test_attacks_go_on_where_scoring_is_disabled(tmp_path: Path) -> None:
    local = federation(tmp_path, scoring={"enabled": False})
    with pytest.raises(
        StateError, match=r"^scoring is switched off at the target \(scoring.enabled = false\)"
    ):
        _submit(local.passive["passive"], "predict", RELEASED)
    local.run()
    assert (tmp_path / "active" / "estimates" / "passive.half_star.npz").exists()
    assert len(_events(tmp_path / "active", "not scored")) == 1
    assert not _events(tmp_path / "active", "receipt")
    assert not (tmp_path / "passive" / "pictures.npz").exists()
    metrics = {m for m, *_ in figures(tmp_path / "passive")}
    assert not metrics & {"mse", "blind_mse", "column_mse"}


def test_outside_the_lab_the_adversary_has_receipts_and_nofigures(tmp_path: Path) -> None:
    data = {"name": "synthetic", "rows": 130, "features": 7, "classes": 3, "informative": 4}
    local = federation(tmp_path, lab=False, data=data, predict_share=0.5)
    local.run()
    assert not any(m == "mse" for m, *_ in figures(tmp_path / "active"))
    assert ("mse", "half_star", "") in figures(tmp_path / "passive")
    receipts = _events(tmp_path / "active", "receipt")
    assert len(receipts) == 2  # 50 rows, and all 65
    assert not any("mse" in line for line in receipts)


@pytest.mark.parametrize("log", ["transcript", "released"])
def test_a_score_leaves_a_cut_log_as_it_is(tmp_path: Path, log: str) -> None:
    """To open a log cuts what no line names: of a finished run it can still be brought back."""
    federation(tmp_path, lab=True).run()
    folder = tmp_path / "passive"
    (lines := folder / log / "index.jsonl").write_bytes(b"")
    before = {file: file.read_bytes() for file in (folder / log).iterdir()}
    estimate, *_ = (tmp_path / "active" / "estimates").glob("passive.*.npz")
    with pytest.raises(StorageError, match=rf"/{log} has 0 records, and had [1-9]\d*"):
        score_estimate(estimate, folder / "config.toml")
    assert lines in before
    assert {file: file.read_bytes() for file in (folder / log).iterdir()} == before
