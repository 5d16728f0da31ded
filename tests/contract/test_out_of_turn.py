"""An act at the wrong moment, of the wrong rows or by the wrong caller is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import NOISY, NOTHING, close, federation, fingerprint, payload
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, StateError, VflensError
from vflens.models.part import Part
from vflens.protocol.acts import Act, Begin, Disclose, Finished, Forward, Predict, Prepare, Query, Step
from vflens.protocol.link import InProcessLink
from vflens.protocol.vertical.agreement import VerticalAgreement
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
    sealed = Released(
        "active", _exchange(party, step), Point.GRADIENT, rows, tensors={"gradient": np.ones((4, 3))}
    )
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
    for party in nonempty(local.data_parties.values()):
        party._deferred = lambda: done.append("work")
        before = sorted(file.name for file in party.folder.iterdir())
        words = f"^party '{party.name}' has no run yet: 'coordinator' prepares it first$"
        with pytest.raises(StateError, match=words):
            local.coordinator.links[party.name].call(Begin("tiny/run", 1))
        assert (done, party.begun.is_set(), party.reached.is_open) == ([], False, False)
        assert sorted(file.name for file in party.folder.iterdir()) == before
        party._deferred = None
    close(local)


@pytest.mark.parametrize(("step", "gradient"), [(3, None), (1, None), (2, 1)])
def test_a_skipped_step_is_refused_and_changes_nothing(
    local: LocalFederation, step: int, gradient: int | None
) -> None:
    passive, before = local.passive["passive"], fingerprint(local)
    act = _train_step(passive, step, received=None if gradient is None else _gradient(passive, gradient))
    with pytest.raises(StateError, match=r"^step \d came before step 0: send the missing steps first$"):
        local.coordinator.links["passive"].call(act)
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


#: Who is asked for rows: in which phase they are due, and how they are asked for.
ASKED: dict[str, tuple[Phase, Callable[[LocalFederation, Array], Any]]] = {
    "a step of the passive party": (Phase.TRAIN, lambda local, rows: _step_of(local, "passive", rows)),
    "a step of the active party": (Phase.TRAIN, lambda local, rows: _step_of(local, "active", rows)),
    "an embedding": (
        Phase.PREDICT,
        lambda local, rows: local.coordinator.links["passive"].call(
            Forward(Exchange("tiny/run", Phase.PREDICT, 1, 0), rows)
        ),
    ),
    "scores": (Phase.PREDICT, lambda local, rows: local.active.predictions.ask(rows)),
}
#: Rows of which the last is wrong, of those that are due and those of the other phase.
WRONG: dict[str, Callable[[Array, Array], list[int]]] = {
    "of the other phase": lambda due, other: [int(due[0]), int(other[0])],
    "behind the last": lambda due, other: [len(due) + len(other)],
    "negative": lambda due, other: [int(due[0]), -1],
    "far behind the last": lambda due, other: [2**31 - 1],
}


def _step_of(local: LocalFederation, name: str, rows: Array) -> Any:
    step = local.active.recovery.learned + 1
    return local.coordinator.links[name].call(_train_step(local.active, step, rows))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("asked", ASKED)
def test_rows_of_another_set_are_refused_everywhere(local: LocalFederation, asked: str, wrong: str) -> None:
    (phase, ask), run = ASKED[asked], local.coordinator.aligned
    local.coordinator.train()
    if phase is Phase.PREDICT:
        local.coordinator.open_predictions()
    rows = WRONG[wrong](*((run.train, run.predict) if phase is Phase.TRAIN else (run.predict, run.train)))
    before = fingerprint(local)
    with pytest.raises(
        ProtocolError, match=f"^row {rows[-1]} is no {phase.value} row of run 'tiny/run': ask"
    ):
        ask(local, np.array(rows, np.int32))
    assert fingerprint(local) == before


@pytest.mark.parametrize("asked", [name for name, (phase, _) in ASKED.items() if phase is Phase.PREDICT])
def test_no_prediction_rows_are_refused(local: LocalFederation, asked: str) -> None:
    local.coordinator.train()
    local.coordinator.open_predictions()
    before = fingerprint(local)
    with pytest.raises(ProtocolError, match=r"^an empty list of predict rows: ask for at least one$"):
        ASKED[asked][1](local, NOTHING)
    assert fingerprint(local) == before


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("passive", Forward(Exchange("tiny/run", Phase.PREDICT, 2, 0), np.zeros(1, np.int32))),
        ("passive", Disclose("tiny/run", 2, "active")),
        ("active", Begin("tiny/run", 2)),
    ],
    ids=["rows", "disclosures", "the end of training"],
)
def test_a_model_version_that_does_not_exist_draws_no_fresh_noise(
    local: LocalFederation, name: str, act: Act[Any]
) -> None:
    with pytest.raises(ProtocolError, match=r"^model version 2 does not exist: ask for version 1$"):
        local.coordinator.links[name].call(act)


#: What the coordinator sends in place of an agreement and its order of rows, and the words of the refusal.
ALIGNMENTS: dict[str, tuple[Callable[[VerticalAgreement, Array], Prepare], str]] = {
    "a row less": (
        lambda whole, order: Prepare(whole, order[1:]),
        "^the aligned order names 89 rows, 90 distinct ones were announced$",
    ),
    "a row twice": (
        lambda whole, order: Prepare(whole, np.append(order[1:], order[1])),
        "^the aligned order names 90 rows, 90 distinct ones were announced$",
    ),
    "a row that no file has": (
        lambda whole, order: Prepare(whole, order + order[1]),
        "^the aligned order names row 90 of a file with 90 rows$",
    ),
    "rows of both phases": (
        lambda whole, order: Prepare(replace(whole, predict=whole.train[:1]), order),
        "^training and prediction rows overlap",
    ),
    "rows outside": (
        lambda whole, order: Prepare(replace(whole, predict=np.array([90], np.int32)), order),
        "overlap or lie outside the aligned rows$",
    ),
    "another run": (
        lambda whole, order: Prepare(replace(whole, run="other"), order),
        "^run 'other' is not this party's: 'passive' is configured for run",
    ),
    "without the party": (
        lambda whole, order: Prepare(replace(whole, parties=whole.parties[:1]), order),
        "does not know passive 'passive' with its columns",
    ),
}


@pytest.mark.parametrize("case", ALIGNMENTS)
def test_an_alignment_that_does_not_fit_is_refused(tmp_path: Path, local: LocalFederation, case: str) -> None:
    whole, (changed, words) = local.coordinator.aligned, ALIGNMENTS[case]
    order = np.arange(whole.rows, dtype=np.int32)
    fresh = federation(tmp_path / "fresh", defenses=NOISY)
    link = fresh.coordinator.links["passive"]
    with pytest.raises(ProtocolError, match=words):
        link.call(changed(whole, order))
    assert fresh.passive["passive"].federation is None
    link.call(Prepare(whole, order))
    close(fresh)
