"""What both data parties share: a table, a part of the model, a gate, a transcript, a recovery log."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Generic

import numpy as np

from vflens.clients.adversary import Adversary
from vflens.clients.aligned_run import P_co, Prepared, aligned_in_place
from vflens.clients.identification import Identification
from vflens.clients.membership import check_membership, check_order
from vflens.clients.spending import Spending
from vflens.config import ActiveConfig, PassiveConfig
from vflens.config.compatibility import build_attacks, check_device, check_family
from vflens.errors import ProtocolError, StateError
from vflens.member.member import Member
from vflens.member.recovery import check_state
from vflens.member.stage import Stage
from vflens.models.part import Site
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Describe,
    Disclose,
    Done,
    Identify,
    Identities,
    Prepare,
    Receipt,
    Salt,
    Salted,
    Step,
    StepReply,
    Stop,
    Submission,
)
from vflens.protocol.checks import MODEL_VERSION, check_exchange, check_version
from vflens.protocol.federation import Federation
from vflens.protocol.link import Handlers, Link
from vflens.score.service import ScoringService, disabled
from vflens.tables.files import read_party_table
from vflens.tables.order import load_order, save_order
from vflens.tables.scaling import Scaler
from vflens.types import Array, Exchange, Owner, PartyInfo, Phase, Point, Released, Role
from vflens.wire.allocator import give_back

if TYPE_CHECKING:
    from torch.nn import Module


class DataParty(Member, Generic[P_co]):
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
    spending: Spending  # once rows are aligned
    scoring: ScoringService  # once rows are aligned
    labels: Array | None = None  # the true ones, at the active party

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
        attacks = build_attacks(config)
        super().__init__(config, links, learns_from=learns_from, asked_for_rows=True, in_process=in_process)
        self.adversary = Adversary(self, attacks)
        self.coordinator = config.peers_of(Role.COORDINATOR)[0].name
        self.begun, self.stopped = threading.Event(), threading.Event()
        self.failure = ""
        self._prepared: Prepared[P_co] | None = None
        self._identification = Identification(config, self.secret)

    def handlers(self) -> Handlers:
        """See :meth:`vflens.protocol.link.Party.handlers`."""
        return {
            Describe: self.describe,
            Salt: self.salt,
            Identify: self.identify,
            Prepare: self.prepare,
            Step: self.step,
            Disclose: self.disclose,
            Deliver: self.deliver,
            Begin: self.begin,
            Submission: self.score,
            Stop: self.stop,
        }

    def describe(self, act: Describe) -> PartyInfo:
        """Name, role and public columns."""
        self.check_run(act.run)
        return PartyInfo(self.name, self.role, self.table.columns, len(self.table.class_names))

    def salt(self, act: Salt) -> Salted:
        """Its part of the salt; see :class:`vflens.clients.identification.Identification`."""
        self.check_run(act.run)
        return Salted(self._identification.salt(self.table))

    def identify(self, act: Identify) -> Identities:
        """Keyed digests of the row ids; see :class:`vflens.clients.identification.Identification`."""
        self.check_run(act.run)
        with self.lock:
            return self._identification.identities(self.table, act.salts)

    def prepare(self, act: Prepare) -> Done:
        """Scale the aligned rows, defend the inputs, start the model. A second call changes nothing."""
        self.check_run(act.federation.run)
        with self.lock:
            if self._prepared is None:
                give_back()  # what sending the digests took
                check_membership(act.federation, self.config, self.table.columns)
                check_order(act.order, act.federation, len(self.table.ids))
                table = self.table.digest()
                order = self._identification.file_rows(act.order)
                self.begin_run(act.federation, order)
                self.save_summary()
                save_order(self.folder, order, table)
                self.reached.save()
        return Done()

    @abstractmethod
    def step(self, act: Step) -> StepReply:
        """One training step; see :class:`vflens.protocol.acts.Step`."""

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """What this party grants to ``act.to``; nothing, unless its kind has something to grant."""
        self.check_run(act.run)
        return ()

    def deliver(self, act: Deliver) -> Done:
        """Record what was disclosed to this party."""
        check_exchange(act.released.exchange, self.config.run, Phase.DISCLOSE)
        self.check_disclosed(act.released)
        with self.lock:
            self.settle()  # the last step is recorded before what came after it
            self.transcript.record(act.released)
        return Done()

    def begin(self, act: Begin) -> Done:
        """Training and disclosures are over: predictions may be asked for."""
        self.check_run(act.run)
        check_version(act.version)
        with self.lock:
            self.settle()
            self.training_over()
            self.reached.advance(Stage.OPEN)
        self.begun.set()
        return Done()

    def training_over(self) -> None:
        """What a party does with its trained model before predictions begin."""

    @abstractmethod
    def check_disclosed(self, released: Released) -> None:
        """Refuse what nobody discloses to this party: it would be recorded, and read by attacks.

        Raises:
            ProtocolError: of another sender or kind, or malformed.
        """

    def score(self, act: Submission, *, ended: bool = False) -> Receipt:
        """Score an adversary's beliefs; see :class:`vflens.score.service.ScoringService`."""
        self.check_run(act.run)
        if not self.config.scoring.enabled:
            raise disabled()
        # First: the service is there once rows are aligned.
        rows = self._scored_rows(act.scored_set, act.sender)
        return self.scoring.score(act, rows, ended=ended)

    def _scored_rows(self, scored_set: str, sender: str) -> Array:
        """The rows on which ``sender`` is scored, in order; what was granted to it is left out."""
        federation = self.run.federation
        if scored_set == "predict":
            return self.gate.released_rows(Point.EMBEDDING, MODEL_VERSION)
        if scored_set == "train":
            return np.setdiff1d(federation.train, self.granted_rows(sender))
        raise ProtocolError(f"scored_set {scored_set!r} is unknown: choose predict or train")

    @abstractmethod
    def granted_rows(self, to: str) -> Array:
        """The training rows int32 (m,) whose truth the configuration gives to the party ``to``."""

    def stop(self, act: Stop) -> Done:
        """The run is over: let the process end."""
        self.check_run(act.run)
        self.failure = act.failure
        self.stopped.set()
        return Done()

    @property
    def federation(self) -> Federation | None:
        """The run's members and rows, None before :meth:`prepare`."""
        return None if self._prepared is None else self._prepared.federation

    @property
    def clipped(self) -> int:
        """How many of the party's own values lay outside their bounds."""
        return 0 if self._prepared is None else self._prepared.clipped

    @property
    def run(self) -> Prepared[P_co]:
        """Rows, inputs and model of the run.

        Raises:
            StateError: the run was not prepared yet.
        """
        if self._prepared is None:
            raise StateError(
                f"party {self.name!r} has no aligned rows yet: the coordinator prepares the run first"
            )
        return self._prepared

    def begin_run(self, federation: Federation, order: Array) -> None:
        """Build :class:`Prepared` from the party's table; ``order`` int32 (N,) are its file rows."""
        truth, clipped = self._take_up(order, federation.train)
        labels = self.aligned_labels(order)
        self.owner = Owner(self.name, truth, labels, federation.n_classes, role=self.role)
        everything = np.arange(federation.rows, dtype=np.int32)
        inputs = self.chain.fold("on_inputs", truth, Exchange(federation.run, Phase.TRAIN, 0, 0), everything)
        check_family(self.chain.named, self.name, federation.model)
        federation.model.check_device(self.config.device, f" at {self.name!r}")
        model = self.new_part(federation, self._site(federation, inputs.shape[1]))
        self._prepared = Prepared(federation, truth, inputs, clipped, model)
        self.spending = Spending(self.config, self.chain.claims_at, federation)
        self.gate.keep_last(1 + federation.training.staleness)
        self.log.info("prepared", rows=federation.rows, columns=len(self.table.columns), clipped=clipped)

    def _take_up(self, order: Array, train: Array) -> tuple[Array, int]:
        """The table's own rows in ``order``, scaled; the table loses its features, even on failure."""
        if len(features := self.table.features) < len(self.table.ids):
            raise StateError(f"party {self.name!r} took up its rows before and failed: start it again")
        scaler = Scaler.fit(self.table.columns, features, order[train])
        self.table = replace(self.table, features=features[:0])
        return aligned_in_place(features, order, scaler)

    @abstractmethod
    def new_part(self, federation: Federation, site: Site) -> P_co:
        """A new part of the model, which may import torch."""

    def _site(self, federation: Federation, features: int) -> Site:
        return Site(
            party=self.name,
            columns=self.table.columns,
            features=features,
            classes=federation.n_classes,
            training=federation.training,
            secret=self.secret,
            wrap=self.wrapped,
            device=self.config.device,
            received=federation.combined_width,
            holds_bias=federation.passive[0].name == self.name,
        )

    def wrapped(self, module: Module) -> Module:
        """A new torch module after the party's defences of models."""
        exchange = Exchange(self.config.run, Phase.TRAIN, 0, 0)
        wrapped: Module = self.chain.fold("wrap_model", module, exchange, np.zeros(0, np.int32))
        return wrapped

    def aligned_labels(self, order: Array) -> Array | None:
        """The labels in aligned order, for the party that has them."""
        return None

    def parameters(self) -> Mapping[str, Array]:
        """Copies of this party's parameters."""
        return self.run.model.parameters()

    def answered(self, point: Point, exchange: Exchange) -> Released | None:
        """The kept answer if this training exchange is a repetition, None if it is due."""
        check_exchange(exchange, self.config.run, Phase.TRAIN)
        self.run.federation.check_epoch(exchange)
        if exchange.step > self.run.federation.steps:  # that one delivers the last gradient
            raise StateError(
                f"step {exchange.step} of a training of {self.run.federation.steps} steps: it is over, go on "
                "to disclosures"
            )
        self.settle()
        return self.gate.answered(point, exchange)

    def remember(self, released: Released) -> None:
        """Record a training message that was logged before and learned from."""
        self.transcript.record(released)
        self.recovery.checkpoint_if_due(self.state)

    def state(self) -> dict[str, Array]:
        """All that training changed, as arrays."""
        return self.run.model.state()

    def load(self, state: Mapping[str, Array]) -> None:
        """See :meth:`vflens.member.member.Member.load`."""
        check_state(state, self.state())
        self.run.model.load(state)

    def take_up(self, federation: Federation) -> None:
        """See :meth:`vflens.member.member.Member.take_up`."""
        if self.reached.stage is Stage.OPEN:
            self.begun.set()
        self.begin_run(federation, load_order(self.folder, self.table))

    def record_totals(self) -> None:
        """What the releases cost the rows."""
        if self._prepared is not None:
            self.spending.record(self.metrics, self.gate)
