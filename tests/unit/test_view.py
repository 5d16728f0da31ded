"""What a view grants, joins and refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import log_softmax

from vflens import attacks
from vflens.errors import KnowledgeError, PluginError, ProtocolError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.family import ModelFamily
from vflens.plugins.attack import LinearAttack, linear_estimate
from vflens.plugins.findings import Joint
from vflens.plugins.view import AdversaryView
from vflens.registry import ATTACKS
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Estimate,
    Exchange,
    Knowledge,
    Moments,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
)

NOTHING = np.zeros(0, np.int32)
EVERYTHING = frozenset(Knowledge)
PARTIES = [  # in no particular order
    PartyInfo("wards", Role.PASSIVE, (ColumnInfo("w0"), ColumnInfo("w1"))),
    PartyInfo("clinic", Role.ACTIVE, (ColumnInfo("y0"),), n_classes=3),
    PartyInfo("insurer", Role.PASSIVE, (ColumnInfo("i0", 0.0, 9.0), ColumnInfo("i1"), ColumnInfo("i2"))),
]


def _released(
    sender: str,
    point: Point,
    tensors: Mapping[str, Array] | None,
    *,
    phase: Phase = Phase.DISCLOSE,
    step: int = 0,
) -> Released:
    return Released(sender, Exchange("run", phase, 0, step), point, NOTHING, tensors)


def _scores(rows: Sequence[int], log_c: Array, step: int) -> Released:
    exchange = Exchange("run", Phase.PREDICT, 0, step)
    return Released("coordinator", exchange, Point.SCORES, np.array(rows, np.int32), {"scores": log_c})


def _view(
    transcript: Sequence[Released] = (),
    *,
    target: str = "wards",
    rows: Sequence[int] = (),
    own: Mapping[str, Array] | None = None,
    needs: frozenset[Knowledge] = EVERYTHING,
    phases: frozenset[Phase] = frozenset(Phase),
    joint: Joint | None = None,
    model: ModelFamily = SOFTMAX_REGRESSION,
) -> AdversaryView:
    return AdversaryView(
        party="clinic",
        target=target,
        rows=np.array(rows, np.int32),
        n_classes=3,
        transcript=Messages(transcript),
        own=own or {},
        parties=PARTIES,
        needs=needs,
        phases=phases,
        joint=joint,
        model=model,
    )


# -- undeclared, withheld, never disclosed --------------------------------------------------------------


@pytest.mark.parametrize("point", list(Point))
def test_undeclared_points_are_refused_even_when_they_arrived(point: Point) -> None:
    transcript = [_released("wards", point, {"weight": np.zeros((3, 2))})]
    with pytest.raises(KnowledgeError, match=r"the attack read '.*' without declaring it in `needs`"):
        _view(transcript, needs=frozenset()).received(point)
    assert len(list(_view(transcript).received(point))) == 1


@pytest.mark.parametrize(
    ("name", "knowledge"),
    [
        ("features", "own_features"),
        ("embeddings", "own_features"),
        ("labels", "own_labels"),
        ("parameters", "parameters"),
    ],
)
def test_undeclared_possessions_are_refused(name: str, knowledge: str) -> None:
    own = {name: np.arange(6.0)}
    with pytest.raises(KnowledgeError, match=f"read '{knowledge}' without declaring it"):
        _view(own=own, needs=EVERYTHING - {Knowledge(knowledge)}).own(name)
    with pytest.raises(KnowledgeError, match=f"party 'clinic' has no {name} of its own"):
        _view().own(name)


@pytest.mark.parametrize(
    ("read", "knowledge"),
    [
        (AdversaryView.metadata, "metadata"),
        (AdversaryView.scores, "scores"),
        (AdversaryView.unknown_parameters, "parameters"),
        (AdversaryView.moments, "moments"),
    ],
)
def test_undeclared_reads_are_refused(read: Any, knowledge: str) -> None:
    with pytest.raises(KnowledgeError, match=f"read '{knowledge}' without declaring it"):
        read(_view(needs=EVERYTHING - {Knowledge(knowledge)}))


def test_a_released_table_is_knowledge_of_its_own() -> None:
    arrived = [_released("wards", Point.DATASET, {"dataset": np.zeros((2, 2))})]
    granted = frozenset({Knowledge.AUXILIARY})
    with pytest.raises(KnowledgeError, match="read 'released_table' without declaring it"):
        _view(arrived, needs=granted).released_table()
    with pytest.raises(KnowledgeError, match="read 'released_table' without declaring it"):
        list(_view(arrived, needs=granted).received(Point.DATASET))
    assert list(_view(arrived, needs=frozenset({Knowledge.RELEASED_TABLE})).received(Point.DATASET))


@pytest.mark.parametrize("rows", [[-1], [0, 6], [0.5], [[1]], [True]], ids=str)
def test_rows_that_are_no_positions_are_refused(rows: Any) -> None:
    view = _view(own={"features": np.arange(6.0)})
    with pytest.raises(PluginError, match=r"^rows = .*: positions below 6 are whole numbers in an array"):
        view.own("features", np.array(rows))


@pytest.mark.parametrize("read", [AdversaryView.embeddings, AdversaryView.gradients])
def test_a_negative_row_is_no_row_of_a_message(read: Any) -> None:
    with pytest.raises(PluginError, match=r"^rows = array\(\[-1\]\): positions are whole numbers"):
        read(_view(), np.array([-1]))


def test_an_undeclared_phase_is_refused_and_not_called_absent() -> None:
    view = _view(phases=frozenset({Phase.PREDICT}))
    sentence = r"^the attack read phase 'train' without declaring it in `phases`$"
    with pytest.raises(KnowledgeError, match=sentence):
        view.embeddings(phase=Phase.TRAIN)
    with pytest.raises(KnowledgeError, match="read phase 'train'"):
        view.gradients()


def test_scores_do_not_come_in_batches() -> None:
    with pytest.raises(PluginError, match=r"^batches\('scores'\): only embeddings and gradients"):
        _view().batches(Point.SCORES, Phase.PREDICT)


def test_the_active_party_has_no_unknown_columns() -> None:
    sentence = r"^party 'clinic' has no unknown columns: those are of insurer, wards$"
    with pytest.raises(KnowledgeError, match=sentence):
        _view(target="clinic").columns()


def test_a_view_cannot_be_written_to() -> None:
    view = _view(rows=[0, 1])
    assert not view.rows.flags.writeable
    assert not view.training_rows.flags.writeable


def test_nothing_else_can_be_asked_of_oneself() -> None:
    with pytest.raises(
        KnowledgeError,
        match=r"own\('secret'\): a party owns \['embeddings', 'features', 'labels', 'parameters'\]",
    ):
        _view().own("secret")


def test_withheld_parameters_are_a_knowledge_error() -> None:
    transcript = [_released("insurer", Point.PARAMETERS, None), _released("wards", Point.PARAMETERS, None)]
    with pytest.raises(KnowledgeError, match="parameters of party 'insurer' were withheld by a defence"):
        _view(transcript).unknown_parameters()


def test_parameters_that_were_never_disclosed_are_a_knowledge_error() -> None:
    transcript = [_released("insurer", Point.PARAMETERS, {"weight": np.zeros((3, 3))})]
    with pytest.raises(KnowledgeError, match="party 'wards' never disclosed its parameters to 'clinic'"):
        _view(transcript).unknown_parameters()


def test_moments_that_were_never_disclosed_are_a_knowledge_error() -> None:
    with pytest.raises(
        KnowledgeError, match="party 'insurer' disclosed neither moments nor auxiliary rows to 'clinic'"
    ):
        _view().moments()


def test_scores_that_never_arrived_are_a_knowledge_error() -> None:
    transcript = [_scores([4, 2], np.zeros((2, 3)), 0)]
    with pytest.raises(KnowledgeError, match=r"the scores of 2 rows \(first: 7\) never reached 'clinic'"):
        _view(transcript, rows=[2, 7, 3]).scores()


def test_a_missing_tensor_is_a_broken_message() -> None:
    transcript = [_released(p, Point.PARAMETERS, {"bias": np.zeros(3)}) for p in ("insurer", "wards")]
    with pytest.raises(
        ProtocolError, match=r"parameters from 'insurer' carries no tensor 'weight': it has \['bias'\]"
    ):
        _view(transcript).unknown_parameters()


def test_a_split_network_has_no_parameters_of_softmax_regression() -> None:
    view = _view(model=SplitNetwork(architecture="mlp"))
    with pytest.raises(KnowledgeError, match="a split network: this attack is made for softmax regression"):
        view.unknown_parameters()


# -- phases ---------------------------------------------------------------------------------------------


def test_only_declared_phases_are_seen() -> None:
    transcript = [_released("wards", Point.EMBEDDING, {}, phase=p, step=i) for i, p in enumerate(Phase)]
    seen = _view(transcript, phases=frozenset({Phase.PREDICT})).received(Point.EMBEDDING)
    assert [r.exchange.phase for r in seen] == [Phase.PREDICT]
    assert [r.exchange.step for r in _view(transcript).received(Point.EMBEDDING)] == [0, 1, 2]


def test_received_tells_senders_apart() -> None:
    transcript = [_released(s, Point.EMBEDDING, {}) for s in ("insurer", "wards")]
    assert [r.sender for r in _view(transcript).received(Point.EMBEDDING, "wards")] == ["wards"]


def test_disclosures_need_their_phase() -> None:
    transcript = [_released(p, Point.MOMENTS, {"mean": np.zeros(2)}) for p in ("insurer", "wards")]
    with pytest.raises(KnowledgeError, match="disclosed neither"):
        _view(transcript, phases=frozenset({Phase.PREDICT})).moments()


def test_what_crossed_in_training_is_no_disclosure() -> None:
    transcript = [
        _released(p, Point.PARAMETERS, {"weight": np.zeros((3, 2))}, phase=Phase.TRAIN)
        for p in ("insurer", "wards")
    ]
    with pytest.raises(KnowledgeError, match="never disclosed"):
        _view(transcript).unknown_parameters()


# -- what it hands out ----------------------------------------------------------------------------------


def test_scores_come_in_the_order_of_the_rows() -> None:
    log_c = np.arange(12.0).reshape(4, 3)
    transcript = [_scores([4, 2], log_c[:2], 0), _scores([9, 0], log_c[2:], 1)]
    np.testing.assert_array_equal(_view(transcript, rows=[0, 4, 9]).scores(), log_c[[3, 0, 2]])


def test_own_rows_are_those_of_the_view() -> None:
    own = {"features": np.arange(10.0).reshape(5, 2), "labels": np.arange(5), "parameters": np.ones((3, 2))}
    view = _view(rows=[3, 1], own=own)
    np.testing.assert_array_equal(view.own("features"), [[6, 7], [2, 3]])
    np.testing.assert_array_equal(view.own("labels"), [3, 1])
    np.testing.assert_array_equal(view.own("parameters"), np.ones((3, 2)))


def test_metadata_is_the_target_s() -> None:
    assert _view(target="insurer").metadata()[0] == ColumnInfo("i0", 0.0, 9.0)


def test_unknown_columns_stand_in_name_order() -> None:
    assert _view().widths() == {"insurer": 3, "wards": 2}
    assert _view(target="insurer").columns() == slice(0, 3)
    assert _view(target="wards").columns() == slice(3, 5)


def test_the_latest_disclosure_counts() -> None:
    transcript = [
        _released(
            p, Point.PARAMETERS, {"weight": np.full((3, 2), float(s)), "bias": np.full(3, float(s))}, step=s
        )
        for s in (1, 2)
        for p in ("wards", "insurer")
    ]
    weight, bias = _view(transcript).unknown_parameters()
    np.testing.assert_array_equal(weight, np.full((3, 4), 2.0))
    np.testing.assert_array_equal(bias, np.full(3, 2.0))


def test_moments_are_disclosed_or_estimated_and_parties_uncorrelated() -> None:
    rows = np.random.default_rng(0).random((200, 2)) @ np.array([[1.0, 0.5], [0.0, 0.5]])
    K = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.1]])
    transcript = [
        _released("wards", Point.AUXILIARY, {"features": rows}),
        _released("insurer", Point.MOMENTS, {"mean": np.array([0.1, 0.2, 0.3]), "covariance": K}),
    ]
    moments = _view(transcript).moments()
    np.testing.assert_allclose(moments.mean, [0.1, 0.2, 0.3, *rows.mean(axis=0)])
    assert moments.covariance is not None
    np.testing.assert_array_equal(moments.covariance[:3, :3], K)
    assert not moments.covariance[:3, 3:].any()
    np.testing.assert_allclose(moments.covariance[3:, 3:], np.cov(rows.T), atol=0.01)  # shrunk a little


@pytest.mark.parametrize(
    "known",
    [{Point.MOMENTS: {"mean": np.full(2, 0.5)}}, {Point.AUXILIARY: {"features": np.full((1, 2), 0.5)}}],
)
def test_a_mean_alone_or_a_single_row_tells_no_covariance(known: Mapping[Point, Mapping[str, Array]]) -> None:
    insurer = {"mean": np.zeros(3), "covariance": np.eye(3)}
    transcript = [_released("wards", p, t) for p, t in known.items()]
    moments = _view([*transcript, _released("insurer", Point.MOMENTS, insurer)]).moments()
    np.testing.assert_array_equal(moments.mean, [0, 0, 0, 0.5, 0.5])
    assert moments.covariance is None


# -- two passive parties, one system --------------------------------------------------------------------


def _federation() -> tuple[Array, dict[str, Array], list[Released]]:
    """Twelve rows, three classes, columns of both passive parties in name order; scores in two batches."""
    rng = np.random.default_rng(1)
    truth, y, bias = rng.random((12, 5)), rng.random((12, 1)), rng.normal(size=3)
    weight, own_weight = rng.normal(size=(3, 5)), rng.normal(size=(3, 1))
    log_c = log_softmax(truth @ weight.T + y @ own_weight.T + bias, axis=1)
    transcript = [
        _released("wards", Point.PARAMETERS, {"weight": weight[:, 3:]}),
        _released("insurer", Point.PARAMETERS, {"weight": weight[:, :3], "bias": bias}),
        _scores([6, 7, 8, 9, 10, 11], log_c[6:], 0),
        _scores([0, 1, 2, 3, 4, 5], log_c[:6], 1),
    ]
    own = {"features": y, "parameters": own_weight, "weight": weight}
    return truth, own, transcript


def test_two_passive_parties_are_solved_for_jointly() -> None:
    truth, own, transcript = _federation()
    A = np.diff(own["weight"], axis=0)
    joint = attacks.estimate("half_star", A, truth @ A.T).values
    rows = [11, 0, 5]
    for target, columns in (("insurer", slice(0, 3)), ("wards", slice(3, 5))):
        view = _view(transcript, target=target, rows=rows, own=own, needs=LinearAttack.needs)
        estimate = ATTACKS.get("half_star")().reconstruct(view, rng=np.random.default_rng(0))
        np.testing.assert_allclose(estimate.values, joint[rows][:, columns], atol=1e-12)
        np.testing.assert_array_equal(estimate.rows, rows)
        np.testing.assert_allclose(estimate.extras["residual"], 0, atol=1e-12)
        assert estimate.target == target


class _Counting(LinearAttack):
    """Solves for nothing but counts, and draws if it is asked to."""

    calls: ClassVar[list[int]] = []
    draws: bool = False

    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        self.calls.append(len(b))
        noise = rng.random((len(b), A.shape[1])) if self.draws else 0.25
        return linear_estimate(b @ np.linalg.pinv(A).T + noise, A, b)


@pytest.mark.parametrize(("draws", "solved"), [(False, [2, 3]), (True, [2, 2, 3, 3])])
def test_targets_share_one_joint_solution_unless_it_draws(draws: bool, solved: list[int]) -> None:
    _, own, transcript = _federation()
    attack, joint = _Counting(draws=draws), Joint()
    _Counting.calls.clear()
    alone = {}
    for rows in ([11, 0], [11, 0, 5]):
        for target in ("insurer", "wards"):
            seed = len(target)  # each target has a stream of its own
            view = _view(transcript, target=target, rows=rows, own=own, needs=attack.needs, joint=joint)
            alone[len(rows), target] = attack.reconstruct(view, rng=np.random.default_rng(seed))
    assert _Counting.calls == solved
    for (n, target), shared in alone.items():
        view = _view(transcript, target=target, rows=[11, 0, 5][:n], own=own, needs=attack.needs)
        again = attack.reconstruct(view, rng=np.random.default_rng(len(target)))
        assert shared.values.tobytes() == again.values.tobytes()
        assert shared.values.shape == (n, view.widths()[target])
        np.testing.assert_array_equal(shared.status, again.status)


def test_what_one_target_s_estimate_becomes_does_not_change_the_other_s() -> None:
    _, own, transcript = _federation()
    attack, joint = _Counting(), Joint()
    views = [
        _view(transcript, target=t, rows=[1, 2], own=own, needs=attack.needs, joint=joint)
        for t in ("wards", "wards")
    ]
    first, second = (attack.reconstruct(view, rng=np.random.default_rng(0)) for view in views)
    kept = second.values.copy()
    first.values[:], first.status[:] = -1, RowStatus.AMBIGUOUS
    np.testing.assert_array_equal(second.values, kept)
    assert (second.status == RowStatus.OK).all()
    third = attack.reconstruct(views[0], rng=np.random.default_rng(0))
    np.testing.assert_array_equal(third.values, kept)


def test_another_attack_s_joint_solution_is_not_shared() -> None:
    _, own, transcript = _federation()
    joint = Joint()
    view = _view(transcript, rows=[1, 2], own=own, needs=LinearAttack.needs, joint=joint)
    found = [ATTACKS.get(n)().reconstruct(view, rng=np.random.default_rng(0)) for n in ("half", "zero")]
    np.testing.assert_array_equal(found[0].values, np.full((2, 2), 0.5))
    np.testing.assert_array_equal(found[1].values, np.zeros((2, 2)))
