"""What both data parties share: a table, a part of the model, a gate, a transcript, a recovery log."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from vflens.config import ActiveConfig, PassiveConfig
from vflens.config.compatibility import check_device
from vflens.errors import UnavailableError
from vflens.member.member import Member
from vflens.member.stage import Stage
from vflens.member.standing import check_coordinator
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Describe,
    Disclose,
    Done,
    Finished,
    Receipt,
    Rejoin,
    Stop,
    Submission,
)
from vflens.protocol.checks import check_exchange, check_version
from vflens.protocol.link import Handlers, Link
from vflens.protocol.standing import Standing
from vflens.score.service import ScoringService, disabled
from vflens.tables.files import read_party_table
from vflens.types import Array, PartyInfo, Phase, Point, Released, Role
from vflens.wire.allocator import give_back

if TYPE_CHECKING:
    pass


class DataParty(Member):
    """A member with rows, which a coordinator leads.

    Args:
        config: its configuration.
        links: to its peers by name; none for a party that only scores.
        learns_from: what it receives in training.
        in_process: whether all parties run in one process.

    Raises:
        DataError: its table cannot be used.
        StorageError: its folder cannot be written.
        PluginError, ConfigError: a defence that is unknown or wrongly set, or a GPU that is absent.
    """

    config: PassiveConfig | ActiveConfig

    def __init__(
        self,
        config: PassiveConfig | ActiveConfig,
        links: Mapping[str, Link],
        *,
        learns_from: Point,
        in_process: bool,
    ) -> None:
        self.table = read_party_table(config.data)
        give_back()
        check_device(config)
        super().__init__(config, links, learns_from=learns_from, asked_for_rows=True, in_process=in_process)
        self.coordinator = config.peers_of(Role.COORDINATOR)[0].name
        self.asked = threading.Event()  # the coordinator came
        self.begun = threading.Event()
        self.failure = ""

    def handlers(self) -> Handlers:
        """See :meth:`vflens.protocol.link.Party.handlers`."""
        return {
            Describe: self.describe,
            Rejoin: self.rejoin,
            Disclose: self.disclose,
            Deliver: self.deliver,
            Begin: self.begin,
            Submission: self.score,
            Stop: self.stop,
        }

    def describe(self, act: Describe) -> PartyInfo:
        """Name, role and public columns."""
        self.check_run(act.run)
        self.asked.set()
        return PartyInfo(self.name, self.role, self.table.columns, len(self.table.class_names))

    def rejoin(self, act: Rejoin) -> Standing:
        """Where this party stands, for a coordinator that was restarted, or after this party was."""
        self.check_run(act.run)
        self.asked.set()
        self.fence.admit(self.coordinator, act.standing.incarnation)
        own, federation = self.standing(), self.federation
        direct = federation is not None and federation.direct
        check_coordinator(self.coordinator, own, act.standing, direct=direct)
        return own

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """Grants of this party to ``act.to``; empty unless its kind has grants."""
        self.check_run(act.run)
        return ()

    def deliver(self, act: Deliver) -> Done:
        """Record a disclosure to this party."""
        check_exchange(act.released.exchange, self.config.run, Phase.DISCLOSE)
        self.check_disclosed(act.released)
        with self.lock:
            self.settle()  # the last step is recorded before later messages
            self.transcript.record(act.released)
        return Done()

    def begin(self, act: Begin) -> Done:
        """Training and disclosures are over: open predictions."""
        self.check_run(act.run)
        check_version(act.version)
        with self.lock:
            self.settle()
            self.training_over()
            self.advance(Stage.OPEN)
        self.begun.set()
        return Done()

    def report_finished(self) -> None:
        """Report to the coordinator that this party has attacked; the active one has predicted too."""
        self.advance(Stage.FINISHED)
        finished = Finished(self.config.run, self.name, self.heads())
        try:
            self.patiently(lambda: self.links[self.coordinator].call(finished))
        except UnavailableError:
            if not self.stopped.is_set():  # else the coordinator knows it, and has ended the run meanwhile
                raise

    def training_over(self) -> None:
        """Called with the trained model, before predictions begin."""

    @abstractmethod
    def check_disclosed(self, released: Released) -> None:
        """Refuse a disclosure that no party makes to this one: attacks would read its record.

        Raises:
            ProtocolError: of another sender or kind, or malformed.
        """

    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score an adversary's estimates; see :class:`vflens.score.service.ScoringService`."""
        self.check_run(act.run)
        if not self.config.scoring.enabled:
            raise disabled()
        return self.scoring.score(act, self.scored_rows(act.scored_set, act.sender), ended=ended)

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
        """The training rows int32 (m,) whose truth the configuration gives to the party ``to``."""

    def interrupt(self) -> None:
        """The process ends: take no further step of a training that this party drives."""
        self.stopped.set()

    def stop(self, act: Stop) -> Done:
        """The run is over: let the process end."""
        self.check_run(act.run)
        self.failure = act.failure
        self.asked.set()
        try:
            self.keep_heads(act.heads)
            if not act.failure and self.reached.stage is Stage.FINISHED:
                self.reached.ended = True
                self.reached.save()
        finally:
            self.stopped.set()
        return Done()

    def resume(self) -> None:
        """See :meth:`vflens.member.member.Member.resume`."""
        super().resume()
        if self.reached.is_open:
            self.begun.set()
        if self.reached.ended:
            self.asked.set()
            self.stopped.set()
