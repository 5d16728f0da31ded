"""Run folders with digests of before, which were BLAKE2b-256: they are verified and taken up."""

from __future__ import annotations

from pathlib import Path

import horizontal
import pytest
from accidents import rebuild_all, train_until
from laboratory import NOISY, close, federation, finish
from logaudits import flip, problems_in

from vflens import array
from vflens.storage.release_digests import RECORD_BYTES


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """All digests are those of before, until it is undone."""
    monkeypatch.setattr(array, "payload_digest", array.earlier_digest)
    return monkeypatch


def test_a_vertical_run_of_before_is_verified(tmp_path: Path, before: pytest.MonkeyPatch) -> None:
    federation(tmp_path).run()
    before.undo()
    assert problems_in(tmp_path) == []
    flip(tmp_path / "active" / "transcript" / "payload.bin", 100)
    assert any("this record is not the one that was linked" in problem for problem in problems_in(tmp_path))
    assert any("has other bytes than 'coordinator' released" in problem for problem in problems_in(tmp_path))


def test_a_horizontal_run_of_before_is_verified(tmp_path: Path, before: pytest.MonkeyPatch) -> None:
    tables = {"c1": horizontal.table(20, 1), "c2": horizontal.table(20, 2)}
    local = horizontal.federation(horizontal.deal(tmp_path, tables, horizontal={"rounds": 3}))
    local.run()
    close(local)
    before.undo()
    assert problems_in(tmp_path) == []


def test_a_run_of_before_goes_on_and_repeats_no_release(tmp_path: Path, before: pytest.MonkeyPatch) -> None:
    """Checkpoints, links and digests of both kinds stand in its folders then."""
    local = federation(tmp_path, defenses=NOISY, limits={"checkpoint_steps": 3})
    local.coordinator.prepare()
    train_until(local, 5)
    file = tmp_path / "active" / "released" / "digests.bin"
    written = file.read_bytes()
    before.undo()
    rebuild_all(local)
    local.coordinator.train()
    finish(local)
    close(local)
    found = file.read_bytes()
    made = [found[place : place + RECORD_BYTES - 32] for place in range(0, len(found), RECORD_BYTES)]
    assert found.startswith(written)
    assert len(set(made)) == len(made) > len(written) // RECORD_BYTES
    assert problems_in(tmp_path) == []
