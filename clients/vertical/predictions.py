"""Predictions as the active party asks for them: each row once, scores by whoever computes them."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, StateError
from vflens.member.released_rows import RowLog
from vflens.protocol.acts import Predict
from vflens.protocol.checks import MODEL_VERSION, check_origin, finite, only, part
from vflens.protocol.vertical.embeddings import combined, predicted_embeddings
from vflens.types import Array, Exchange, Phase, Point, Released


class PredictionRequests:
    """The prediction requests of the active ``party``, and the scores that came for them."""

    def __init__(self, party: VerticalParty[LabelledRun]) -> None:
        self._party = party
        self._requests = 0
        self._numbers: dict[bytes, int] = {}  # of the requests that may be repeated, by their rows
        self._scores = RowLog()

    def resume(self) -> None:
        """Take up the scores that came before a restart; new requests are numbered on, repeated ones keep
        their number.
        """
        gate = self._party.gate
        self._numbers = {r.rows.tobytes(): r.exchange.step for r in gate.logged()}
        self._requests = gate.next_request()
        for exchange, messages in groupby(self._arrived(), key=lambda released: released.exchange):
            self._take_again(exchange, list(messages))

    def _arrived(self) -> Iterator[Released]:
        """The recorded messages that scores come from, those of one request together."""
        federation = self._party.run.federation
        point = Point.EMBEDDING if federation.direct else federation.predicted[0]
        return self._party.transcript.select(point, phases={Phase.PREDICT})

    def _take_again(self, exchange: Exchange, messages: Sequence[Released]) -> None:
        federation, rows = self._party.run.federation, messages[0].rows
        if not federation.direct:
            self._scores.add(rows, self._scores_in(messages[0]), exchange)
        elif len(messages) == len(federation.passive) and self._party.gate.has(Point.SCORES, exchange):
            self._scores.add(rows, self._log_scores(combined(messages, federation), rows, exchange), exchange)

    def ask(self, rows: Array) -> Array:
        """The released scores (n, k) of prediction ``rows`` int32 (n,), recorded on arrival.

        A request that failed keeps its number when it is repeated: parties that answered it do so again.
        """
        party = self._party
        party.check_open()
        with party.lock:
            party.settle()
            rows = party.run.federation.checked_rows(rows, Phase.PREDICT)
            exchange = Exchange(party.config.run, Phase.PREDICT, MODEL_VERSION, self._number(rows))
        try:
            found = self._asked(exchange, rows)
        except StateError:  # after a restart another party may know the number from other rows
            self._numbers.pop(rows.tobytes(), None)
            raise
        self._numbers.pop(rows.tobytes(), None)
        return found

    def _number(self, rows: Array) -> int:
        """That of the same request before; where all ``rows`` were answered nothing is released, so that the
        next number stays free.
        """
        if rows.tobytes() not in self._numbers and self._scores.has(rows).all():
            return self._requests
        number = self._numbers.setdefault(rows.tobytes(), self._requests)
        self._requests = max(self._requests, number + 1)
        return number

    def _asked(self, exchange: Exchange, rows: Array) -> Array:
        """The released scores of ``rows``, by whoever computes them."""
        party = self._party
        if party.run.federation.direct:
            return self._scored_here(exchange, rows)
        with party.lock:
            fresh = rows[~self._scores.has(rows)]  # of the others a second answer could be another one
        if len(fresh):
            self._fetch(exchange, fresh)
        with party.lock:
            if party.run.federation.scored_by_coordinator:
                return self._scores.values(rows)
            return party.gate.release_rows(Point.SCORES, exchange, rows, self._scores.values).tensor("scores")

    def _fetch(self, exchange: Exchange, rows: Array) -> None:
        """Ask the coordinator for ``rows``, and take its answer."""
        party = self._party
        with party.lock:
            own = self._own(exchange, rows)
        link = party.links[party.leader]
        released = party.patiently(lambda: link.call(Predict(own)))  # another one may be prepared meanwhile
        with party.lock:
            self._take(released, exchange, rows)

    def _own(self, exchange: Exchange, rows: Array) -> Released:
        """What this party sends of ``rows`` to the coordinator."""
        party, run = self._party, self._party.run
        return party.gate.release_rows(
            Point.EMBEDDING,
            exchange,
            rows,
            lambda fresh: run.model.forward(party.inputs_of(fresh, exchange), exchange),
        )

    def _take(self, released: Released, exchange: Exchange, rows: Array) -> None:
        """Record the coordinator's answer, and keep its scores or those that the own part makes of it."""
        log_c = self._checked_scores(released, exchange, rows)
        known = self._scores.has(rows)
        if known.any():  # another request was faster
            self._check_same(log_c[known], rows[known])
        fresh = ~known
        if fresh.any():
            self._party.transcript.record(part(released, rows[fresh]))
            self._scores.add(rows[fresh], log_c[fresh], exchange)

    def _check_same(self, log_c: Array, rows: Array) -> None:
        """Refuse other scores of ``rows`` than those that came before; of embeddings the first stay."""
        differs = (log_c != self._scores.values(rows)).any(axis=1)
        if self._party.run.federation.scored_by_coordinator and differs.any():
            raise ProtocolError(
                f"{self._party.leader!r} answered row {rows[differs][0]} again with other scores: each row "
                "has one answer"
            )

    def _scored_here(self, exchange: Exchange, rows: Array) -> Array:
        """Scores of ``rows``; the embeddings of the fresh ones come straight from the passive parties."""
        party, federation = self._party, self._party.run.federation
        with party.lock:
            fresh = party.gate.unreleased(Point.SCORES, exchange, rows)
        asked = party.links.to(federation.passive) if len(fresh) else ()
        embeddings = party.patiently(  # not under the lock
            lambda: predicted_embeddings(federation, asked, exchange, fresh)
        )

        def compute(own: Array) -> Array:  # all fresh rows, unless another request was faster
            received = [part(embedding, own) for embedding in embeddings]
            log_c = self._log_scores(combined(received, federation), own, exchange)
            for embedding in received:
                party.transcript.record(embedding)
            self._scores.add(own, log_c, exchange)
            return log_c

        with party.lock:
            return party.gate.release_rows(Point.SCORES, exchange, rows, compute).tensor("scores")

    def _checked_scores(self, released: Released, exchange: Exchange, rows: Array) -> Array:
        """The scores (n, k) that the coordinator released, or those that this part gives its embeddings.

        Raises:
            ProtocolError: it answered another request, or with other numbers than such scores.
        """
        federation = self._party.run.federation
        point, width = federation.predicted
        check_origin(released, self._party.leader, point)
        if released.exchange != exchange or released.rows.tobytes() != rows.tobytes():
            raise ProtocolError(
                f"{self._party.leader!r} answered prediction request {exchange.step} with the rows or the "
                "exchange of another one: its own are due"
            )
        if federation.scored_by_coordinator:
            scores = only(released, "scores", (len(rows), width), np.dtype(np.float64))
            self._refuse_others(scores, f"scores of {self._party.leader!r}", exchange)
        else:
            finite(released, "embedding", (len(rows), width), federation.dtype)
        return self._scores_in(released)

    def _scores_in(self, released: Released) -> Array:
        """The scores (n, k) in the coordinator's answer, or those that this part gives its embeddings."""
        point, _ = self._party.run.federation.predicted
        values = released.tensor(str(point))
        if self._party.run.federation.scored_by_coordinator:
            return values
        return self._log_scores(values, released.rows, released.exchange)

    def _log_scores(self, embeddings: Array, rows: Array, exchange: Exchange) -> Array:
        """Scores of this part from the combined ``embeddings`` of ``rows``.

        Raises:
            ProtocolError: embeddings, or what was learned from some, were so large that there are none.
        """
        party = self._party
        scores = party.run.model.log_scores(embeddings, party.inputs_of(rows, exchange), exchange)
        self._refuse_others(scores, "scores from the embeddings of other parties", exchange)
        return scores

    def _refuse_others(self, scores: Array, what: str, exchange: Exchange) -> None:
        """Refuse ``scores`` that no model of the run gives."""
        if not (model := self._party.run.federation.model).may_be_scores(scores):
            raise ProtocolError(
                f"{what} in prediction request {exchange.step} are none of {model.title}: look at its "
                "defences and the learning rate"
            )

    def received(self, rows: Array) -> Array:
        """Log-probabilities (n, k) of ``rows`` asked before, after this party's own defences."""
        with self._party.lock:
            return self._read(self._scores.values(rows), rows)

    def answered(self, rows: Array) -> Array:
        """Log-probabilities (n, k) of ``rows`` as an operator of this party gets them: released, then its own
        defences.
        """
        log_c = self.ask(rows)
        with self._party.lock:
            return self._read(log_c, rows)

    def _read(self, log_c: Array, rows: Array) -> Array:
        party = self._party
        exchange = Exchange(party.config.run, Phase.PREDICT, MODEL_VERSION, self._requests)
        read: Array = party.chain.fold("on_outputs", log_c, exchange, rows)
        return read
