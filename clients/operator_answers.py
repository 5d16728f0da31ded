"""What an active party's answers betray to its operator: which candidates are people who trained.

Candidates are prediction rows, half of them of people who come back (:mod:`vflens.clients.returning`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vflens.clients.candidates import Candidates, drawn_candidates
from vflens.clients.returning import trained_before
from vflens.errors import KnowledgeError
from vflens.protocol.acts import Receipt, Submission
from vflens.protocol.checks import MODEL_VERSION
from vflens.randomness import stream
from vflens.score.membership import MembershipScoring
from vflens.storage.files import load_arrays
from vflens.storage.journal import Messages
from vflens.types import Array, Exchange, Phase, Point, Released, sealed

if TYPE_CHECKING:
    from vflens.clients.vertical.active import ActiveParty


class OperatorAnswers:
    """Those of the active ``party`` on which attacks on membership are scored."""

    def __init__(self, party: ActiveParty) -> None:
        self._party = party

    def told(self) -> Messages:
        """The scores and the labels of the candidates; their rows are places 0, 1, …

        Raises:
            KnowledgeError: no candidates are granted.
            ConfigError: too few people come back.
        """
        rows = self._candidates().rows
        places = sealed(np.arange(len(rows), dtype=np.int32))

        def message(phase: Phase, point: Point, name: str, values: Array) -> Released:
            exchange = Exchange(self._party.config.run, phase, MODEL_VERSION, 0)
            return Released(self._party.name, exchange, point, places, tensors={name: sealed(values)})

        scores, labels = self._party.predictions.received(rows), self._party.run.labels[rows]
        return Messages(
            [
                message(Phase.PREDICT, Point.SCORES, "scores", scores),
                message(Phase.DISCLOSE, Point.AUXILIARY, "labels", labels),
            ]
        )

    def score(self, act: Submission) -> Receipt:
        """Score a guess of membership of the candidates; see
        :class:`vflens.score.service.ScoringService`.
        """
        members = self._candidates().members
        service = MembershipScoring(members=members, **self._party.scores_for(len(members)))
        return service.score(act, np.arange(len(members), dtype=np.int32), ended=True)

    def _candidates(self) -> Candidates:
        party, run = self._party, self._party.run
        count = max((d.rows for d in party.config.disclose if d.what == "candidates"), default=0)
        if not count:
            raise KnowledgeError(
                f"{party.name!r} granted its operator no candidates: let it disclose what = 'candidates', or "
                "leave the attack out"
            )
        order, predict = load_arrays(party.folder / "order.npz")["order"], run.federation.predict
        back = trained_before(run.prediction_ids, party.table.ids[order[run.federation.train]])
        return drawn_candidates(
            count,
            stream(party.secret, "returning rows").permutation(predict[back]),
            predict[~back],
            party=party.name,
            secret=party.secret,
            called="returning",
        )
