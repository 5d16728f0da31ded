"""A client's training: from its server's parameters to their update, a round at a time."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from vflens.clients.horizontal.local_run import local_batches
from vflens.clients.horizontal.prepared_client import PreparedClient
from vflens.clients.training import PartyTraining
from vflens.errors import ProtocolError, StateError
from vflens.member.recovery import check_state
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite_tensors
from vflens.protocol.horizontal.masked_update import MaskedRound
from vflens.types import Array, Exchange, Phase, Point, Released

_NO_ROWS = np.zeros(0, np.int32)
_TAKEN = "taken/"  # in a checkpoint, before the names of the parameters of the last round


class LocalRounds(PartyTraining):
    """The rounds of ``party``: local steps from the received parameters, then one update."""

    learns_from: ClassVar = Point.PARAMETERS
    asked_for_rows: ClassVar = False

    def __init__(self, party: PreparedClient) -> None:
        self._party = party
        self._taken: Mapping[str, Array] = {}  # the parameters of the last round

    def step(self, act: Step) -> StepReply:
        """Train the received parameters for a round and release their update; after the last round, keep
        them.
        """
        with self._party.lock:
            self._party.run.federation.check_step(act.exchange)
            self._party.settle()
            return self._answer(act)

    def _answer(self, act: Step) -> StepReply:
        party, federation = self._party, self._party.run.federation
        answered = party.gate.answered(federation.sent, act.exchange)
        if answered is not None:
            return StepReply(answered)
        received, is_last = self._checked(act), act.exchange.step == federation.steps
        mask = None if is_last else self._mask(act, received)
        self._learn(received)
        if is_last:
            return StepReply(None)
        party.gate.take(act.exchange, _NO_ROWS)
        update = self.update(received)
        released = party.gate.release(federation.sent, act.exchange, _NO_ROWS, update, mask)
        self._keep_memory()
        return StepReply(released)

    def _keep_memory(self) -> None:
        """Keep what a defence left of an update: it follows from no log."""
        if self._party.chain.memory:
            self._party.settle()
            self._party.recovery.checkpoint(self._party.kept_state())

    def _learn(self, received: Released) -> None:
        """Take parameters that are due, on disk before they are answered."""
        if self._is_due(received):
            self._party.recovery.append(received)
            self.relearn([received])
            self._party.recovery.mark_learned(received.exchange.step)
            self._party.defer(lambda: self.remember(received))

    def _mask(self, act: Step, received: Released) -> MaskedRound | None:
        party = self._party
        if party.masking is None:
            return None
        return MaskedRound(
            party.run.federation, party.masking, party.name, act.participants, received=received
        )

    def _is_due(self, received: Released) -> bool:
        """Whether its parameters are new; those of the last step may come again, its answer may be lost.

        Other parameters may not: their update would get the same noise.
        """
        exchange = received.exchange
        self._party.reached.check_training(exchange.step)
        if exchange.step < self._party.recovery.learned:
            raise StateError(
                f"round {exchange.step} is over and its answer no longer kept: ask for round "
                f"{self._party.recovery.learned + 1}"
            )
        if self._party.run.federation.horizontal.has_gaps:
            due = exchange.step > self._party.recovery.learned
        else:
            due = self._party.recovery.is_due(exchange)
        if not due and any(received.tensor(n).tobytes() != v.tobytes() for n, v in self._taken.items()):
            raise StateError(
                f"round {exchange.round} came before with other parameters: send the same, or the next round"
            )
        return due

    def _checked(self, act: Step) -> Released:
        if act.exchange.step > self._party.run.federation.steps:
            raise StateError(
                f"round {act.exchange.step} of {self._party.run.federation.steps}: training is over, begin"
            )
        received = act.received
        if received is None or received.exchange != act.exchange or len(act.rows) or len(received.rows):
            raise ProtocolError(f"round {act.exchange.step} carries no parameters of its own, without rows")
        self.check_logged(received)
        return received

    def check_logged(self, released: Released) -> None:
        check_origin(released, self._party.leader, Point.PARAMETERS)
        finite_tensors(released, self._due_at(released.exchange.step))

    def _due_at(self, step: int) -> Mapping[str, Array]:
        """Parameters such as those that arrive at ``step``."""
        return self._party.run.model.parameters()

    def relearn(self, logged: Sequence[Released]) -> None:
        """See :meth:`vflens.member.member.Member.relearn`; a private bottom model learns in every round."""
        (released,) = logged
        self._take(released)
        federation = self._party.run.federation
        if federation.horizontal.private_bottom and released.exchange.step < federation.steps:
            self._train(released.exchange.round)

    def _take(self, released: Released) -> None:
        self._taken = {name: released.tensor(name) for name in released.tensors or {}}
        self._party.run.model.take(self._taken)

    def update(self, received: Released) -> Mapping[str, Array]:
        """ω_k − ω_t by name, after the local steps of a round from ω_t."""
        run = self._party.run
        if not run.federation.horizontal.private_bottom:  # else it has learned in this round already
            self._take(received)
            self._train(received.exchange.round)
        trained = run.model.parameters()
        return {name: trained[name] - received.tensor(name) for name in trained}

    def _train(self, number: int) -> None:
        """The local steps of round ``number``."""
        run = self._party.run
        rows = run.federation.rows_of(self._party.name, Phase.TRAIN)
        for step, batch in enumerate(local_batches(run.federation, rows, self._party.secret, number)):
            exchange = Exchange(run.federation.run, Phase.TRAIN, number, step)
            x = self._party.chain.fold("on_batch", run.inputs[batch], exchange, batch)
            y = self._party.chain.fold("on_batch_labels", run.soft_labels[batch], exchange, batch)
            run.model.learn(x, y, exchange)

    def remember(self, received: Released) -> None:
        """Record parameters that were logged and taken."""
        party = self._party
        party.transcript.record(received)
        if party.run.federation.horizontal.private_bottom:  # a round costs more than a checkpoint
            party.recovery.checkpoint(party.kept_state())
        else:
            party.recovery.checkpoint_if_due(party.kept_state)

    def state(self) -> dict[str, Array]:
        """The parameters of the last round."""
        return {_TAKEN + name: value for name, value in self._taken.items()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            ProtocolError: it is none.
        """
        due = self._due_at(self._party.recovery.learned)
        check_state(state, {_TAKEN + name: value for name, value in due.items()})
        self._taken = {n.removeprefix(_TAKEN): v for n, v in state.items() if n.startswith(_TAKEN)}
