"""What all data parties share, whatever the division of rows: a table, and a leader that they answer."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.training import PartyTraining
from vflens.config import LedConfig
from vflens.config.compatibility import check_device, check_tolerance
from vflens.errors import StateError, UnavailableError
from vflens.member.member import Member
from vflens.member.signer import key_statement
from vflens.member.stage import Stage
from vflens.member.standing import check_leader
from vflens.models.softmax_regression import as_targets
from vflens.protocol.acts import (
    Begin,
    Describe,
    Done,
    Finished,
    Receipt,
    Rejoin,
    Step,
    StepReply,
    Stop,
    Submission,
)
from vflens.protocol.agreement import Agreement
from vflens.protocol.checks import check_version
from vflens.protocol.link import Handlers, Link
from vflens.protocol.standing import Standing
from vflens.tables.features import moved
from vflens.tables.files import digest_of, read_party_table
from vflens.tables.order import save_order
from vflens.tables.scaling import Scaler
from vflens.types import Array, Document, Exchange, Owner, PartyInfo, Phase, Point, Released
from vflens.wire.process import give_back


class OwnRows(NamedTuple):
    """``truth`` (N, d) scaled to [0, 1], of which ``clipped`` values lay outside their bounds; ``inputs`` the
    same after defences, the same object without any.
    """

    truth: ScaledColumns
    inputs: ScaledColumns
    clipped: int


class DataParty(Member):
    """A member with rows, which another member leads: a coordinator or a server.

    Args:
        config: its configuration.
        links: to its peers by name; none for a party that only scores.
        learns_from: what it receives in training.
        asked_for_rows: see :class:`vflens.member.member.Member`.
        common: see there.
        in_process: whether all parties run in one process.

    Raises:
        DataError: its table cannot be used.
        StorageError: its folder cannot be written.
        PluginError, ConfigError: a defence that is unknown or wrongly set, a tolerance of an unknown column,
            or a GPU that is absent.
    """

    config: LedConfig

    def __init__(
        self,
        config: LedConfig,
        links: Mapping[str, Link],
        *,
        learns_from: Point,
        asked_for_rows: bool,
        common: bytes = b"",
        in_process: bool,
    ) -> None:
        self._read = digest_of(config.data.file)
        self.table = read_party_table(config.data)
        give_back()
        check_tolerance(config.scoring.tolerance, self.table.names, config.party)
        check_device(config)
        super().__init__(
            config,
            links,
            learns_from=learns_from,
            asked_for_rows=asked_for_rows,
            common=common,
            in_process=in_process,
        )
        self.leader = config.leader.name
        self.asked = threading.Event()  # the leader came
        self.begun = threading.Event()
        self.failure = self.own_refusal = ""

    def own_file(self) -> Document:
        dropped = self.table.dropped
        lost = {} if dropped is None else {"dropped": asdict(dropped)}
        return {"table": self._read, "own_rows": len(self.table.ids), **lost}

    def handlers(self) -> Handlers:
        return {Describe: self.describe, Rejoin: self.rejoin, Begin: self.begin, Stop: self.stop}

    def describe(self, act: Describe) -> PartyInfo:
        """Name, role and public columns."""
        self.check_run(act.run)
        self.asked.set()
        table = self.table
        return PartyInfo(
            self.name, self.role, columns=table.columns, n_classes=table.n_classes, label=table.label
        )

    @property
    @abstractmethod
    def training(self) -> PartyTraining:
        """How it trains, as its run was agreed.

        Raises:
            StateError: the run was not prepared yet.
        """

    def step(self, act: Step) -> StepReply:
        """One training step; see :class:`vflens.protocol.acts.Step`."""
        return self.training.step(act)

    def check_logged(self, released: Released) -> None:
        self.training.check_logged(released)

    def relearn(self, logged: Sequence[Released]) -> None:
        self.training.relearn(logged)

    @abstractmethod
    def state(self) -> dict[str, Array]:
        """All that training changed, as arrays."""

    def kept_state(self) -> dict[str, Array]:
        """:meth:`state` for a checkpoint, after the figures: no later log holds them."""
        self.metrics.save()
        self.reached.acted = self.chain.acted
        return self.state()

    def with_signed_key(self, info: PartyInfo, act: Describe) -> PartyInfo:
        """``info`` with the party's signature under its key of masks, where it has a certificate."""
        if self.signer is None:
            return info
        return replace(info, signature=self.signer.sign(key_statement(act.run, info.mask_key, act.nonce)))

    def check_signed_keys(self, federation: Agreement) -> None:
        """Refuse members whose keys of masks they did not sign: the leader, who relays them, could put its
        own in their place, and take masks off.

        Without an authority, and without a pin of any such member, there is nothing to compare with.

        Raises:
            ProtocolError: names the member.
        """
        others = [p for p in federation.parties if p.mask_key and p.name != self.name]
        if self.signer is None or not others:
            return
        if not self.signer.knows(others[0].role):
            self.log.warning("keys of masks are not verified", reason="no certificate of an owner is trusted")
            return
        for info in others:
            statement = key_statement(federation.run, info.mask_key, federation.nonce)
            self.signer.check(info.name, info.role, statement, info.signature)

    def prepare_once(
        self, federation: Agreement, order: Callable[[], Array], begin: Callable[[Array], None]
    ) -> Done:
        """Begin a run and keep what a restart needs; a second call changes nothing.

        Args:
            federation: the run, as the leader describes it.
            order: checks the run and returns the places of its rows in the file, int32 (N,).
            begin: builds the run of these rows; it may move the table's rows.

        Raises:
            StateError: the party is in this run with other settings or rows.
        """
        with self.lock:
            present = self.federation
            if present is not None and _named(present) != _named(federation):
                raise StateError(
                    f"{self.role} {self.name!r} is in run {federation.run!r} with other settings or rows: "
                    f"resume {self.leader!r} on its folder, or start all parties anew"
                )
            if present is None:
                rows, table = order(), self.table.digest()
                begin(rows)
                self.save_summary()
                save_order(self.folder, rows, table)
                self.reached.save()
        return Done()

    def rejoin(self, act: Rejoin) -> Standing:
        """Where this party stands, for a leader that was restarted, or after this party was."""
        self.check_run(act.run)
        self.asked.set()
        self.fence.admit(self.leader, act.standing.incarnation)
        own = self.standing()
        check_leader(self.leader, own, act.standing, learns=self.leader_learns)
        return own

    @property
    def leader_learns(self) -> bool:
        """Whether the leader learns from training steps too."""
        return True

    def begin(self, act: Begin) -> Done:
        """Training and disclosures are over: open predictions.

        Raises:
            StateError: the run was not prepared yet.
        """
        self.check_run(act.run)
        check_version(act.version)
        with self.lock:
            if self.federation is None:
                raise StateError(f"party {self.name!r} has no run yet: {self.leader!r} prepares it first")
            self.settle()
            self.training_over()
            self.advance(Stage.OPEN)
        self.begun.set()
        if self.reached.stage is Stage.FINISHED:  # the leader was restarted, and may have lost the report
            self._send_finished()
        return Done()

    def report_finished(self) -> None:
        """Report to the leader that this party has done all that it does once training is over."""
        self.advance(Stage.FINISHED)
        try:
            self.patiently(self._send_finished)
        except UnavailableError:
            if not self.stopped.is_set():  # else the leader knows it, and has ended the run meanwhile
                raise

    def _send_finished(self) -> None:
        self.links[self.leader].call(Finished(self.config.run, self.name, self.heads()))

    def take_rows(self, federation: Agreement, order: Array, labels: Array | None) -> OwnRows:
        """The file rows ``order``, scaled and defended; defences may read ``labels`` (N,)."""
        truth, clipped = self._scaled(order, federation.rows_of(self.name, Phase.TRAIN))
        names = tuple(column.name for column in self.table.columns)
        self.owner = Owner(self.name, truth, labels, federation.n_classes, role=self.role, names=names)
        if not self.chain.overrides("on_inputs"):
            return OwnRows(truth, truth, clipped)
        inputs = self.chain.fold("on_inputs", truth[:], *_beginning(federation, order))
        return OwnRows(truth, ScaledColumns(inputs), clipped)

    def _scaled(self, order: Array, train: Array) -> tuple[ScaledColumns, int]:
        """The table's own rows in ``order``, scaled; the table loses its features, even on failure."""
        if len(features := self.table.features) < len(self.table.ids):
            raise StateError(f"party {self.name!r} took up its rows before and failed: start it again")
        self.table = replace(self.table, features=features[:0].copy())
        features = moved(features, order)
        scaler = Scaler.fit(self.table.columns, features, train)
        if features.dtype == np.uint8:
            return ScaledColumns(features), 0
        clipped = scaler.transform_in_place(features)
        return ScaledColumns(features, scaler.high - scaler.low), clipped

    def soft_labels(self, labels: Array, federation: Agreement) -> Array:
        """The soft labels (N, k) that defences of labels draw from ``labels`` (N,), once per run."""
        soft: Array = self.chain.fold(
            "on_labels", as_targets(labels, federation.n_classes), *_beginning(federation, labels)
        )
        if federation.model.label_kind == "number":
            return soft
        # Its noise may depend on a row's label, so defences see the drawn labels.
        self.owner = replace(self.owner, labels=soft.argmax(axis=1))
        return soft

    @abstractmethod
    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score an adversary's estimates of this party's rows; ``ended``: after the run, while no party
        runs.
        """

    def training_over(self) -> None:
        """Called with the trained model, before predictions begin."""

    @abstractmethod
    def complete(self) -> str:
        """Do what this party does once training is over, and report it to the leader; in words what came of
        it, or nothing.
        """

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
        super().resume()
        if self.reached.is_open:
            self.begun.set()
        if self.reached.ended:
            self.asked.set()
            self.stopped.set()


def _named(federation: Agreement) -> tuple[str, bytes]:
    """What tells a run from all others."""
    return federation.nonce, federation.digest


def _beginning(federation: Agreement, rows: Array) -> tuple[Exchange, Array]:
    """The exchange at the start of a run, and the positions of all ``rows``."""
    return Exchange(federation.run, Phase.TRAIN, 0, 0), np.arange(len(rows), dtype=np.int32)
