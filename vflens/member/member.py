"""A member of a federation: the parts of every party, for all roles and divisions of rows.

A member has these states, in this order. Those from training to finished are on disk (``state.json``).

=========  =================================  ==========================================================
state      begins with                        what is answered
=========  =================================  ==========================================================
new        ``__init__``                       what the party is; its part in the alignment
training   ``take_up``, of a new run or of    training steps
           the one that its folder holds
           (``resume``)
disclosed  the first disclosure asked for     disclosures; no step any more: the model stays as it is
open       the coordinator's ``Begin``        predictions and submissions
finished   its attacks are over; at the       the same
           coordinator: those of all
closed     ``close``                          nothing
=========  =================================  ==========================================================

These calls do not change what is answered:

===========  ==============================  ============================================================
call         allowed                         does
===========  ==============================  ============================================================
``settle``   always, any number of times     what was put off until a reply had left (``defer``)
``flush``    until ``close``, repeatedly     ``settle``; writes the figures so far; raises what a log
                                             could not write
``finish``   in *open*, at the coordinator   notes that a data party has attacked; with the last of them
                                             the run is complete
``stop``     always                          the run is over, complete or not: at a data party the process
                                             may end; the coordinator tells all of them
``close``    once, in any state, last        ``settle``; closes the logs; writes the last figures
===========  ==============================  ============================================================
"""

import platform
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import TypeVar

from vflens.config import PartyConfig
from vflens.config.compatibility import build_defenses
from vflens.errors import ProtocolError, StateError
from vflens.failpoints import fail_point
from vflens.member.gate import ReleaseGate
from vflens.member.patience import patiently
from vflens.member.recovery import RecoveryLog, as_storage_error
from vflens.member.signer import Signer, fitting, nonce_of, signed_heads
from vflens.member.stage import Reached, Stage
from vflens.member.start_nonce import start_nonce
from vflens.member.step_log import StepLog
from vflens.member.suspicions import suspicions
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import GATE_HOOKS
from vflens.protocol.acts import ANSWERS
from vflens.protocol.agreement import Agreement
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.link import Link, Links, Party
from vflens.protocol.standing import Standing
from vflens.randomness import secret_from_seed
from vflens.storage import durable, journal
from vflens.storage.log import party_log
from vflens.storage.metrics import Metrics
from vflens.storage.sent_heads import SentHeads, received_in, write_received
from vflens.storage.transcript import Transcript
from vflens.types import Array, Document, Owner, Point, Released

T = TypeVar("T")


