"""A data party whose truth others may attack: what it grants them, and how it scores their estimates."""

from abc import abstractmethod
from typing import Any

from vflens.clients.data_party import DataParty
from vflens.config import ActiveConfig, PassiveConfig
from vflens.errors import ProtocolError
from vflens.protocol.acts import Deliver, Disclose, Done, Receipt, Submission, together
from vflens.protocol.link import Handlers
from vflens.score.service import MAX_NAME, ScoringService, disabled
from vflens.types import Array, Released


class Target(DataParty):
    """A data party that discloses what its configuration grants, and compares submissions with its truth."""

    config: PassiveConfig | ActiveConfig

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            Disclose: self.disclose,
            Deliver: self.deliver,
            Submission: self.score,
        }

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """Grants of this party to ``act.to``; empty unless its kind has grants."""
        self.check_run(act.run)
        return ()

    def deliver(self, act: Deliver) -> Done:
        """Record a disclosure to this party."""
        self.check_disclosed(act.released)
        with self.lock:
            self.settle()  # the last step is recorded before later messages
            self.transcript.record(act.released)
        return Done()

    @abstractmethod
    def check_disclosed(self, released: Released) -> None:
        """Refuse a disclosure that no party makes to this one: attacks would read its record.

        Raises:
            ProtocolError: of another sender or kind, or malformed.
        """

    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score an adversary's estimates; see :class:`vflens.score.service.ScoringService`.

        Raises:
            ProtocolError: it names what only a client scores.
        """
        self.check_run(act.run)
        if not self.config.scoring.enabled:
            raise disabled()
        # Else the same rows come again under each name, and figures are of rounds that never were.
        if act.step is not None or (act.estimates and not ended):
            raise ProtocolError(
                f"submission of {act.sender!r} with estimates {act.estimates[:MAX_NAME]!r} and round "
                f"{act.step}: only a client scores by them, {self.name!r} takes neither"
            )
        return self.scoring.score(act, self.scored_rows(act.scored_set, act.sender), ended=ended)

    def scores_for(self, predicting: int) -> dict[str, Any]:
        """What every scoring service of this party has, of ``predicting`` rows; see
        :class:`vflens.score.service.ScoringService`.
        """
        return {
            "party": self.name,
            "predicting": predicting,
            "lab": self.config.lab,
            "metrics": self.metrics,
            "log": self.log,
            "folder": self.folder,
        }

    @property
    @abstractmethod
    def scoring(self) -> ScoringService:
        """Compares submissions with the truth.

        Raises:
            StateError: the run was not prepared yet.
        """

    @abstractmethod
    def scored_rows(self, scored_set: str, sender: str) -> Array:
        """The rows on which ``sender`` is scored, in order; without the rows granted to it.

        Raises:
            StateError: the run was not prepared yet; ProtocolError: no such ``scored_set``.
        """

    @abstractmethod
    def granted_rows(self, to: str) -> Array:
        """The training rows int32 (m,) whose truth the configuration gives to the party ``to``, or to one of
        those that collude as ``to``.
        """

    def granted_count(self, to: str) -> int:
        """The number of :meth:`granted_rows`: those of one grant are among those of a larger one."""
        return max((d.rows for d in self.config.disclose if d.to in together(to)), default=0)
