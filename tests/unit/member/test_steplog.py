"""What training steps took is on disk before it is released, for one epoch and the step before it."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from vflens.errors import ProtocolError, StateError, StorageError
from vflens.member.step_log import StepLog
from vflens.types import Array, Exchange, Phase

STEPS = 3  # of an epoch


def _at(step: int) -> Exchange:
    return Exchange("run", Phase.TRAIN, step // STEPS, step)


def _rows(*rows: int) -> Array:
    return np.array(rows, np.int32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recovery" / "steps.bin"


def _again(log: StepLog, file: Path) -> StepLog:
    log.close()
    return StepLog(file)


@pytest.mark.parametrize("restart", [False, True])
def test_a_step_keeps_its_rows_and_a_row_its_epoch(file: Path, restart: bool) -> None:
    log = StepLog(file)
    log.take(_at(0), _rows(5, 2))
    log.take(_at(1), _rows(9))
    if restart:
        log = _again(log, file)
    log.take(_at(1), _rows(9))  # a repetition
    for others in (_rows(2, 5), _rows(5), _rows(5, 2, 7)):
        with pytest.raises(
            StateError, match=r"^step 0 was asked for before with other rows: ask for the same rows"
        ):
            log.take(_at(0), others)
    for twice in (_rows(7, 7), _rows(7, 2), _rows(9)):
        with pytest.raises(
            ProtocolError, match=r"^step 2 asks for a row twice, or for one that this epoch asked for"
        ):
            log.take(_at(2), twice)
    log.take(_at(2), _rows(7))
    log.take(_at(3), _rows(2, 7))
    assert log.epoch == 1
    log.close()


def test_a_refused_step_of_a_new_epoch_leaves_the_epoch_before(file: Path) -> None:
    log = StepLog(file)
    log.take(_at(2), _rows(5, 2))
    with pytest.raises(ProtocolError, match=r"^step 3 asks for a row twice"):
        log.take(_at(3), _rows(4, 4))
    for same in (log, _again(log, file)):
        with pytest.raises(ProtocolError, match=r"^step 1 asks for a row twice"):
            same.take(_at(1), _rows(5))
        same.close()


@pytest.mark.parametrize("restart", [False, True])
def test_the_last_step_of_the_epoch_before_is_known(file: Path, restart: bool) -> None:
    log = StepLog(file)
    for step in range(4):
        log.take(_at(step), _rows(step % STEPS))
    if restart:
        log = _again(log, file)
    assert [log.rows(s) for s in range(4)] == [None, None, _rows(2).tobytes(), _rows(0).tobytes()]
    log.take(_at(4), _rows(2))  # the kept step is no release of this epoch
    log.close()
    assert file.stat().st_size == 3 * (24 + 4) + 8  # however many epochs there were


@pytest.mark.parametrize("cut", [9, 12, 35])
def test_a_torn_step_was_not_released(file: Path, cut: int) -> None:
    log = StepLog(file)
    log.take(_at(0), _rows(5))
    log.take(_at(1), _rows(6))
    log.close()
    file.write_bytes(file.read_bytes()[:-cut])
    log = StepLog(file)
    log.take(_at(1), _rows(7))
    log = _again(log, file)
    assert [log.rows(s) for s in (0, 1)] == [_rows(5).tobytes(), _rows(7).tobytes()]
    log.close()


@pytest.mark.parametrize("rows", [(), (-1,), (3, 3)])
def test_what_no_party_wrote_is_refused(file: Path, rows: tuple[int, ...]) -> None:
    StepLog(file).close()
    file.write_bytes(np.array([0, 0, len(rows)], "<i8").tobytes() + _rows(*rows).tobytes())
    with pytest.raises(
        StorageError, match=r"holds no training steps that can be read \(.*: use a folder that nobody"
    ):
        StepLog(file)


def test_a_step_that_the_disk_refuses_is_not_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = StepLog(file)
    log.take(_at(0), _rows(5))
    with monkeypatch.context() as disk:
        disk.setattr("os.pwrite", full)
        with pytest.raises(StorageError, match=r"cannot be written \(No space left on device\): free space"):
            log.take(_at(1), _rows(6))
    for again in (log.check, lambda: log.take(_at(1), _rows(7))):  # its end may be torn
        with pytest.raises(StorageError, match="cannot be written"):
            again()
    assert log.rows(1) is None
    log.close()
