"""The active party's training on shares: one of the two that compute, it leads; labels never leave it."""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import ClassVar

from vflens.clients.training import ActiveTraining
from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.protected.computing import Computing
from vflens.clients.vertical.protected.leading import ProtectedTraining
from vflens.clients.vertical.protected.secret import secret_of_masks
from vflens.errors import StateError
from vflens.member.event_loop import run_to_end
from vflens.protocol.acts import Step, StepReply, Trained
from vflens.protocol.link import Link
from vflens.protocol.vertical.shares import SharedRun, checked
from vflens.types import Array, Point, Released


class ActiveOnShares(ActiveTraining):
    """The shares of ``party``, and what they learn from.

    Raises:
        ConfigError, ProtocolError: see :class:`Computing`.
    """

    learns_from: ClassVar = Point.OPENING
    asked_for_rows: ClassVar = False
    step_messages = 1

    def __init__(self, party: VerticalParty[LabelledRun]) -> None:
        self._party, run = party, party.run
        self._computing = Computing(
            SharedRun(run.federation), party.name, secret_of_masks(party), run.inputs, run.soft_labels
        )

    def step(self, act: Step) -> StepReply:
        """Refuse it.

        Raises:
            StateError: always.
        """
        raise StateError(f"step {act.exchange.step}: {self._party.name!r} leads training on shares itself")

    def lead(self, coordinator: Link, passive: Sequence[Link], paused: Event) -> Trained:
        return run_to_end(ProtectedTraining(self._party, self._computing, coordinator, passive, paused).run())

    def remember(self, released: Released) -> None:
        self._party.transcript.record(released)

    def check_logged(self, released: Released) -> None:
        run = self._computing.run
        run.federation.check_step(released.exchange)
        shapes = run.shapes(released.exchange.step, len(released.rows), answer=True)
        checked(released, run.computing[1], Point.OPENING, shapes)

    def relearn(self, logged: Sequence[Released]) -> None:
        """Keep what was logged: training goes on from the last checkpoint with it."""
        (released,) = logged
        self._computing.known[released.exchange.step] = released

    def state(self) -> dict[str, Array]:
        return self._computing.state()

    def load(self, state: Mapping[str, Array]) -> None:
        self._computing.load(state)
