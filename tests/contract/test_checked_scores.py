"""The active party takes the coordinator's scores only as answers to its request, and each row's once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest
from accidents import Around
from laboratory import close, deal, experiment
from oneprocess import LocalFederation

from vflens.defenses.round_scores import RoundScores
from vflens.errors import ProtocolError
from vflens.models.softmax_regression import are_log_probabilities, log_softmax
from vflens.protocol.acts import Act, Predict, Query
from vflens.protocol.link import Link
from vflens.types import Array, Phase, Point, Released, sealed

Lie = Callable[[Released], Released]


class Lying(Around):
    """Changes every answer to Predict as ``lie`` says; ``meanwhile`` is called before the first is told."""

    def __init__(self, inner: Link, lie: Lie, meanwhile: Callable[[], object] | None = None) -> None:
        super().__init__(inner)
        self.asked, self._lie, self._meanwhile = 0, lie, meanwhile

    def submit(self, act: Act[Any]) -> Any:
        reply = super().submit(act)
        if not isinstance(act, Predict):
            return reply
        self.asked += 1
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            honest, self._lie = self._lie, lambda released: released
            meanwhile()
            self._lie = honest
        answer: Future[Any] = Future()
        answer.set_result(self._lie(reply.result()))
        return answer


@pytest.fixture(scope="module")
def open_for_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    """A federation open for predictions; each test asks for rows of its own, or restores what it changed."""
    home = tmp_path_factory.mktemp("open")
    local = LocalFederation(deal(experiment(home, attacks=[]), home), lambda stage, done, total: None)
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    yield local
    close(local)


def _lying(local: LocalFederation, lie: Lie, meanwhile: Callable[[], object] | None = None) -> Lying:
    honest = local.active.links["coordinator"]
    inner = honest.inner if isinstance(honest, Lying) else honest
    local.active.links["coordinator"] = lying = Lying(inner, lie, meanwhile)
    return lying


def _scores(change: Callable[[Array], Array]) -> Lie:
    return lambda released: replace(released, tensors={"scores": sealed(change(released.tensor("scores")))})


def _exchange(**changes: Any) -> Lie:
    return lambda released: replace(released, exchange=released.exchange._replace(**changes))


# Tests that ran before have asked: the number of this request depends on the order.
NOT_ITS_OWN = (
    r"^'coordinator' answered prediction request \d+ with the rows or the exchange of another one: its"
)
NO_SCORES = r"^scores of 'coordinator' in prediction request \d+ are none of softmax regression: look at its"
DUE = r"^scores of 'coordinator' has shape \(3, .\) .*: expected \(3, 3\) float64$"
LIES: dict[str, tuple[Lie, str]] = {
    "+inf": (_scores(lambda s: np.full_like(s, np.inf)), NO_SCORES),
    "NaN": (_scores(lambda s: np.full_like(s, np.nan)), NO_SCORES),
    "probabilities of e^700": (_scores(lambda s: np.full_like(s, 700.0)), NO_SCORES),
    "every class certain": (_scores(np.zeros_like), NO_SCORES),
    "no class possible": (_scores(lambda s: np.full_like(s, -np.inf)), NO_SCORES),
    "bool": (_scores(lambda s: s > -1), DUE),
    "int64": (_scores(lambda s: s.astype(np.int64)), DUE),
    "float32": (_scores(lambda s: s.astype(np.float32)), DUE),
    "a class too few": (_scores(lambda s: np.ascontiguousarray(s[:, 1:])), DUE),
    "a second tensor": (
        lambda r: replace(r, tensors={**(r.tensors or {}), "more": np.zeros(9)}),
        r"^scores of 'coordinator' carries the tensors \['more', 'scores'\]: expected 'scores' alone$",
    ),
    "another number": (_exchange(step=7), NOT_ITS_OWN),
    "an exchange of training": (_exchange(phase=Phase.TRAIN), NOT_ITS_OWN),
    "another run": (_exchange(run="other/run"), NOT_ITS_OWN),
    "other rows": (lambda r: replace(r, rows=r.rows[::-1]), NOT_ITS_OWN),
    "another sender": (lambda r: replace(r, sender="passive"), "^scores of 'passive' came instead of scores"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_none_is_refused_and_not_recorded(open_for_all: LocalFederation, lie: str) -> None:
    change, words = LIES[lie]
    active, before = open_for_all.active, open_for_all.active.transcript.received
    _lying(open_for_all, change)
    with pytest.raises(ProtocolError, match=words):
        active.query(Query("0-2"))
    assert active.transcript.received == before


def test_a_row_is_asked_for_once(open_for_all: LocalFederation) -> None:
    """Asked again, the coordinator could answer otherwise."""
    _lying(open_for_all, lambda released: released)
    first = open_for_all.active.query(Query("3-5")).scores
    lying = _lying(open_for_all, _scores(lambda s: s[:, ::-1].copy()))
    again = open_for_all.active.query(Query("3-5")).scores
    np.testing.assert_array_equal(again, first)
    assert lying.asked == 0


def test_of_two_requests_at_a_time_the_other_answer_is_refused(open_for_all: LocalFederation) -> None:
    active = open_for_all.active
    _lying(open_for_all, _scores(lambda s: s[:, ::-1].copy()), lambda: active.query(Query("7-8")))
    with pytest.raises(
        ProtocolError, match=r"^'coordinator' answered row \d+ again with other scores: each row"
    ):
        active.query(Query("6-8"))
    recorded = [r.rows.tolist() for r in active.transcript.select(Point.SCORES)]
    assert active.run.federation.predict[7:9].tolist() in recorded
    assert active.run.federation.predict[6:9].tolist() not in recorded


@pytest.mark.parametrize("classes", [2, 9, 30, 300])
def test_scores_rounded_to_one_decimal_are_scores(classes: int) -> None:
    rng, defense = np.random.default_rng(1), RoundScores(digits=1)
    for spread in (0.0, 1e-3, 1.0, 30.0):
        exact = log_softmax(spread * rng.normal(size=(200, classes)))
        assert are_log_probabilities(exact)
        assert are_log_probabilities(defense.on_scores(exact, ANY))
