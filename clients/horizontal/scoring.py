"""A client's scoring services: of columns and of labels, of granted rows and of a round's rows."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from structlog.typing import FilteringBoundLogger

from vflens.clients.candidates import Candidates
from vflens.clients.horizontal.local_run import LocalRun, local_batches
from vflens.config import ClientConfig
from vflens.errors import ProtocolError
from vflens.protocol.acts import BATCHES, SUMS, Receipt, Submission
from vflens.score.batches import BatchColumnScoring, BatchLabelScoring
from vflens.score.columns import ColumnScoring
from vflens.score.labels import LabelScoring
from vflens.score.membership import MembershipScoring, SourceScoring
from vflens.score.scored import Scored
from vflens.score.service import ScoringService
from vflens.storage.journal import Reader
from vflens.storage.metrics import Metrics
from vflens.tables.table import Table
from vflens.types import Array, Phase, Point
from vflens.words import counted

_MOST_MATCHED = 1000  # rows of a round whose assignment takes no longer than a second
_ESTIMATES = ("features", "labels", "membership", "source")


class ScoredClient(Protocol):
    """A :class:`vflens.clients.horizontal.client.Client` as its scoring services take it."""

    name: str
    secret: bytes
    folder: Path
    table: Table
    metrics: Metrics
    log: FilteringBoundLogger

    @property
    def config(self) -> ClientConfig:
        """Its configuration."""


def _check_matched(act: Submission) -> None:
    """Refuse more rows than are matched in a second.

    Raises:
        ProtocolError: there are more.
    """
    if len(act.rows) > _MOST_MATCHED:
        raise ProtocolError(
            f"submission of {counted(len(act.rows), 'row')} of round {act.step}: at most {_MOST_MATCHED} "
            "are matched with the truth, attack rounds of fewer rows"
        )


class ClientScoring:
    """The services of ``client`` in ``run``, which scores the ``attacked`` rows int32 (n,), a round's, or its
    ``candidates``.
    """

    def __init__(self, client: ScoredClient, run: LocalRun, attacked: Array, candidates: Candidates) -> None:
        self._client, self._run = client, run
        places = np.arange(len(candidates.rows), dtype=np.int32)
        self._scored = {"features": attacked, "labels": attacked}
        self._scored |= {"membership": places, "source": places}
        federation, config = run.federation, client.config
        train = federation.rows_of(client.name, Phase.TRAIN)
        service: dict[str, Any] = {
            "party": client.name,
            "predicting": len(federation.rows_of(client.name, Phase.PREDICT)),
            "lab": config.lab,
            "metrics": client.metrics,
            "log": client.log,
            "folder": client.folder,
            "once": Scored(client.folder / "scored.json"),
        }
        columns = service | {"truth": run.truth, "columns": client.table.columns, "training": train}
        columns |= {"pictures": config.scoring.pictures, "tolerance": config.scoring.tolerance}
        names = sorted(party.name for party in federation.parties)
        labels = service | {"labels": run.labels, "n_classes": federation.n_classes, "training": train}
        self._of_rows: dict[str, ScoringService] = {
            "features": ColumnScoring(**columns, pictured="train"),
            "labels": LabelScoring(**labels),
            "membership": MembershipScoring(members=candidates.members, **service),
            "source": SourceScoring(
                members=candidates.members,
                classes=run.labels[candidates.rows],
                clients=names,
                **service,
            ),
        }
        self._of_rounds: dict[str, ScoringService] = {
            "features": BatchColumnScoring(**columns, rows_of=self.rows_of),
            "labels": BatchLabelScoring(**labels, rows_of=self.rows_of),
        }

    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score an adversary's estimates; see :class:`vflens.score.service.ScoringService`.

        Raises:
            ProtocolError: it names other rows than those that are scored, or a round without this client.
        """
        if act.estimates not in _ESTIMATES or act.scored_set not in (Phase.TRAIN, BATCHES, SUMS):
            raise ProtocolError(
                f"submission of {act.estimates!r} of {act.scored_set!r} rows: a client scores "
                "features, labels, membership and source of train rows"
            )
        if act.scored_set == BATCHES:
            return self._score_batches(act, ended=ended)
        if act.scored_set == SUMS:
            return self._score_sums(act, ended=ended)
        if act.step is None:
            return self._of_rows[act.estimates].score(act, self._scored[act.estimates], ended=ended)
        if act.estimates not in self._of_rounds:
            raise ProtocolError(
                f"submission of {act.estimates} of round {act.step}: candidates are of no round"
            )
        places = self._places(act, self.rows_of(act.step))
        if act.estimates == "features":
            _check_matched(act)
        return self._of_rounds[act.estimates].score(act, places, ended=ended)

    def _score_sums(self, act: Submission, *, ended: bool) -> Receipt:
        """Score the rows of all clients of a round: those that come nearest to the rows of this client."""
        federation = self._run.federation
        most = sum(federation.round_rows(party.name) for party in federation.parties)
        own = most if act.step is None else len(self.rows_of(act.step))
        places = np.arange(len(act.rows), dtype=np.int32)
        named = own <= len(places) <= most and np.array_equal(act.rows, places)
        if act.step is None or act.estimates != "features" or not named:
            raise ProtocolError(
                f"submission of {counted(len(places), 'row')} of {act.estimates} in the sum of round "
                f"{act.step}: estimate columns of the rows of all clients, from {own} to {most}"
            )
        _check_matched(act)
        return self._of_rounds[act.estimates].score(act, places, ended=ended)

    def _score_batches(self, act: Submission, *, ended: bool) -> Receipt:
        """Score rows by their places in the batches that SplitFed sent, whose rows the client knows."""
        is_split = self._run.federation.horizontal.is_split
        if act.step is None or act.estimates in ("membership", "source") or not is_split:
            raise ProtocolError(
                f"submission of {act.estimates} of batches of round {act.step}: only SplitFed sends rows in "
                "an order, columns and labels of them are scored"
            )
        rows = self._sent(act.step)
        _, first = np.unique(rows, return_index=True)
        rows = rows[np.sort(first)]
        self._places(act, rows)
        return self._of_rows[act.estimates].score(replace(act, rows=rows), rows, ended=ended)

    def _places(self, act: Submission, rows: Array) -> Array:
        """The places of the ``rows`` of a round, all of which ``act`` must name."""
        places = np.arange(len(rows), dtype=np.int32)
        if not np.array_equal(act.rows, places):
            raise ProtocolError(
                f"submission of {counted(len(act.rows), 'row')} of round {act.step}: {self._client.name!r} "
                f"trained on {len(places)} different ones in it, estimate all of them"
            )
        return places

    def rows_of(self, number: int) -> Array:
        """The different rows int32 (n,) on which this client trained in round ``number``, ascending.

        Raises:
            ProtocolError: it trained in no such round, or its transcript leaves the round out.
        """
        return np.unique(self._sent(number))

    def _sent(self, number: int) -> Array:
        """The rows int32 of the batches of round ``number``, in their order."""
        federation = self._run.federation
        received = Reader(self._client.folder / "transcript").select(Point.PARAMETERS, phases={Phase.TRAIN})
        if not 0 <= number < federation.epochs or all(r.exchange.round != number for r in received):
            raise ProtocolError(
                f"submission of the rows of round {number}: {self._client.name!r} has no record of training "
                "in it"
            )
        train = federation.rows_of(self._client.name, Phase.TRAIN)
        drawn = list(local_batches(federation, train, self._client.secret, number))
        return np.concatenate(drawn)
