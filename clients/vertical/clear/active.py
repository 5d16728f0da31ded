"""The active party's training in the clear: it gives the gradient in the embeddings, and learns from them."""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import ClassVar

from vflens.clients.training import ActiveTraining
from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.clear.direct_training import DirectTraining
from vflens.clients.vertical.party import VerticalParty
from vflens.errors import ProtocolError, StateError
from vflens.member.event_loop import run_to_end
from vflens.member.recovery import check_logged
from vflens.models.part import Learn
from vflens.protocol.acts import Step, StepReply, Trained
from vflens.protocol.checks import check_origin, finite
from vflens.protocol.link import Link
from vflens.protocol.vertical.embeddings import combined
from vflens.types import Array, Phase, Point, Released


class ClearActive(ActiveTraining):
    """The steps of ``party``: one by one as the coordinator asks, or led by itself."""

    learns_from: ClassVar = Point.EMBEDDING
    asked_for_rows: ClassVar = True

    def __init__(self, party: VerticalParty[LabelledRun]) -> None:
        self._party = party

    def step(self, act: Step) -> StepReply:
        """Release the gradient for the received, summed passive logits; learn after it has left."""
        party = self._party
        with party.lock:
            answered, stopping = party.answered(Point.GRADIENT, act.exchange), party.run.stopping
            if answered is not None:
                return StepReply(answered, stopping.stops_after(act.exchange.step))
            party.reached.check_training(act.exchange.step)
            if not party.recovery.is_due(act.exchange):
                raise StateError(
                    f"step {act.exchange.step} was learned from before and its answer is no longer kept: ask "
                    "for the next"
                )
            received = self._checked(act)
            party.gate.take(act.exchange, received.rows)  # a refused message is never learned, so not logged
            party.recovery.append(received)  # first: the sender does not resend it after the gradient
            released, learn = self._release_gradient([received])
            party.defer(lambda: self._learn_and_remember(learn, received))
            return StepReply(released, stopping.stops_after(act.exchange.step))

    def lead(self, coordinator: Link, passive: Sequence[Link], paused: Event) -> Trained:
        return run_to_end(DirectTraining(self._party, coordinator, passive, paused, self.take).run())

    def take(self, embeddings: Sequence[Released]) -> None:
        """Release the gradient in all passive parties' ``embeddings`` of one step, learn when it has left.

        They are logged first: after that gradient the parties cannot send them again. With staleness
        the gradient too is computed later, while the parties compute their next embeddings.
        """
        party = self._party
        with party.lock:
            party.gate.take(embeddings[0].exchange, embeddings[0].rows)  # as in a step
            party.recovery.append(*embeddings)
            if party.run.federation.training.staleness:
                party.defer(lambda: self._learned(self._release_gradient(embeddings)[1], embeddings))
            else:
                _, learn = self._release_gradient(embeddings)
                party.defer(lambda: self._learned(learn, embeddings))

    @property
    def step_messages(self) -> int:
        federation = self._party.run.federation
        return len(federation.passive) if federation.direct else 1

    def remember(self, released: Released) -> None:
        self._party.remember(released)

    def check_logged(self, released: Released) -> None:
        federation, sender = self._party.run.federation, released.sender
        if federation.direct and sender not in federation.widths:
            raise ProtocolError(f"an embedding of {sender!r}, which is no passive party")
        width = federation.widths[sender] if federation.direct else federation.combined_width
        check_logged(released, federation, width)

    def relearn(self, logged: Sequence[Released]) -> None:
        self._release_gradient(logged)[1]()

    def state(self) -> dict[str, Array]:
        """The last answer."""
        return self._party.gate.state()

    def load(self, state: Mapping[str, Array]) -> None:
        self._party.gate.load(state, self._party.config.run)

    def _checked(self, act: Step) -> Released:
        federation, received = self._party.run.federation, act.received
        rows = federation.checked_rows(act.rows, Phase.TRAIN)
        if received is None or received.exchange != act.exchange or received.rows.tobytes() != rows.tobytes():
            raise ProtocolError(
                f"step {act.exchange.step} carries no summed embedding of its own exchange and rows"
            )
        check_origin(received, self._party.leader, Point.EMBEDDING)
        finite(received, "embedding", (len(rows), federation.combined_width), federation.dtype)
        return received

    def _release_gradient(self, received: Sequence[Released]) -> tuple[Released, Learn]:
        """Release the gradient in the combined embeddings ``received``; return it and what learns from it."""
        party, run = self._party, self._party.run
        exchange, rows = received[0].exchange, received[0].rows
        inputs, labels = party.inputs_of(rows, exchange), run.soft_labels.take(rows, axis=0)
        labels = party.chain.fold("on_batch_labels", labels, exchange, rows)
        loss, gradient, learn = run.model.loss_gradient(
            combined(received, run.federation), inputs, labels, exchange
        )
        released = party.gate.release(Point.GRADIENT, exchange, rows, {"gradient": gradient})
        run.stopping.note(exchange, loss)
        return released, learn

    def _learn_and_remember(self, learn: Learn, received: Released) -> None:
        learn()
        self._party.recovery.mark_learned(received.exchange.step)
        self.remember(received)

    def _learned(self, learn: Learn, embeddings: Sequence[Released]) -> None:
        """The same for embeddings that were logged before."""
        learn()
        recovery = self._party.recovery
        recovery.mark_learned(embeddings[0].exchange.step)
        recovery.remember(*embeddings)
        recovery.checkpoint_if_due(self._party.kept_state)
