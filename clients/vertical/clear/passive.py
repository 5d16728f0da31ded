"""A passive party's training in the clear: it gives embeddings, and learns from their gradients."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from vflens.clients.pace import Pace
from vflens.clients.training import PartyTraining
from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, StateError
from vflens.member.member import Member
from vflens.member.recovery import check_logged
from vflens.models.part import PassivePart
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite
from vflens.types import Array, Phase, Point, Released


class ClearPassive(PartyTraining):
    """The steps of ``party``, at its ``pace``."""

    learns_from: ClassVar = Point.GRADIENT
    asked_for_rows: ClassVar = True

    def __init__(self, party: VerticalParty[AlignedRun[PassivePart]], pace: Pace) -> None:
        self._party, self._pace = party, pace

    @staticmethod
    def key_of_masks(party: Member) -> str:
        """None."""
        return ""

    def step(self, act: Step) -> StepReply:
        """Learn from the gradient of the step before, then release the embedding of ``act.rows``."""
        party = self._party
        self._pace.wait(len(act.rows))
        with party.lock:
            answered = party.answered(Point.EMBEDDING, act.exchange)
            if answered is not None:
                return StepReply(answered)
            if act.received is not None and party.recovery.is_due(act.received.exchange):
                party.reached.check_training(act.received.exchange.step)
                self._learn(act.received)
            return StepReply(self._embedded(act) if len(act.rows) else None)

    def _embedded(self, act: Step) -> Released:
        party, run = self._party, self._party.run
        party.reached.check_training(act.exchange.step)
        if not party.recovery.is_due(act.exchange, ahead=run.federation.training.staleness):
            raise StateError(
                f"step {act.exchange.step} is over and its answer no longer kept: ask for step "
                f"{party.recovery.learned + 1}"
            )
        rows = run.federation.checked_rows(act.rows, Phase.TRAIN)
        party.gate.take(act.exchange, rows)  # refused before the model holds them for its next gradient
        embedding = run.model.forward(party.inputs_of(rows, act.exchange), act.exchange)
        return party.gate.release(Point.EMBEDDING, act.exchange, rows, {"embedding": embedding})

    def _learn(self, received: Released) -> None:
        party, federation = self._party, self._party.run.federation
        federation.check_step(received.exchange)
        check_origin(received, federation.active.name, Point.GRADIENT)
        finite(received, "gradient", (len(received.rows), federation.widths[party.name]), federation.dtype)
        sent = party.gate.rows_of(received.exchange.step)
        if sent is None:
            federation.checked_rows(received.rows, Phase.TRAIN)
        elif sent != received.rows.tobytes():
            raise ProtocolError(
                f"the gradient of step {received.exchange.step} is not that of the rows whose embeddings "
                f"{party.name!r} sent in it"
            )
        # Before the reply leaves: the sender does not resend it once it has our reply.
        party.recovery.append(received)
        self.relearn([received])
        party.recovery.mark_learned(received.exchange.step)
        party.defer(lambda: self.remember(received))

    def remember(self, released: Released) -> None:
        self._party.remember(released)

    def check_logged(self, released: Released) -> None:
        federation = self._party.run.federation
        check_logged(released, federation, federation.widths[self._party.name])

    def relearn(self, logged: Sequence[Released]) -> None:
        (released,), party = logged, self._party
        rows, exchange = released.rows, released.exchange
        gradient = party.chain.fold("on_received", released.tensor("gradient"), exchange, rows)
        party.run.model.learn(party.inputs_of(rows, exchange), gradient, exchange)

    def state(self) -> dict[str, Array]:
        return {}

    def load(self, state: Mapping[str, Array]) -> None:
        """Nothing: model and defences are all that its steps change."""
