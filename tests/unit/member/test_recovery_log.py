"""Checkpoint and log together are a party's memory, whenever it dies."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from laboratory import payload, same

from vflens import failpoints
from vflens.errors import StateError, StorageError
from vflens.failpoints import ACTIONS, at
from vflens.member.recovery import NO_CHECKPOINT, RecoveryLog, checkpoint_digests
from vflens.storage.files import load_arrays
from vflens.storage.transcript import Transcript
from vflens.types import Exchange, Phase, Point, Released

EVERY = 3


def _message(step: int) -> Released:
    tensors = {"gradient": np.full((2, 2), float(step))}
    return payload(tensors, point=Point.GRADIENT, rows=np.arange(2, dtype=np.int32), step=step)


def _vouched(folder: Path) -> list[str]:
    """The digest of the checkpoint in ``folder``, as ``state.json`` has it."""
    file = folder / "checkpoint.npz"
    return [next(checkpoint_digests(load_arrays(file))) if file.exists() else NO_CHECKPOINT]


def _learn(log: RecoveryLog, steps: range) -> None:
    for step in steps:
        assert log.is_due(_message(step).exchange)
        log.mark_learned(step)
        log.append(_message(step))
        log.checkpoint_if_due(lambda: {"theta": np.full(3, float(step))})  # noqa: B023 - called at once


def _reopened(folder: Path) -> tuple[dict[str, list[float]], list[int], int]:
    """What a restart finds: the saved state, the steps to learn again, the last step learned after that."""
    log = RecoveryLog(folder, EVERY)
    state = {name: array.tolist() for name, array in log.saved(_vouched(folder)).items()}
    missed = [message for (message,) in log.missed(lambda step: 1)]
    assert all(same(m, _message(m.exchange.step)) for m in missed)
    log.close()
    return state, [m.exchange.step for m in missed], log.learned


@pytest.mark.parametrize(
    ("learned", "theta", "missed"),
    [
        (0, None, []),
        (1, None, [0]),
        (2, None, [0, 1]),
        (3, 2.0, []),
        (4, 2.0, [3]),
        (8, 5.0, [6, 7]),
        (9, 8.0, []),
    ],
)
def test_a_restart_finds_every_step(
    tmp_path: Path, learned: int, theta: float | None, missed: list[int]
) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(learned))
    log.close()
    state = {} if theta is None else {"theta": [theta] * 3}
    assert _reopened(tmp_path) == (state, missed, learned - 1)


def test_a_checkpoint_empties_the_log(tmp_path: Path) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(2))
    assert (tmp_path / "index.jsonl").stat().st_size > 0
    _learn(log, range(2, 3))
    assert (tmp_path / "index.jsonl").stat().st_size == 0
    grown = (tmp_path / "payload.bin").stat().st_size
    _learn(log, range(3, 10 * EVERY))
    assert (tmp_path / "payload.bin").stat().st_size == grown  # written over
    log.close()


def test_a_log_written_over_is_read_to_its_new_end(tmp_path: Path) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(EVERY + 1))
    log.close()
    assert _reopened(tmp_path)[1] == [EVERY]
    assert (tmp_path / "payload.bin").stat().st_size == _message(
        EVERY
    ).nbytes  # the old log's rest is cut off


def test_a_checkpoint_is_vouched_for_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill before, between, or after the two leaves one that is vouched for."""
    vouched: list[Collection[str]] = []
    log = RecoveryLog(tmp_path, 1, vouch=vouched.append)
    _learn(log, range(1))
    monkeypatch.setattr(failpoints, "armed", [at("checkpoint.npz.begun", 1, ACTIONS["full"])])
    with pytest.raises(StorageError):
        _learn(log, range(1, 2))
    log.close()
    (_, first), _, (_, second) = vouched
    assert vouched == [(NO_CHECKPOINT, first), (first,), (first, second)]
    again = RecoveryLog(tmp_path, 1)
    assert again.saved(vouched[2])["theta"].tolist() == [0.0] * 3
    with pytest.raises(StorageError, match=r"checkpoint.npz is not the one that state.json \(checkpoints\)"):
        again.saved([second])
    again.close()


