"""What the coordinator makes of the parties' embeddings of prediction rows: one release per row."""

from collections.abc import Callable, Sequence

import numpy as np

from vflens.coordinator.vertical.score_release import ScoreRelease
from vflens.member.member import Member
from vflens.protocol.acts import Predict
from vflens.protocol.checks import check_exchange, check_origin, finite, part
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.embeddings import combined, predicted_embeddings
from vflens.types import Array, Exchange, Phase, Point, Released


class PredictionAnswers:
    """Answers the active party over the ``member``'s links and gate."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._scores = ScoreRelease(member.gate, member.metrics)
        self.largest_logit = 0.0  # absolute, of all rows of which it made scores

    def release(self, act: Predict, federation: VerticalAgreement) -> Released:
        """Release the requested rows to the active party, each once: scores, or in a split network
        embeddings.

        Raises:
            ProtocolError: other rows or numbers than predictions have.
            StateError: the request's number was used before with other rows.
        """
        own, member = act.embedding, self._member
        _check(own, member.config.run, federation)
        point, _ = federation.predicted
        with member.lock:
            fresh = member.gate.unreleased(point, own.exchange, own.rows)
        asked = member.links.to(federation.passive) if len(fresh) else ()
        # Not under the lock: meanwhile another request may be released.
        embeddings = predicted_embeddings(federation, asked, own.exchange, fresh)

        def received(mine: Released) -> Array:
            return self._combined(mine, embeddings, federation)

        with member.lock:
            if federation.scored_by_coordinator:
                return self._scores.release(own, received, self._scored(federation))
            return member.gate.release_rows(
                Point.EMBEDDING, own.exchange, own.rows, lambda fresh: received(part(own, fresh))
            )

    def resume(self, federation: VerticalAgreement) -> None:
        """Measure again what was released before a restart."""
        if not federation.scored_by_coordinator:
            return
        member, received = self._member, dict[Exchange, dict[str, Released]]()
        for message in member.transcript.select(Point.EMBEDDING, phases={Phase.PREDICT}):
            received.setdefault(message.exchange, {})[message.sender] = message
        for released in member.gate.logged():
            of = received[released.exchange]
            embeddings = combined([of[p.name] for p in federation.passive], federation)
            exact = self._scored(federation)(embeddings + of[federation.active.name].tensor("embedding"))
            self._scores.compare(exact, released.tensor("scores"))

    def _scored(self, federation: VerticalAgreement) -> Callable[[Array], Array]:
        """What makes scores of logits (n, k), and notes the largest."""

        def scored(logits: Array) -> Array:
            self.largest_logit = max(self.largest_logit, float(np.abs(logits).max(initial=0)))
            return federation.model.scores(logits)

        return scored

    def record_metrics(self, federation: VerticalAgreement) -> None:
        """Add what the released scores cost in accuracy, where the coordinator computes them."""
        if federation.scored_by_coordinator:
            self._scores.record_metrics(federation.model.label_kind)

    def _combined(
        self, own: Released, embeddings: Sequence[Released], federation: VerticalAgreement
    ) -> Array:
        """The combined ``embeddings`` of the rows of ``own``: all fresh ones, unless another request was
        faster.

        Each row is recorded once: repeated or refused requests must not grow the transcript.
        """
        embeddings = [part(embedding, own.rows) for embedding in embeddings]
        for received in (own, *embeddings):
            self._member.transcript.record(received)
        return combined(embeddings, federation)


def _check(own: Released, run: str, federation: VerticalAgreement) -> None:
    """Refuse what is no request of the active party for prediction rows."""
    check_exchange(own.exchange, run, Phase.PREDICT)
    check_origin(own, federation.active.name, Point.EMBEDDING)
    # An active party that computes the scores keeps its embedding and sends rows only.
    shape = (len(own.rows), federation.sent_by_active)
    finite(own, "embedding", shape, most=federation.model.largest_part)
    federation.checked_rows(own.rows, Phase.PREDICT)
