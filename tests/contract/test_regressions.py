"""What went wrong once and must not come back."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest
from laboratory import close, federation, finish

from vflens.config import Recording
from vflens.coordinator.vertical.score_release import _divergence
from vflens.errors import ConfigError, StateError
from vflens.member.released_rows import RowLog
from vflens.protocol.acts import Step
from vflens.types import Exchange, Phase, Role


def test_training_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    local = federation(tmp_path)

    async def notebook() -> None:
        local.coordinator.prepare()
        local.coordinator.train()

    asyncio.run(notebook())
    assert local.active.recovery.learned == 3 * 4 - 1  # three epochs of four batches
    close(local)


def test_a_passive_party_does_not_release_an_old_step_anew_after_a_restart(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    local.coordinator.train()
    (passive,) = local.passive.values()
    passive.gate._last.clear()  # what a restart forgets
    rows = local.coordinator.aligned.train[:20]
    step = Step(Exchange("tiny/run", Phase.TRAIN, 1, 5), rows, None)
    with pytest.raises(StateError, match=r"^step 5 is over and its answer no longer kept: ask for step 12$"):
        passive.perform(step, "coordinator", Role.COORDINATOR)
    close(local)


def test_lab_mode_is_the_same_at_every_party(tmp_path: Path) -> None:
    local = federation(tmp_path)
    (passive,) = local.passive.values()
    passive.config = passive.config.model_copy(update={"lab": False})
    sentence = "lab = false at 'passive' and true at the coordinator: set it alike at every party"
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        local.coordinator.prepare()
    close(local)


def test_a_sampling_without_the_last_epoch_is_refused_at_every_party(tmp_path: Path) -> None:
    """In a party's own file nothing else knows the number of epochs."""
    local = federation(tmp_path, training={"epochs": 4, "batch_size": 40})
    (passive,) = local.passive.values()
    passive.config = passive.config.model_copy(update={"transcript": Recording(every=3)})
    sentence = "transcript.every = 3 at 'passive' leaves out the last of 4 epochs: choose a divisor"
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
        local.coordinator.prepare()
    close(local)


def test_more_auxiliary_rows_than_there_are_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, disclose=[{"what": "auxiliary", "to": "active", "rows": 1000}])
    with pytest.raises(
        ConfigError, match=r"rows = 1000 at 'passive': there are 72 training rows, grant fewer$"
    ):
        local.coordinator.prepare()
    close(local)


def test_the_target_logs_the_figures(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    local.coordinator.train()
    finish(local)
    (passive,) = local.passive.values()
    lines = map(json.loads, (passive.folder / "events.jsonl").read_text().splitlines())
    (scored,) = [line for line in lines if line["event"] == "scored"]
    truth = passive.run.truth[local.active.gate.released_rows(next(iter(local.active.gate._rows))[0], 1)]
    assert scored["errors"]["half"] == pytest.approx(((truth - 0.5) ** 2).mean())
    close(local)


def test_a_row_log_gives_no_values_of_rows_it_lacks() -> None:
    log = RowLog()
    log.add(np.array([4], np.int32), np.ones((1, 2)), Exchange("r", Phase.PREDICT, 1, 0))
    with pytest.raises(StateError, match="not released yet"):
        log.values(np.array([4, 2], np.int32))


def test_divergence_is_infinite_even_where_a_probability_underflows() -> None:
    exact = np.array([[0.0, -800.0]])  # e^-800 is 0 in float64
    assert _divergence(exact, np.array([[0.0, -np.inf]])) == np.inf