def test_death_between_a_checkpoint_and_the_cut_of_the_log_repeats_no_step(tmp_path: Path) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(2))
    for name in ("index.jsonl", "payload.bin"):
        shutil.copy(tmp_path / name, tmp_path / f"old-{name}")
    _learn(log, range(2, 3))
    log.close()
    for name in ("index.jsonl", "payload.bin"):
        (tmp_path / f"old-{name}").replace(tmp_path / name)
    assert _reopened(tmp_path) == ({"theta": [2.0] * 3}, [], 2)


def test_messages_outlive_the_log_they_were_read_from(tmp_path: Path) -> None:
    """A view of a file that was cut would end the process."""
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(2))
    log.close()
    again = RecoveryLog(tmp_path, EVERY)
    kept = [message for (message,) in again.missed(lambda step: 1)]
    again.checkpoint({})
    assert [m.tensor("gradient").sum() for m in kept] == [0.0, 4.0]
    assert [m.rows.tolist() for m in kept] == [[0, 1], [0, 1]]
    again.close()


def test_a_step_is_learned_again_once_all_its_messages_are_there(tmp_path: Path) -> None:
    """Two senders; death between the two messages of step 1, which then comes again as a whole."""
    log = RecoveryLog(tmp_path, EVERY)
    first, last = [[replace(_message(step), sender=name) for name in "ab"] for step in (0, 1)]
    for message in (*first, last[0]):
        log.append(message)
    assert [[m.sender for m in step] for step in log.missed(lambda step: 2)] == [["a", "b"]]
    assert log.learned == 0
    for message in last:
        log.append(message)
    assert [[(m.sender, m.exchange.step) for m in step] for step in log.missed(lambda step: 2)] == [
        [("a", 1), ("b", 1)]
    ]
    assert log.learned == 1
    log.close()


@pytest.mark.parametrize("every", [1, 2])
def test_beside_a_transcript_only_what_that_leaves_out_is_logged_twice(tmp_path: Path, every: int) -> None:
    """Both find the steps after the checkpoint, and no message of another kind or phase."""
    transcript = Transcript(tmp_path / "transcript", every)
    log = RecoveryLog.beside(transcript, Point.GRADIENT, tmp_path / "recovery", EVERY, lambda _: None)
    transcript.record(replace(_message(0), point=Point.EMBEDDING))
    _learn(log, range(EVERY + 2))
    transcript.record(replace(_message(7), exchange=Exchange("run", Phase.DISCLOSE, 1, 7)))
    log.close()
    transcript.close()
    transcript = Transcript(tmp_path / "transcript", every)
    again = RecoveryLog.beside(transcript, Point.GRADIENT, tmp_path / "recovery", EVERY, lambda _: None)
    assert again.saved(_vouched(tmp_path / "recovery"))["theta"].tolist() == [EVERY - 1] * 3
    missed = [message for (message,) in again.missed(lambda step: 1)]
    assert [m.exchange.step for m in missed] == [EVERY, EVERY + 1]
    assert all(same(m, _message(m.exchange.step)) for m in missed)
    assert (tmp_path / "recovery" / "index.jsonl").exists() == (every > 1)
    again.close()
    transcript.close()


def test_an_answer_may_run_ahead_of_what_was_learned(tmp_path: Path) -> None:
    """By one step, where training is one step stale."""
    log = RecoveryLog(tmp_path, EVERY)
    exchanges = [Exchange("run", Phase.TRAIN, 0, step) for step in range(4)]
    assert [log.is_due(e, ahead=1) for e in exchanges[:2]] == [True, True]
    with pytest.raises(StateError, match=r"^step 2 came before step 1: send the missing steps first$"):
        log.is_due(exchanges[2], ahead=1)
    _learn(log, range(1))
    assert [log.is_due(e, ahead=1) for e in exchanges[:3]] == [False, False, True]
    log.close()


def test_steps_come_one_after_another(tmp_path: Path) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(2))
    due = [log.is_due(Exchange("run", Phase.TRAIN, 0, s)) for s in (0, 1, 2)]
    assert due == [False, False, True]
    with pytest.raises(StateError, match=r"^step 3 came before step 2: send the missing steps first$"):
        log.is_due(Exchange("run", Phase.TRAIN, 0, 3))
    log.close()


def test_a_damaged_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    log = RecoveryLog(tmp_path, EVERY)
    _learn(log, range(3))
    (tmp_path / "checkpoint.npz").write_bytes(b"PK")
    with pytest.raises(StorageError, match=r"checkpoint.npz holds no readable arrays"):
        log.saved([])
    log.close()
