"""An act that is repeated is applied once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from time import sleep
from typing import Any

import numpy as np
import pytest
from accidents import Recorder
from laboratory import close, federation, fingerprint, finish, same
from oneprocess import LocalFederation
from scipy.special import log_softmax

from vflens.errors import ProtocolError, StateError
from vflens.protocol.acts import Act, Begin, Deliver, Disclose, Finished, Forward, Predict, Prepare, Step
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.embeddings import predicted_embeddings
from vflens.types import Exchange, Phase, Point, Released


def _recorded(local: LocalFederation) -> dict[str, Recorder]:
    """Recorders in place of all links of the coordinator, and of the active party's link to it."""
    downward, upward = local.coordinator.links, local.active.links
    recorders = {name: Recorder(link) for name, link in downward.items()}
    downward.update(recorders)
    upward["coordinator"] = recorders["coordinator"] = Recorder(upward["coordinator"])
    return recorders


def _again(link: Recorder, act: Act[Any]) -> Any:
    return link.call(act)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Released):
        return same(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if hasattr(a, "released"):
        both_none = a.released is None and b.released is None
        return a.stop == b.stop and (both_none or same(a.released, b.released))
    return bool(a == b)


def test_the_last_training_step_repeated_is_answered_and_not_learned_again(local: LocalFederation) -> None:
    recorders = _recorded(local)
    local.coordinator.train()
    before = fingerprint(local)
    for name in ("passive", "active"):
        steps = [
            (act, reply) for act, reply in recorders[name].seen if isinstance(act, Step) and len(act.rows)
        ]
        act, reply = steps[-1]
        assert act.received is not None
        assert _equal(recorders[name].call(act), reply)
        with pytest.raises(StateError, match=rf"^step {act.exchange.step - 1} of run 'tiny/run' is over, "):
            recorders[name].call(steps[-2][0])
    assert fingerprint(local) == before


def test_a_learned_step_whose_answer_was_lost_is_refused_not_learned_again(local: LocalFederation) -> None:
    recorders = _recorded(local)
    local.coordinator.train()
    act = recorders["active"].seen[-1][0]
    assert isinstance(act, Step)
    local.active.gate._last.clear()
    before = fingerprint(local)
    sentence = (
        rf"^step {act.exchange.step} was learned from before and its answer is no longer kept: "
        r"ask for the next$"
    )
    with pytest.raises(StateError, match=sentence):
        recorders["active"].call(act)
    assert fingerprint(local) == before


def test_the_last_gradient_is_learned_once(local: LocalFederation) -> None:
    recorders = _recorded(local)
    local.coordinator.train()
    act = recorders["passive"].seen[-1][0]
    assert isinstance(act, Step)
    assert len(act.rows) == 0
    before = fingerprint(local)
    assert recorders["passive"].call(act).released is None
    assert fingerprint(local) == before


def test_everything_after_training_can_be_repeated(local: LocalFederation) -> None:
    recorders = _recorded(local)
    local.coordinator.train()
    finish(local)
    before = fingerprint(local)
    local.coordinator.prepare()  # again, with a model trained since
    repeated = (Prepare, Forward, Disclose, Deliver, Begin, Predict, Finished)
    done = [
        (type(act), _equal(_again(link, act), reply))
        for link in recorders.values()
        for act, reply in list(link.seen)
        if isinstance(act, repeated)
    ]
    assert {kind for kind, _ in done} == set(repeated)
    assert all(equal for _, equal in done)
    assert fingerprint(local) == before


def test_a_row_has_its_own_scores_wherever_it_stands_in_a_request(tmp_path: Path) -> None:
    plain = federation(tmp_path / "plain")
    plain.coordinator.prepare()
    plain.coordinator.train()
    plain.coordinator.open_predictions()
    rows = plain.active.run.federation.predict
    for asked in ([4, 1], [1, 7, 4, 0], [9, 0, 8, 7, 2]):
        released = plain.active.predictions.ask(rows[asked])
        blocks = [(p.run.truth[rows[asked]], p.run.model.parameters()) for p in plain.data_parties.values()]
        z = sum(x @ m["weight"].T + m.get("bias", 0) for x, m in blocks)
        np.testing.assert_allclose(released, log_softmax(z, axis=1), rtol=1e-12, atol=1e-14)


def test_prediction_rows_asked_again_are_answered_but_not_released_again(local: LocalFederation) -> None:
    local.coordinator.train()
    local.coordinator.open_predictions()
    rows = local.active.run.federation.predict
    first = local.active.predictions.ask(rows[:6])
    again = local.active.predictions.ask(rows[[7, 5, 0, 3]])
    before = fingerprint(local)
    for _ in range(3):  # a record of every repetition would fill the disk
        np.testing.assert_array_equal(local.active.predictions.ask(rows[:6]), first)
    assert fingerprint(local) == before
    received = [r.rows.tolist() for r in local.coordinator.transcript if r.exchange.phase is Phase.PREDICT]
    assert received == [rows[:6].tolist()] * 2 + [rows[[7]].tolist()] * 2
    np.testing.assert_array_equal(again[1:], first[[5, 0, 3]])
    assert local.coordinator.gate.released_rows(Point.SCORES, 1).tolist() == rows[[*range(6), 7]].tolist()
    passive = local.passive["passive"]
    assert passive.gate.released_rows(Point.EMBEDDING, 1).tolist() == rows[[*range(6), 7]].tolist()


def test_requests_that_overlap_release_each_row_once(
    local: LocalFederation, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, active = local.coordinator, local.active
    coordinator.train()
    coordinator.open_predictions()
    rows, both_asked, ask = active.run.federation.predict, Barrier(2), predicted_embeddings

    def side_by_side(*args: Any) -> list[Released]:
        found = ask(*args)
        both_asked.wait(60)  # each has the embeddings of rows 3 to 5 before the other has released them
        return found

    monkeypatch.setattr("vflens.coordinator.vertical.answers.predicted_embeddings", side_by_side)
    with ThreadPoolExecutor(2) as callers:
        first, second = callers.map(active.predictions.ask, (rows[:6], rows[3:9]))
    np.testing.assert_array_equal(first[3:], second[:3])
    assert sorted(coordinator.gate.released_rows(Point.SCORES, 1)) == sorted(rows[:9])
    for sender in {p.name for p in active.run.federation.parties}:
        recorded = [
            row
            for r in coordinator.transcript
            if r.exchange.phase is Phase.PREDICT and r.sender == sender
            for row in r.rows.tolist()
        ]
        assert sorted(recorded) == sorted(rows[:9].tolist())


class _Meeting(set[str]):
    """Lets the last two that are discarded meet, where they can."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(names)
        self._both = Barrier(2)

    def discard(self, name: object) -> None:
        super().discard(str(name))
        with suppress(BrokenBarrierError):
            self._both.wait(0.3)


def test_figures_are_recorded_once_where_the_last_two_parties_finish_at_a_time(
    local: LocalFederation,
) -> None:
    local.coordinator.train()
    finish_without_attacks(local)
    coordinator, recorded = local.coordinator, list[int]()
    coordinator._unfinished = _Meeting({"passive", "active"})

    def record(federation: VerticalAgreement) -> None:
        recorded.append(1)
        sleep(0.1)  # meanwhile the other would find that none is left, and nothing finished

    coordinator.predictions.record_metrics = record  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as callers:
        list(callers.map(coordinator.finish, (Finished("tiny/run", p) for p in ("passive", "active"))))
    assert recorded == [1]
    assert coordinator.finished.is_set()


def finish_without_attacks(local: LocalFederation) -> None:
    local.coordinator.disclose()
    local.coordinator.open_predictions()


def test_a_begin_of_another_run_has_no_effect(local: LocalFederation) -> None:
    local.coordinator.train()
    for act in (Begin("another", 1), Begin("tiny/run", 2)):
        with pytest.raises(ProtocolError):
            local.coordinator.links["active"].call(act)
    assert not (local.active.folder / "own.npz").exists()
    local.coordinator.links["active"].call(Begin("tiny/run", 1))
    assert (local.active.folder / "own.npz").exists()


def test_work_put_off_twice_is_done_in_order(local: LocalFederation) -> None:
    done: list[str] = []
    local.active.defer(lambda: done.append("first"))
    local.active.defer(lambda: done.append("second"))
    local.active.settle()
    assert done == ["first", "second"]


def test_received_scores_are_read_under_the_lock(local: LocalFederation) -> None:
    local.coordinator.train()
    local.coordinator.open_predictions()
    active, held = local.active, list[bool]()
    rows = active.run.federation.predict[:2]
    active.predictions.ask(rows)
    fold = active.chain.fold

    def noting(*args: Any) -> Any:
        held.append(active.lock._is_owned())  # type: ignore[attr-defined]
        return fold(*args)

    active.chain.fold = noting  # type: ignore[method-assign,assignment]
    active.predictions.received(rows)
    assert held == [True]


@pytest.mark.parametrize("network", [False, True], ids=["logistic", "network"])
def test_a_row_asked_with_ever_more_others_is_recorded_once(tmp_path: Path, network: bool) -> None:
    """Otherwise transcripts grow with the square of the rows."""
    model = {"model": {"architecture": "mlp", "width": 3, "hidden": [], "top": [4]}} if network else {}
    local = federation(tmp_path, **model, attacks=[], disclose=[])
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    rows = local.coordinator.aligned.predict
    for last in range(1, len(rows) + 1):
        local.active.predictions.ask(rows[:last])
    together = local.active.predictions.received(rows)
    for member in local.members():
        received_rows: dict[tuple[str, Point], list[int]] = {}
        for r in member.transcript:
            if r.exchange.phase is Phase.PREDICT:
                received_rows.setdefault((r.sender, r.point), []).extend(r.rows.tolist())
        assert all(received == rows.tolist() for received in received_rows.values())
        assert bool(received_rows) == (member not in local.passive.values())
    local.active.predictions.ask(rows)
    np.testing.assert_array_equal(local.active.predictions.received(rows), together)
    close(local)


def test_a_prediction_that_is_refused_leaves_no_trace(local: LocalFederation) -> None:
    local.coordinator.train()
    local.coordinator.open_predictions()
    rows = local.active.run.federation.predict
    before = fingerprint(local)
    own = Released(
        "active",
        Exchange("tiny/run", Phase.PREDICT, 1, 5),
        Point.EMBEDDING,
        rows[:2],
        tensors={"embedding": np.zeros((2, 3))},
    )
    for changes, sentence in (
        ({"rows": rows[[0, 0]]}, "named twice"),
        (
            {"tensors": {**(own.tensors or {}), "more": np.zeros(9)}},
            r"carries the tensors \['embedding', 'more'\]",
        ),
    ):
        with pytest.raises(ProtocolError, match=sentence):
            local.coordinator.predict(Predict(replace(own, **changes)))
    assert fingerprint(local) == before
