"""An act at the wrong moment, of the wrong rows or by the wrong caller is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import NOISY, NOTHING, close, federation, fingerprint, payload

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, StateError, VflensError
from vflens.experiments.run.in_process import LocalFederation
from vflens.models.part import Part
from vflens.protocol.acts import (
    Act,
    Begin,
    Deliver,
    Disclose,
    Finished,
    Forward,
    Predict,
    Prepare,
    Query,
    Step,
)
from vflens.protocol.link import InProcessLink
from vflens.types import Array, Exchange, Phase, Point, Released, Role


def _exchange(party: VerticalParty[AlignedRun[Part]], step: int) -> Exchange:
    return Exchange("tiny/run", Phase.TRAIN, step // party.run.federation.epoch_steps, step)


def _train_step(
    party: VerticalParty[AlignedRun[Part]],
    step: int,
    rows: Array | None = None,
    received: Released | None = None,
) -> Step:
    rows = party.run.federation.train[4 * step :][:4] if rows is None else rows
    return Step(_exchange(party, step), rows, received)


def _gradient(party: VerticalParty[AlignedRun[Part]], step: int, **changes: Any) -> Released:
    """A gradient as the active party would send it for ``step``."""
    rows = party.run.federation.train[4 * step :][:4]
    sealed = Released("active", _exchange(party, step), Point.GRADIENT, rows, {"gradient": np.ones((4, 3))})
    return replace(sealed, **changes)


def test_before_alignment_nothing_is_answered(tmp_path: Path) -> None:
    local = federation(tmp_path)
    acts: list[Act[Any]] = [
        Step(Exchange("tiny/run", Phase.TRAIN, 0, 0), NOTHING, None),
        Forward(Exchange("tiny/run", Phase.PREDICT, 1, 0), NOTHING),
    ]
    for act, link in zip(acts, ("active", "passive"), strict=True):
        with pytest.raises(
            StateError,
            match=f"^party '{link}' has no aligned rows yet: the coordinator prepares the run first$",
        ):
            local.coordinator.links[link].call(act)
    with pytest.raises(StateError, match=r"^run 'tiny/run' is not aligned yet: wait until the coordinator"):
        local.coordinator.train()
    close(local)


def test_a_refused_begin_has_no_effect(tmp_path: Path) -> None:
    """It is refused before any work that was put off is done, and before anything is written."""
    local, done = federation(tmp_path), list[str]()
    for party in local.data_parties.values():
        party._deferred = lambda: done.append("work")
        before = sorted(file.name for file in party.folder.iterdir())
        words = f"^party '{party.name}' has no run yet: 'coordinator' prepares it first$"
        with pytest.raises(StateError, match=words):
            local.coordinator.links[party.name].call(Begin("tiny/run", 1))
        assert (done, party.begun.is_set(), party.reached.is_open) == ([], False, False)
        assert sorted(file.name for file in party.folder.iterdir()) == before
        party._deferred = None
    close(local)


def test_a_skipped_step_is_refused_and_changes_nothing(local: LocalFederation) -> None:
    passive, before = local.passive["passive"], fingerprint(local)
    link = local.coordinator.links["passive"]
    for act in (
        _train_step(passive, 3),
        _train_step(passive, 1),
        _train_step(passive, 2, received=_gradient(passive, 1)),
    ):
        with pytest.raises(StateError, match=r"^step \d came before step 0: send the missing steps first$"):
            link.call(act)
    assert fingerprint(local) == before


def test_training_has_an_end(local: LocalFederation) -> None:
    """A coordinator that went on would fill the logs."""
    local.coordinator.train()
    before = fingerprint(local)
    for party in local.data_parties.values():
        with pytest.raises(StateError, match=r"^step 13 of a training of 12 steps: it is over"):
            party.step(_train_step(party, 13))
    assert fingerprint(local) == before


def test_a_step_of_another_epoch_is_refused(local: LocalFederation) -> None:
    """Whoever numbered epochs freely would choose what a sampled transcript keeps."""
    passive, link, before = local.passive["passive"], local.coordinator.links["passive"], fingerprint(local)
    act = _train_step(passive, 0)
    words = r"^step 0 claims epoch 2: it belongs to epoch 0, number it so$"
    for party in local.data_parties.values():
        with pytest.raises(ProtocolError, match=words):
            party.step(replace(act, exchange=act.exchange._replace(round=2)))
    assert fingerprint(local) == before
    link.call(act)
    before = fingerprint(local)
    wrong = _gradient(passive, 0, exchange=act.exchange._replace(round=2))
    with pytest.raises(ProtocolError, match=words):
        link.call(_train_step(passive, 1, received=wrong))
    assert fingerprint(local) == before


def test_no_step_once_predictions_are_open(local: LocalFederation) -> None:
    """Early stopping leaves steps that nobody took: taken now, they would change a model that already
    answers.
    """
    passive, link = local.passive["passive"], local.coordinator.links["passive"]
    link.call(_train_step(passive, 0))
    for party in local.data_parties.values():
        party.begin(Begin("tiny/run", 1))
    before = fingerprint(local)
    words = r"^step \d after the end of training: the coordinator opened predictions, go on with them$"
    for party, act in (
        (passive, _train_step(passive, 1)),
        (passive, _train_step(passive, 1, received=_gradient(passive, 0))),
        (passive, _train_step(passive, 1, NOTHING, _gradient(passive, 0))),
        (local.active, _train_step(local.active, 0)),
    ):
        with pytest.raises(StateError, match=words):
            party.step(act)
    assert link.call(_train_step(passive, 0)).released is not None  # a repetition changes nothing
    assert fingerprint(local) == before


def test_a_gradient_of_a_later_step_is_refused(local: LocalFederation) -> None:
    passive, link = local.passive["passive"], local.coordinator.links["passive"]
    link.call(_train_step(passive, 0))
    before = fingerprint(local)
    with pytest.raises(StateError, match=r"^step 1 came before step 0: send the missing steps first$"):
        link.call(_train_step(passive, 1, received=_gradient(passive, 1)))
    with pytest.raises(StateError, match=r"^step 1 came before step 0: send the missing steps first$"):
        link.call(_train_step(passive, 1))  # without the gradient of step 0
    assert fingerprint(local) == before
    link.call(_train_step(passive, 1, received=_gradient(passive, 0)))
    assert fingerprint(local) != before


def test_a_gradient_of_other_rows_is_refused(local: LocalFederation) -> None:
    passive, link = local.passive["passive"], local.coordinator.links["passive"]
    link.call(_train_step(passive, 0))
    before = fingerprint(local)
    others = _gradient(passive, 0, rows=passive.run.federation.train[4:8])
    words = "^the gradient of step 0 is not that of the rows whose embeddings 'passive' sent in it$"
    with pytest.raises(ProtocolError, match=words):
        link.call(_train_step(passive, 1, received=others))
    assert fingerprint(local) == before


def test_no_prediction_before_training_is_over(local: LocalFederation) -> None:
    """Half-trained logits of a row would otherwise stay in the logs, and its later scores be wrong."""
    rows = local.active.run.federation.predict[:2]
    sentence = r"^run 'tiny/run' is still training: predictions begin when the coordinator says so$"
    operator = InProcessLink("active", "operator", Role.OPERATOR, local.parties)
    own = payload({"embedding": np.zeros((2, 3))}, rows=rows, sender="active", phase=Phase.PREDICT)
    upward = local.active.links["coordinator"]
    acts: list[tuple[Any, Act[Any]]] = [
        (operator, Query("0-1")),
        (upward, Predict(own)),
        (upward, Finished("tiny/run", "active")),
    ]
    for link, act in acts:
        with pytest.raises(StateError, match=sentence):
            link.call(act)
    assert all(len(m.gate.released_rows(Point.EMBEDDING, 1)) == 0 for m in local.members())
    local.coordinator.train()
    local.coordinator.open_predictions()
    assert operator.call(Query("0-1")).numbers.tolist() == [0, 1]


GRADIENTS: list[tuple[dict[str, Any], type[VflensError], str]] = [
    (
        {"tensors": {"gradient": np.ones((3, 3))}},
        ProtocolError,
        r"^gradient of 'active' has shape \(3, 3\) float64: expected \(4, 3\) float64$",
    ),
    ({"tensors": {"gradient": np.ones((4, 3), "<f4")}}, ProtocolError,
            r"has shape \(4, 3\) float32: expected \(4, 3\) float64"),
    ({"tensors": {"gradient": np.full((4, 3), np.inf)}}, ProtocolError,
            "holds NaN, infinite or huge numbers in step 0"),
    ({"tensors": {"gradient": np.full((4, 3), 1e140)}}, ProtocolError,
            "holds NaN, infinite or huge numbers in step 0"),
    ({"tensors": {"embedding": np.ones((4, 3))}}, ProtocolError, "carries no tensor 'gradient'"),
    ({"tensors": None}, VflensError, "gradient of party 'active' were withheld"),
    ({"point": Point.EMBEDDING}, ProtocolError,
            "^embedding of 'active' came instead of gradient of 'active'$"),
    ({"sender": "mallory"}, ProtocolError, "^gradient of 'mallory' came instead of gradient of 'active'$"),
    (
        {"exchange": Exchange("other", Phase.TRAIN, 0, 0)},
        ProtocolError,
        "^an exchange of run 'other' reached run 'tiny/run': send it to its own run$",
    ),
    (
        {"exchange": Exchange("tiny/run", Phase.PREDICT, 1, 0)},
        ProtocolError,
        "^an exchange of phase 'predict' instead of 'train'$",
    ),
    ({"rows": NOTHING, "tensors": {"gradient": np.ones((0, 3))}}, ProtocolError,
            "is not that of the rows whose embeddings 'passive' sent in it"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "sentence"), GRADIENTS, ids=range(len(GRADIENTS)))
def test_a_wrong_gradient_is_refused_and_not_learned(
    local: LocalFederation, changes: dict[str, Any], error: type[VflensError], sentence: str
) -> None:
    passive, link = local.passive["passive"], local.coordinator.links["passive"]
    link.call(_train_step(passive, 0))
    before = fingerprint(local)
    with pytest.raises(error, match=sentence):
        link.call(_train_step(passive, 1, received=_gradient(passive, 0, **changes)))
    assert fingerprint(local) == before


def test_a_gradient_of_prediction_rows_is_refused(local: LocalFederation) -> None:
    passive, link = local.passive["passive"], local.coordinator.links["passive"]
    link.call(_train_step(passive, 0))
    rows = passive.run.federation.predict[:4]
    with pytest.raises(
        ProtocolError,
        match=r"^the gradient of step 0 is not that of the rows whose embeddings 'passive' sent in it$",
    ):
        link.call(_train_step(passive, 1, received=_gradient(passive, 0, rows=rows)))


def _wrong_rows(local: LocalFederation, phase: Phase) -> list[tuple[list[int], str]]:
    federation = local.active.run.federation
    others = federation.predict if phase is Phase.TRAIN else federation.train
    mine = federation.train if phase is Phase.TRAIN else federation.predict
    return [
        (
            [int(mine[0]), int(others[0])],
            f"^row {others[0]} is no {phase.value} row of run 'tiny/run': ask for rows",
        ),
        ([federation.rows], f"^row {federation.rows} is no {phase.value} row"),
        ([int(mine[0]), -1], f"^row -1 is no {phase.value} row"),
        ([2**31 - 1], f"^row {2**31 - 1} is no {phase.value} row"),
    ]


def test_rows_of_another_set_are_refused_everywhere(local: LocalFederation) -> None:
    local.coordinator.train()
    before = fingerprint(local)
    step = local.active.recovery.learned + 1
    calls: list[tuple[Phase, Callable[[Array], Any]]] = [
        (Phase.TRAIN, lambda r: local.coordinator.links["passive"].call(_train_step(local.active, step, r))),
        (Phase.TRAIN, lambda r: local.coordinator.links["active"].call(_train_step(local.active, step, r))),
        (
            Phase.PREDICT,
            lambda r: local.coordinator.links["passive"].call(
                Forward(Exchange("tiny/run", Phase.PREDICT, 1, 0), r)
            ),
        ),
        (Phase.PREDICT, local.active.predictions.ask),
    ]
    for phase, call in calls:
        if phase is Phase.PREDICT:
            local.coordinator.open_predictions()
        for rows, sentence in _wrong_rows(local, phase):
            with pytest.raises(ProtocolError, match=sentence):
                call(np.array(rows, np.int32))
    for call in (calls[2][1], calls[3][1]):
        with pytest.raises(ProtocolError, match=r"^an empty list of predict rows: ask for at least one$"):
            call(NOTHING)
    assert fingerprint(local) == before


def test_a_model_version_that_does_not_exist_draws_no_fresh_noise(local: LocalFederation) -> None:
    rows = local.active.run.federation.predict[:2]
    acts: list[tuple[str, Act[Any]]] = [
        ("passive", Forward(Exchange("tiny/run", Phase.PREDICT, 2, 0), rows)),
        ("passive", Disclose("tiny/run", 2, "active")),
        ("active", Begin("tiny/run", 2)),
    ]
    for name, act in acts:
        with pytest.raises(ProtocolError, match=r"^model version 2 does not exist: ask for version 1$"):
            local.coordinator.links[name].call(act)


def test_an_alignment_that_does_not_fit_is_refused(tmp_path: Path, local: LocalFederation) -> None:
    whole = local.coordinator.aligned
    order = np.arange(whole.rows, dtype=np.int32)
    twice, beyond = order.copy(), order.copy()
    twice[0], beyond[0] = 1, 90
    fresh = federation(tmp_path / "fresh", defenses=NOISY)
    cases: list[tuple[Prepare, str]] = [
        (Prepare(whole, order[1:]),
                f"^the aligned order names {whole.rows - 1} rows, {whole.rows} distinct "
                "ones"),
        (Prepare(whole, twice), f"^the aligned order names {whole.rows} rows, {whole.rows} distinct ones"),
        (Prepare(whole, beyond), f"^the aligned order names row 90 of a file with {whole.rows} rows$"),
        (Prepare(replace(whole, predict=whole.train[:1]), order), "^training and prediction rows overlap"),
        (Prepare(replace(whole, predict=np.array([90], np.int32)), order),
                "overlap or lie outside the aligned rows$"),
        (Prepare(replace(whole, run="other"), order),
                "^run 'other' is not this party's: 'passive' is configured for run"),
        (Prepare(replace(whole, parties=whole.parties[:1]), order),
                "does not know passive 'passive' with its columns"),
    ]  # fmt: skip
    for act, sentence in cases:
        with pytest.raises(ProtocolError, match=sentence):
            fresh.coordinator.links["passive"].call(act)
    assert fresh.passive["passive"].federation is None
    fresh.coordinator.links["passive"].call(Prepare(whole, order))
    close(fresh)


def test_only_disclosures_of_passive_parties_are_delivered(local: LocalFederation) -> None:
    link = local.coordinator.links["active"]
    weights = Released("passive", Exchange("tiny/run", Phase.DISCLOSE, 1, 3), Point.PARAMETERS, NOTHING, {})
    cases: list[tuple[Released, str]] = [
        (
            replace(weights, sender="mallory"),
            "^a disclosure of 'mallory': only a passive party discloses$",
        ),
        (
            replace(weights, exchange=Exchange("x", Phase.DISCLOSE, 1, 3)),
            "^parameters that 'passive' discloses came in phase 'disclose' of run 'x', version 1: phase",
        ),
        (
            replace(weights, exchange=Exchange("tiny/run", Phase.PREDICT, 1, 3)),
            "^parameters that 'passive' discloses came in phase 'predict' of run",
        ),
        (
            replace(weights, point=Point.SCORES),
            "^scores delivered as a disclosure: parameters, auxiliary rows, moments and tables are disclosed",
        ),
        (
            replace(weights, point=Point.AUXILIARY, rows=local.coordinator.aligned.predict[:2]),
            "is no train row of run",
        ),
        (
            weights,
            r"^parameters of 'passive' hold tensors of shapes {}: {'weight': \(3, 4\), 'bias': \(3,\)} are "
            r"due$",
        ),
        (
            replace(weights, tensors={"weight": np.zeros((3, 5))}),
            r"hold tensors of shapes {'weight': \(3, 5\)}: {'weight': \(3, 4\), ",
        ),
        (
            replace(weights, tensors={"bias": np.zeros(3)}),
            r"hold tensors of shapes {'bias': \(3,\)}: {'weight'",
        ),
        (
            replace(weights, tensors={"weight": np.zeros((3, 4)), "more": np.zeros(9)}),
            r"'more': \(9,\)}: {'weight'",
        ),
        (
            replace(weights, tensors={"weight": np.full((3, 4), np.inf)}),
            "^parameters of 'passive': weight of float64 holds something else than moderate numbers of",
        ),
        (
            replace(
                weights,
                point=Point.MOMENTS,
                tensors={"mean": np.zeros(4)},
                exchange=weights.exchange._replace(step=6),
            ),
            r"^moments of 'passive' hold tensors of shapes {'mean': \(4,\)}: .*'covariance': \(4, 4\)} are",
        ),
        (
            replace(
                weights,
                point=Point.AUXILIARY,
                rows=local.coordinator.aligned.train[:2],
                tensors={"features": np.zeros((3, 4))},
                exchange=weights.exchange._replace(step=5 + 7 * 2),
            ),
            r"^auxiliary of 'passive' hold tensors of shapes {'features': \(3, 4\)}: {'features': \(2, 4\)} "
            r"are due$",
        ),
        (
            replace(weights, exchange=Exchange("tiny/run", Phase.DISCLOSE, 1, 7 * 73)),
            "^parameters of 'passive' as disclosure number 511: 3 is its number$",
        ),
        (
            replace(weights, tensors={"weight": np.zeros((3, 4), "<f4")}),
            "^parameters of 'passive': weight of float32 holds something else",
        ),
        (
            replace(weights, rows=local.coordinator.aligned.train[:1]),
            "^parameters of 'passive': numbers of no",
        ),
        (
            replace(weights, point=Point.AUXILIARY, rows=local.coordinator.aligned.train[[1, 0]]),
            "^auxiliary of 'passive': each row is due once, ascending$",
        ),
        (
            replace(weights, point=Point.MOMENTS, tensors=None, exchange=weights.exchange._replace(step=6)),
            "^moments of 'passive' were withheld: parameters can be$",
        ),
    ]
    for released, sentence in cases:
        with pytest.raises(ProtocolError, match=sentence):
            link.call(Deliver(released))
    assert list(local.active.transcript) == []
