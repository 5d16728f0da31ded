"""What both kinds of vertical data party share: aligned rows, a part of the model, the rows of its steps."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Generic

import numpy as np

from vflens.clients.training import PartyTraining
from vflens.clients.vertical.adversary import VerticalAdversary
from vflens.clients.vertical.aligned_run import R_co
from vflens.clients.vertical.identification import identification
from vflens.clients.vertical.membership import check_membership, check_order
from vflens.clients.vertical.protected.secret import seeded
from vflens.clients.vertical.spending import Spending
from vflens.clients.vertical.target import Target
from vflens.config import ActiveConfig, PassiveConfig
from vflens.config.compatibility import build_attacks, check_family
from vflens.errors import ProtocolError, StateError
from vflens.member.recovery import check_state
from vflens.models.part import Keys, Site
from vflens.protocol.acts import Done, Prepare, Step
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.link import Handlers, Link
from vflens.protocol.mask_acts import Seed
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.row_ids import Blind, Blinded, Identify, Identities, Salt, Salted
from vflens.randomness import secret_from_seed
from vflens.score.service import ScoringService
from vflens.tables.order import load_order
from vflens.types import Array, Exchange, Phase, Point, Released
from vflens.wire.process import give_back
from vflens.words import counted


class VerticalParty(Target, Generic[R_co]):
    """A data party with its own columns of the rows that all parties have, which trains in one ``way``."""

    def __init__(
        self,
        config: PassiveConfig | ActiveConfig,
        links: Mapping[str, Link],
        way: type[PartyTraining],
        *,
        in_process: bool,
    ) -> None:
        attacks = build_attacks(config)
        key = config.alignment_key
        common = b"" if key is None else secret_from_seed(key, "defenses")
        super().__init__(
            config,
            links,
            learns_from=way.learns_from,
            asked_for_rows=way.asked_for_rows,
            common=common,
            in_process=in_process,
        )
        self.adversary = VerticalAdversary(self, attacks)
        self._identification = identification(config, self.secret, self.log)
        self._run: R_co | None = None
        self._trained_inputs: tuple[Exchange, bytes, Array] | None = None  # of the newest training step

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            Salt: self.salt,
            Identify: self.identify,
            Blind: self.blind,
            Prepare: self.prepare,
            Step: self.step,
            Seed: lambda act: seeded(self, act),
        }

    def salt(self, act: Salt) -> Salted:
        """Its part of the salt; see :class:`vflens.clients.vertical.identification.Identification`."""
        self.check_run(act.run)
        return self._identification.salt(self.table)

    def identify(self, act: Identify) -> Identities:
        """Digests of the row ids; see :class:`vflens.clients.vertical.identification.Identification`."""
        self.check_run(act.run)
        with self.lock:
            return self._identification.identities(self.table, act)

    def blind(self, act: Blind) -> Blinded:
        """The blinded ids of another party, blinded by this one too, in their order."""
        self.check_run(act.run)
        with self.lock:
            return Blinded(self._identification.blind(self.table, act))

    def prepare(self, act: Prepare) -> Done:
        """Scale the aligned rows, defend the inputs, start the model. A second call changes nothing."""
        federation = act.federation
        self.check_run(federation.run)
        if not isinstance(federation, VerticalAgreement):
            raise ProtocolError(f"run {federation.run!r} is horizontal: {self.name!r} is {self.role}")

        def order() -> Array:
            give_back()  # what sending the digests took
            check_membership(federation, self.config, self.table.columns)
            self.check_signed_keys(federation)
            check_order(act.order, federation, len(self.table.ids))
            return self._identification.file_rows(self.table, act)

        return self.prepare_once(federation, order, partial(self.begin_run, federation))

    @property
    def federation(self) -> VerticalAgreement | None:
        """The run's members and rows, None before :meth:`prepare`."""
        return None if self._run is None else self._run.federation

    @property
    def clipped(self) -> int:
        """How many of the party's own values lay outside their bounds."""
        return 0 if self._run is None else self._run.clipped

    @property
    def run(self) -> R_co:
        """Rows, inputs and model of the run.

        Raises:
            StateError: the run was not prepared yet.
        """
        if self._run is None:
            raise StateError(
                f"party {self.name!r} has no aligned rows yet: the coordinator prepares the run first"
            )
        return self._run

    @property
    def scoring(self) -> ScoringService:
        return self.run.scoring

    def scored_rows(self, scored_set: str, sender: str) -> Array:
        federation = self.run.federation
        if scored_set == "predict":
            return self.gate.released_rows(Point.EMBEDDING, MODEL_VERSION)
        if scored_set == "train":
            return np.setdiff1d(federation.train, self.granted_rows(sender))
        raise ProtocolError(f"scored_set {scored_set!r} is unknown: choose predict or train")

    def take_up(self) -> None:
        self.begin_run(VerticalAgreement.load(self.folder), load_order(self.folder, self.table))

    def begin_run(self, federation: VerticalAgreement, order: Array) -> None:
        """Build the aligned run from the party's table; ``order`` int32 (N,) are its file rows."""
        self._identification.salt(self.table)  # while the table has its values
        run = self._run = self.aligned_run(federation, order)
        self.gate.keep_last(1 + federation.training.staleness)
        self.gate.make_room(federation.rows, len(federation.predict))
        self.gate.limit(run.spending.check)
        _ = self.training  # refuses inputs that it cannot train on
        self.log.info("prepared", rows=federation.rows, columns=len(self.table.columns), clipped=run.clipped)

    @abstractmethod
    def aligned_run(self, federation: VerticalAgreement, order: Array) -> R_co:
        """The run of ``federation`` on the file rows ``order``, untrained; a part may import torch."""

    def inputs_of(self, rows: Array, exchange: Exchange) -> Array:
        """The inputs (n, d) of ``rows`` as the model takes them in ``exchange``; read-only."""
        newest, named = self._trained_inputs, rows.tobytes()
        if newest is not None and newest[:2] == (exchange, named):
            return newest[2]  # a gradient comes for the rows of the last embedding
        inputs: Array = self.chain.fold("on_batch", self.run.inputs[rows], exchange, rows)
        if exchange.phase is Phase.TRAIN:
            self._trained_inputs = exchange, named, inputs
        return inputs

    def site(self, federation: VerticalAgreement, features: int) -> Site:
        """Where the party's part of the model is built, of its ``features`` inputs.

        Raises:
            ConfigError: a defence or a device that this family of models does not know.
        """
        check_family(self.chain.named, self.name, federation.model)
        federation.model.check_device(self.config.device, f" at {self.name!r}")
        start = Exchange(federation.run, Phase.TRAIN, 0, 0)
        return Site(
            party=self.name,
            columns=self.table.columns,
            features=features,
            classes=federation.n_classes,
            training=federation.training,
            keys=Keys.under(self.secret),
            wrap=self.chain.wrap(start),
            penalty=self.chain.penalty(start),
            device=self.config.device,
            received=federation.combined_width,
            peers=[p.columns for p in federation.passive],
            holds_bias=federation.passive[0].name == self.name,
        )

    def new_spending(self, federation: VerticalAgreement) -> Spending:
        """Counts what the releases of ``federation`` cost."""
        return Spending(self.config, self.chain.claims_at, federation)

    def parameters(self) -> Mapping[str, Array]:
        """Copies of this party's parameters."""
        return self.run.model.parameters()

    def answered(self, point: Point, exchange: Exchange) -> Released | None:
        """The kept answer if this training exchange is a repetition, None if it is due."""
        federation = self.run.federation
        federation.check_step(exchange)
        if exchange.step > federation.steps:  # that one delivers the last gradient
            raise StateError(
                f"step {exchange.step} of a training of {counted(federation.steps, 'step')}: it is over, go "
                "on to disclosures"
            )
        self.catch_up()
        return self.gate.answered(point, exchange)

    def remember(self, released: Released) -> None:
        """Record a training message that was logged before and learned from."""
        self.recovery.remember(released)
        self.recovery.checkpoint_if_due(self.kept_state)

    def state(self) -> dict[str, Array]:
        """All that training changed, as arrays."""
        return {**self.run.model.state(), **self.chain.memory.state(), **self.training.state()}

    def load(self, state: Mapping[str, Array]) -> None:
        check_state(state, self.state())
        self.run.model.load(state)
        self.chain.memory.load(state)
        self.training.load(state)

    @property
    def leader_learns(self) -> bool:
        """See :meth:`Target.leader_learns`; not where the active party aggregates."""
        return self._run is None or not self._run.federation.led_by_active

    def record_totals(self) -> None:
        """What the releases cost the rows."""
        if self._run is not None:
            self._run.spending.record(self.metrics, self.gate)
