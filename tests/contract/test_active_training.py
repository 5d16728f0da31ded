"""Where the active party aggregates it leads training: each row once, an end, and no second one meanwhile."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from accidents import Around
from aggregating import SETTINGS, local
from laboratory import federation
from oneprocess import LocalFederation

from vflens.errors import ProtocolError, StateError, UnavailableError
from vflens.protocol.acts import Act, Epoch, Order, Train
from vflens.protocol.link import Link
from vflens.protocol.vertical.embeddings import predicted_embeddings
from vflens.types import Array, Phase, Point, Released

_FIXTURES = (local,)  # used by name


class Liar(Around):
    """Gives its own answer to one kind of act."""

    def __init__(self, inner: Link, kind: type[Act[Any]], answer: Any) -> None:
        super().__init__(inner)
        self.kind, self.answer = kind, answer

    def call(self, act: Act[Any]) -> Any:
        return self.answer if isinstance(act, self.kind) else super().call(act)


def test_an_epoch_holds_every_training_row_once(local: LocalFederation) -> None:
    train, upward = local.coordinator.aligned.train, local.active.links["coordinator"]
    wrong: list[tuple[Array, str]] = [
        (train[:-1], "the order of epoch 0 holds 71 rows: every training row, once, is due"),
        (
            np.append(train[:-1], train[0]),
            "the order of epoch 0 holds 72 rows: every training row, once, is due",
        ),
        (local.coordinator.aligned.predict, "is no train row of run 'tiny/run'"),
    ]
    for rows, sentence in wrong:
        local.active.links["coordinator"] = Liar(upward, Epoch, Order(rows))
        with pytest.raises(ProtocolError, match=sentence):
            local.coordinator.train()
    assert all(p.recovery.learned == -1 for p in local.data_parties.values())
    for number in (-1, 4):
        with pytest.raises(ProtocolError, match=f"^epoch {number} of a training of 3: ask for those from 0$"):
            upward.call(Epoch("tiny/run", number))


def test_a_run_that_is_over_takes_no_further_step(local: LocalFederation) -> None:
    local.active.interrupt()
    with pytest.raises(UnavailableError, match=r"^run 'tiny/run' is over: no further step is taken$"):
        local.coordinator.train()


def test_early_stopping_ends_it_in_both_places_and_stale(tmp_path: Path) -> None:
    """At the same epoch where it is the same training."""
    training = {"epochs": 40, "batch_size": 20, "learning_rate": 0.05, "patience": 2, "tolerance": 0.05}
    settings = {**SETTINGS, "defenses": [], "training": training}
    steps = []
    for place, staleness in (("coordinator", 0), ("active", 0), ("active", 1)):
        home = tmp_path / f"{place}{staleness}"
        changed = {**settings, "training": {**training, "staleness": staleness}}
        run = federation(home, **changed, aggregator=place)
        run.run()
        steps.append({p.recovery.learned + 1 for p in run.data_parties.values()})
        assert json.loads((home / "active/status.json").read_text())["state"] == "finished"
    assert steps[0] == steps[1]
    for (count,) in map(tuple, steps):
        assert 12 <= count < 160
        assert count % 4 == 0


class _AskedAgain(Around):
    """Sends the active party another Train while its first one asks for the order of an epoch."""

    def __init__(self, inner: Link, again: Link) -> None:
        super().__init__(inner)
        self._again, self.refusals = again, list[str]()

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Epoch):
            with pytest.raises(StateError) as refused:
                self._again.call(Train(act.run))
            self.refusals.append(str(refused.value))
        return super().submit(act)


def test_a_second_training_is_refused_while_the_first_runs(local: LocalFederation) -> None:
    upward = local.active.links["coordinator"]
    local.active.links["coordinator"] = link = _AskedAgain(upward, local.coordinator.links["active"])
    local.coordinator.train()
    sentence = "run 'tiny/run' is being trained: wait for the answer to the first request"
    assert set(link.refusals) == {sentence}
    trained = local.coordinator.links["active"].call(Train("tiny/run"))  # its answer got lost
    assert trained.first == trained.steps == 12
    local.coordinator.open_predictions()
    with pytest.raises(StateError, match=r"^step 12 after the end of training: the coordinator opened"):
        local.coordinator.links["active"].call(Train("tiny/run"))


def test_requests_overlap_where_the_active_party_asks(
    local: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has the embeddings of rows 3 to 5 before the other has released their scores."""
    local.coordinator.train()
    local.coordinator.open_predictions()
    active, both_asked = local.active, Barrier(2)
    rows, ask = active.run.federation.predict, predicted_embeddings

    def side_by_side(*args: Any) -> list[Released]:
        found = ask(*args)
        both_asked.wait(60)
        return found

    monkeypatch.setattr("vflens.clients.vertical.predictions.predicted_embeddings", side_by_side)
    with ThreadPoolExecutor(2) as callers:
        first, second = callers.map(active.predictions.ask, (rows[:6], rows[3:9]))
    np.testing.assert_array_equal(first[3:], second[:3])
    assert sorted(active.gate.released_rows(Point.SCORES, 1)) == sorted(rows[:9])
    for sender in "abc":
        recorded = active.transcript.select(Point.EMBEDDING, phases={Phase.PREDICT}, sender=sender)
        assert sorted(row for r in recorded for row in r.rows.tolist()) == sorted(rows[:9].tolist())


class _Late(Around):
    """The active party has not answered Train yet, however often it is asked."""

    def submit(self, act: Act[Any]) -> Any:
        return self if isinstance(act, Train) else super().submit(act)

    def result(self, timeout: float | None = None) -> Any:
        assert timeout is not None
        raise TimeoutError


def test_the_coordinator_looks_at_the_parties_while_the_active_one_trains(local: LocalFederation) -> None:
    links, looks = local.coordinator.links, iter([None, UnavailableError("active died")])
    links["active"] = _Late(links["active"])

    def check_alive() -> None:
        if error := next(looks):
            raise error

    with pytest.raises(UnavailableError, match=r"^active died$"):
        local.coordinator.train(check_alive)