class Member(Party):
    """A party with its links, secret, defences, gate, logs and figures; it writes to ``config.out`` only.

    Args:
        config: its configuration.
        links: to its peers, by name; none for a party that works alone, on its own folder.
        learns_from: what it receives in training, and logs for a restart.
        asked_for_rows: whether another party draws the rows of its training steps; it then keeps them.
        parameters: those that others disclosed to it, for defences that need them.
        common: a secret that the holders of the same rows share, for defences that draw together.
        in_process: whether all parties run in one process, for reports.

    Raises:
        StorageError: its folder cannot be written.
        PluginError, ConfigError: a defence that is unknown or wrongly set.
    """

    def __init__(
        self,
        config: PartyConfig,
        links: Mapping[str, Link],
        *,
        learns_from: Point,
        asked_for_rows: bool,
        parameters: Callable[[], Mapping[str, Array]] | None = None,
        common: bytes = b"",
        in_process: bool,
    ) -> None:
        self.config, self.links, self.in_process = config, Links(links), in_process
        self.name, self.role, self.folder = config.party, config.role, config.out
        self.access = config.access
        self.secret = secret_from_seed(config.seed)
        self.owner = Owner(self.name, role=self.role)
        defenses = build_defenses(config)
        durable.keep(self.folder, machine=config.limits.durable == "machine")
        # The first write: a folder that cannot be written is refused here.
        self.transcript = Transcript(self.folder / "transcript", config.transcript.every, party=self.name)
        self.reached = Reached(self.folder, lambda: {"transcript": self.transcript.head, **self.gate.heads})
        recovery, every = self.folder / "recovery", config.limits.checkpoint_steps
        self.recovery = RecoveryLog.beside(self.transcript, learns_from, recovery, every, self.reached.vouch)
        self.log = party_log(self.folder / "events.jsonl", self.name)
        self.metrics = Metrics(self.folder / "metrics.parquet")
        drawn = (self.secret, start_nonce(self.folder, lab=config.lab), parameters)
        suspicion = suspicions(self.name, self.metrics, self.log)
        self.chain = DefenseChain(lambda: self.owner, defenses, *drawn, common=common, report=suspicion)
        steps = StepLog(recovery / "steps.bin") if asked_for_rows else None
        self.gate = ReleaseGate(self.name, self.chain, self.folder / "released", steps)
        self._gives, self.predicts = ANSWERS[learns_from], Point.EMBEDDING  # in training, in prediction
        self.lock = threading.RLock()
        self.stopped = threading.Event()  # the run is over
        self.signer: Signer | None = None  # where it has a certificate
        self._deferred: Callable[[], None] | None = None
        self._received: dict[str, SentHeads] = {}

    @property
    @abstractmethod
    def federation(self) -> Agreement | None:
        """The run's members and rows, None while the member is new."""

    @property
    def clipped(self) -> int:
        """How many of the party's own values lay outside their bounds."""
        return 0

    def own_file(self) -> Document:
        """The party's own file and what was dropped of its rows, for ``federation.json``; {} without one."""
        return {}

    @abstractmethod
    def take_up(self) -> None:
        """Continue the run in the folder, up to its untrained model.

        Raises:
            StorageError: the folder holds no whole run.
        """

    @abstractmethod
    def load(self, state: Mapping[str, Array]) -> None:
        """Restore a checkpoint.

        Raises:
            ProtocolError: it lacks an entry, or has a wrong one.
        """

    def step_messages(self, step: int) -> int:
        """How many messages this party learns from in training ``step``."""
        return 1

    @abstractmethod
    def check_logged(self, released: Released) -> None:
        """Refuse a logged message that it cannot learn from.

        Raises:
            ProtocolError: of another sender, of other rows, or of other numbers than training has.
        """

    @abstractmethod
    def relearn(self, logged: Sequence[Released]) -> None:
        """Learn again from one training step's logged messages."""

    def resume(self) -> None:
        """Rebuild the run that the folder holds: members, state, last checkpoint, then the log step by step.

        Raises:
            StorageError: the folder holds no prepared run, one of another table, a changed one, or a damaged
                ``heads.json``.
        """
        self.take_up()
        self._received = received_in(self.folder)
        self.reached.restore()
        self.chain.restore(self.reached.acted)
        with as_storage_error(self.folder):
            state = self.recovery.saved(self.reached.checkpoints)
            if state:
                self.load(state)
        for logged in self.recovery.missed(self.step_messages):
            with as_storage_error(self.folder):
                for released in logged:
                    self.check_logged(released)
                self.relearn(logged)
            for released in logged:  # with a sampled transcript the recovery log is written first
                self.transcript.record(released)
        for point in self._released() & GATE_HOOKS.keys():
            self.chain.restore_hook(GATE_HOOKS[point])

    def _released(self) -> set[Point]:
        """What left this party before a restart: the defences of it acted, and need not act again."""
        trained = {self._gives} if self.recovery.learned >= 0 else set()
        return trained | {released.point for released in self.gate.logged()}

    def standing(self) -> Standing:
        """Where this party stands, for one that rejoins."""
        with self.lock:
            self.settle()
            return Standing(
                version("vflens"),
                self.reached.incarnation,
                self.reached.stage,
                self.recovery.learned,
                released=len(self.gate.released_rows(self.predicts, MODEL_VERSION)),
                federation=b"" if self.federation is None else self.federation.digest,
            )

    def patiently(self, work: Callable[[], T]) -> T:
        """The result of ``work``, repeated while its party is away; see
        :func:`vflens.member.patience.patiently`.
        """
        return patiently(work, self.config.limits.rejoin_seconds, self.stopped)

    def check_run(self, run: str) -> None:
        """Refuse an act of another run.

        Raises:
            ProtocolError: naming both.
        """
        if run != self.config.run:
            raise ProtocolError(
                f"run {run!r} is not this party's: {self.name!r} is configured for run {self.config.run!r}"
            )

    def check_open(self) -> None:
        """Refuse acts after training: a row released now would keep its half-trained values for ever.

        Raises:
            StateError: predictions are not open.
        """
        if not self.reached.is_open:
            raise StateError(
                f"run {self.config.run!r} is still training: predictions begin when the coordinator says so"
            )

    def advance(self, stage: Stage) -> None:
        """Advance to ``stage``, on disk with all that a restart in it needs.

        Raises:
            StorageError: it cannot be written.
        """
        self.keep_metrics()
        self.reached.advance(stage)

    def keep_metrics(self) -> None:
        """Write the figures so far, and which defences acted: a restart goes on from here.

        Raises:
            StorageError: they cannot be written.
        """
        self.metrics.save()
        self.reached.acted = self.chain.acted
        self.reached.save()

    def defer(self, work: Callable[[], None]) -> None:
        """Defer ``work`` until after the reply; earlier deferred work is done first."""
        self.catch_up()
        self._deferred = work

    def catch_up(self) -> None:
        """Do deferred work, under the lock."""
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            fail_point("settling")
            deferred()
            fail_point("settled")

    def heads(self) -> SentHeads:
        """The heads of its logs and the digest of its federation, signed where it has a certificate.

        Raises:
            StorageError: a link cannot be written.
        """
        self.settle()
        federation = b"" if self.federation is None else self.federation.digest
        sent = SentHeads(self.reached.heads(), federation, nonce=nonce_of(self.federation))
        return sent if self.signer is None else signed_heads(self.signer, self.config.run, sent)

    def keep_heads(self, heads: Mapping[str, SentHeads]) -> None:
        """Keep the ``heads`` of peers, by party; those of others say nothing here, nor do those that their
        party did not sign where this one has a certificate.

        Raises:
            StorageError: they cannot be written, or earlier ones cannot be read.
        """
        members = self.federation.parties if self.federation else ()
        others = {*(p.name for p in members), *(p.name for p in self.config.peers)} - {self.name}
        kept = {party: sent for party, sent in heads.items() if party in others}
        if self.signer is not None:
            kept = fitting(self.signer, self.config.run, nonce_of(self.federation), kept, self.log)
        with self.lock:
            self._received = (self._received or received_in(self.folder)) | kept
            write_received(self.folder, self._received)

    def settle(self) -> None:
        with self.lock:
            self.catch_up()
            self.transcript.link()
            self.gate.link()

    def flush(self) -> None:
        """Do deferred work and write the figures so far.

        Raises:
            StorageError: they cannot be written, or a log failed earlier: the error may have reached only
                the coordinator.
        """
        self.settle()
        for log in (self.transcript, self.recovery, self.gate):
            log.check()
        self.metrics.save()

    def close(self) -> None:
        """Do deferred work, close the logs, write the last figures."""
        try:
            self.settle()
        finally:
            for log in (self.transcript, self.recovery, self.gate):
                log.close()
        self.record_totals()
        self.metrics.save()
        self.save_summary()

    def record_totals(self) -> None:
        """Add the figures that are known at the end only."""

    def save_summary(self) -> None:
        """Write ``federation.json``, for reports and attacks on recorded transcripts; nothing while new."""
        if self.federation is None:
            return
        who = {"party": self.name, "role": self.role, "in_process": self.in_process}
        own = {"clipped": self.clipped, **self.own_file()}
        digest = journal.digest(self.folder / "transcript")
        self.federation.save(self.folder, **who, **own, versions=_versions(), transcript_digest=digest)


@cache  # read anew they would take 2 ms of each party's end
def _versions() -> dict[str, str]:
    """The versions of Python and of the packages that a run's results may depend on."""
    packages = {name: version(name) for name in ("vflens", "numpy", "grpcio", "protobuf")}
    return {**packages, "python": platform.python_version()}
