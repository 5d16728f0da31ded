"""The active party in protected training."""

from collections.abc import Mapping, Sequence

from vflens.clients.vertical.active import ActiveParty
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.protected.computing import Computing
from vflens.clients.vertical.protected.leading import ProtectedTraining
from vflens.clients.vertical.protected.secret import secret_of_masks, seeded
from vflens.errors import StateError
from vflens.member.event_loop import run_to_end
from vflens.models.part import Taking
from vflens.protocol.acts import Trained
from vflens.protocol.link import Handlers
from vflens.protocol.mask_acts import Seed
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.shares import SharedRun, checked
from vflens.types import Array, Point, Released


class ProtectedActive(ActiveParty):
    """Leads the training, as one of the two that compute; labels never leave it."""

    learns_from = Point.OPENING
    _computing: Computing | None = None

    def handlers(self) -> Handlers:
        return {**super().handlers(), Seed: lambda act: seeded(self, act)}

    def begin_run(self, federation: VerticalAgreement, order: Array) -> None:
        super().begin_run(federation, order)
        self._computing = Computing(
            SharedRun(federation), self.name, secret_of_masks(self), self.run.inputs, self.run.soft_labels
        )

    @property
    def computing(self) -> Computing:
        """Its shares.

        Raises:
            StateError: the run was not prepared yet.
        """
        if self._computing is None:
            raise StateError(f"party {self.name!r} has no shares yet: the coordinator prepares the run first")
        return self._computing

    def lead_training(self) -> Trained:
        return run_to_end(ProtectedTraining(self, self.links[self.leader], self._passive()).run())

    def take_shares(self, released: Released) -> None:
        """Record shares that came before the first step, or after the last."""
        with self.lock:
            self.transcript.record(released)

    def take_opening(self, released: Released) -> None:
        """Log what the other computing party sent, once."""
        number = released.exchange.step
        with self.lock:
            if number > self.recovery.learned:
                self.recovery.append(released)
                self.recovery.mark_learned(number)
                self.transcript.record(released)
                self.transcript.link()

    def step_taken(self) -> None:
        """A step is taken: what was known of it is not needed any more.

        What was logged of later steps before a restart is; a checkpoint would empty that log.
        """
        with self.lock:
            self.computing.forget_taken()
            if not self.computing.known:
                self.recovery.checkpoint_if_due(self.kept_state)

    def take_model(self, own: Array) -> None:
        """Keep its part of the model, ``own`` rows of θ, for good."""
        with self.lock:
            assert isinstance(self.run.model, Taking)
            self.run.model.take(self.computing.own_parameters(own))
            self.recovery.checkpoint(self.kept_state())

    def step_messages(self, step: int) -> int:
        return 1

    def check_logged(self, released: Released) -> None:
        run = self.computing.run
        run.federation.check_step(released.exchange)
        shapes = run.shapes(released.exchange.step, len(released.rows), answer=True)
        checked(released, run.computing[1], Point.OPENING, shapes)

    def relearn(self, logged: Sequence[Released]) -> None:
        """Keep what was logged: training goes on from the last checkpoint with it."""
        (released,) = logged
        self.computing.known[released.exchange.step] = released

    def state(self) -> dict[str, Array]:
        return {
            **VerticalParty.state(self),
            **self.run.stopping.state(),
            **self.computing.state(),
        }

    def load(self, state: Mapping[str, Array]) -> None:
        VerticalParty.load(self, state)
        self.run.stopping.load(state)
        self.computing.load(state)
