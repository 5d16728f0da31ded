"""What a view grants, joins and refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from clinicviews import EVERYTHING, released_by, scores_of, view_of

from vflens.errors import KnowledgeError, PluginError, ProtocolError
from vflens.models.families.split_network import SplitNetwork
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import (
    Array,
    ColumnInfo,
    Knowledge,
    Phase,
    Point,
)

# -- undeclared, withheld, never disclosed --------------------------------------------------------------


@pytest.mark.parametrize("point", list(Point))
def test_undeclared_points_are_refused_even_when_they_arrived(point: Point) -> None:
    transcript = [released_by("wards", point, {"weight": np.zeros((3, 2))})]
    with pytest.raises(KnowledgeError, match=r"the attack read '.*' without declaring it in `needs`"):
        view_of(transcript, needs=frozenset()).received(point)
    assert len(list(view_of(transcript).received(point))) == 1


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
        view_of(own=own, needs=EVERYTHING - {Knowledge(knowledge)}).own(name)
    with pytest.raises(KnowledgeError, match=f"party 'clinic' has no {name} of its own"):
        view_of().own(name)


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
        read(view_of(needs=EVERYTHING - {Knowledge(knowledge)}))


def test_a_released_table_is_knowledge_of_its_own() -> None:
    arrived = [released_by("wards", Point.DATASET, {"dataset": np.zeros((2, 2))})]
    granted = frozenset({Knowledge.AUXILIARY})
    with pytest.raises(KnowledgeError, match="read 'released_table' without declaring it"):
        view_of(arrived, needs=granted).released_table()
    with pytest.raises(KnowledgeError, match="read 'released_table' without declaring it"):
        list(view_of(arrived, needs=granted).received(Point.DATASET))
    assert list(view_of(arrived, needs=frozenset({Knowledge.RELEASED_TABLE})).received(Point.DATASET))


@pytest.mark.parametrize("rows", [[-1], [0, 6], [0.5], [[1]], [True]], ids=str)
def test_rows_that_are_no_positions_are_refused(rows: Any) -> None:
    view = view_of(own={"features": np.arange(6.0)})
    with pytest.raises(PluginError, match=r"^rows = .*: positions below 6 are whole numbers in an array"):
        view.own("features", np.array(rows))


@pytest.mark.parametrize("read", [AdversaryView.embeddings, AdversaryView.gradients])
def test_a_negative_row_is_no_row_of_a_message(read: Any) -> None:
    with pytest.raises(PluginError, match=r"^rows = array\(\[-1\]\): positions are whole numbers"):
        read(view_of(), np.array([-1]))


def test_an_undeclared_phase_is_refused_and_not_called_absent() -> None:
    view = view_of(phases=frozenset({Phase.PREDICT}))
    sentence = r"^the attack read phase 'train' without declaring it in `phases`$"
    with pytest.raises(KnowledgeError, match=sentence):
        view.embeddings(phase=Phase.TRAIN)
    with pytest.raises(KnowledgeError, match="read phase 'train'"):
        view.gradients()


def test_scores_do_not_come_in_batches() -> None:
    with pytest.raises(PluginError, match=r"^batches\('scores'\): only embeddings and gradients"):
        view_of().batches(Point.SCORES, Phase.PREDICT)


def test_the_active_party_has_no_unknown_columns() -> None:
    sentence = r"^party 'clinic' has no unknown columns: those are of insurer, wards$"
    with pytest.raises(KnowledgeError, match=sentence):
        view_of(target="clinic").columns()


def test_a_view_cannot_be_written_to() -> None:
    view = view_of(rows=[0, 1])
    assert not view.rows.flags.writeable
    assert not view.training_rows.flags.writeable


def test_nothing_else_can_be_asked_of_oneself() -> None:
    with pytest.raises(
        KnowledgeError,
        match=r"own\('secret'\): a party owns \['embeddings', 'features', 'labels', 'parameters'\]",
    ):
        view_of().own("secret")


def test_withheld_parameters_are_a_knowledge_error() -> None:
    transcript = [
        released_by("insurer", Point.PARAMETERS, None),
        released_by("wards", Point.PARAMETERS, None),
    ]
    with pytest.raises(KnowledgeError, match="parameters of party 'insurer' were withheld by a defence"):
        view_of(transcript).unknown_parameters()


def test_parameters_that_were_never_disclosed_are_a_knowledge_error() -> None:
    transcript = [released_by("insurer", Point.PARAMETERS, {"weight": np.zeros((3, 3))})]
    with pytest.raises(KnowledgeError, match="party 'wards' never disclosed its parameters to 'clinic'"):
        view_of(transcript).unknown_parameters()


def test_moments_that_were_never_disclosed_are_a_knowledge_error() -> None:
    with pytest.raises(
        KnowledgeError, match="party 'insurer' disclosed neither moments nor auxiliary rows to 'clinic'"
    ):
        view_of().moments()


def test_scores_that_never_arrived_are_a_knowledge_error() -> None:
    transcript = [scores_of([4, 2], np.zeros((2, 3)), 0)]
    with pytest.raises(KnowledgeError, match=r"the scores of 2 rows \(first: 7\) never reached 'clinic'"):
        view_of(transcript, rows=[2, 7, 3]).scores()


def test_a_missing_tensor_is_a_broken_message() -> None:
    transcript = [released_by(p, Point.PARAMETERS, {"bias": np.zeros(3)}) for p in ("insurer", "wards")]
    with pytest.raises(
        ProtocolError, match=r"parameters from 'insurer' carries no tensor 'weight': it has \['bias'\]"
    ):
        view_of(transcript).unknown_parameters()


def test_a_split_network_has_no_parameters_of_softmax_regression() -> None:
    view = view_of(model=SplitNetwork(architecture="mlp"))
    with pytest.raises(KnowledgeError, match="a split network: this attack is made for softmax regression"):
        view.unknown_parameters()


# -- phases ---------------------------------------------------------------------------------------------


def test_only_declared_phases_are_seen() -> None:
    transcript = [released_by("wards", Point.EMBEDDING, {}, phase=p, step=i) for i, p in enumerate(Phase)]
    seen = view_of(transcript, phases=frozenset({Phase.PREDICT})).received(Point.EMBEDDING)
    assert [r.exchange.phase for r in seen] == [Phase.PREDICT]
    assert [r.exchange.step for r in view_of(transcript).received(Point.EMBEDDING)] == [0, 1, 2]


def test_received_tells_senders_apart() -> None:
    transcript = [released_by(s, Point.EMBEDDING, {}) for s in ("insurer", "wards")]
    assert [r.sender for r in view_of(transcript).received(Point.EMBEDDING, "wards")] == ["wards"]


def test_disclosures_need_their_phase() -> None:
    transcript = [released_by(p, Point.MOMENTS, {"mean": np.zeros(2)}) for p in ("insurer", "wards")]
    with pytest.raises(KnowledgeError, match="disclosed neither"):
        view_of(transcript, phases=frozenset({Phase.PREDICT})).moments()


def test_what_crossed_in_training_is_no_disclosure() -> None:
    transcript = [
        released_by(p, Point.PARAMETERS, {"weight": np.zeros((3, 2))}, phase=Phase.TRAIN)
        for p in ("insurer", "wards")
    ]
    with pytest.raises(KnowledgeError, match="never disclosed"):
        view_of(transcript).unknown_parameters()


# -- what it hands out ----------------------------------------------------------------------------------


def test_scores_come_in_the_order_of_the_rows() -> None:
    log_c = np.arange(12.0).reshape(4, 3)
    transcript = [scores_of([4, 2], log_c[:2], 0), scores_of([9, 0], log_c[2:], 1)]
    np.testing.assert_array_equal(view_of(transcript, rows=[0, 4, 9]).scores(), log_c[[3, 0, 2]])


def test_own_rows_are_those_of_the_view() -> None:
    own = {"features": np.arange(10.0).reshape(5, 2), "labels": np.arange(5), "parameters": np.ones((3, 2))}
    view = view_of(rows=[3, 1], own=own)
    np.testing.assert_array_equal(view.own("features"), [[6, 7], [2, 3]])
    np.testing.assert_array_equal(view.own("labels"), [3, 1])
    np.testing.assert_array_equal(view.own("parameters"), np.ones((3, 2)))


def test_metadata_is_the_target_s() -> None:
    assert view_of(target="insurer").metadata()[0] == ColumnInfo("i0", 0.0, 9.0)


def test_unknown_columns_stand_in_name_order() -> None:
    assert view_of().widths() == {"insurer": 3, "wards": 2}
    assert view_of(target="insurer").columns() == slice(0, 3)
    assert view_of(target="wards").columns() == slice(3, 5)


def test_the_latest_disclosure_counts() -> None:
    transcript = [
        released_by(
            p, Point.PARAMETERS, {"weight": np.full((3, 2), float(s)), "bias": np.full(3, float(s))}, step=s
        )
        for s in (1, 2)
        for p in ("wards", "insurer")
    ]
    weight, bias = view_of(transcript).unknown_parameters()
    np.testing.assert_array_equal(weight, np.full((3, 4), 2.0))
    np.testing.assert_array_equal(bias, np.full(3, 2.0))


def test_moments_are_disclosed_or_estimated_and_parties_uncorrelated() -> None:
    rows = np.random.default_rng(0).random((200, 2)) @ np.array([[1.0, 0.5], [0.0, 0.5]])
    K = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.1]])
    transcript = [
        released_by("wards", Point.AUXILIARY, {"features": rows}),
        released_by("insurer", Point.MOMENTS, {"mean": np.array([0.1, 0.2, 0.3]), "covariance": K}),
    ]
    moments = view_of(transcript).moments()
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
    transcript = [released_by("wards", p, t) for p, t in known.items()]
    moments = view_of([*transcript, released_by("insurer", Point.MOMENTS, insurer)]).moments()
    np.testing.assert_array_equal(moments.mean, [0, 0, 0, 0.5, 0.5])
    assert moments.covariance is None
