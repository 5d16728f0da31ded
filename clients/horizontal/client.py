"""A client: rows of its own, a whole model, and the update of its parameters in each round."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from vflens.clients.horizontal.local_run import LocalRun, local_batches
from vflens.clients.horizontal.prepared_client import PreparedClient
from vflens.clients.horizontal.split_steps import SplitSteps
from vflens.config import ClientConfig
from vflens.errors import ProtocolError, StateError
from vflens.member.recovery import check_state
from vflens.models.whole import BOTTOM, WholeModel
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_origin, finite_tensors
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.masked_update import MaskedRound
from vflens.protocol.link import Handlers, Link
from vflens.types import Array, Exchange, Phase, Point, Released

_NO_ROWS = np.zeros(0, np.int32)
_TAKEN = "taken/"  # in a checkpoint, before the names of the parameters of the last round


class Client(PreparedClient):
    """Trains the parameters that its server sends on its own rows, and answers with their update.

    Args:
        config: its configuration.
        links: to the server by name.
    """

    def __init__(self, config: ClientConfig, links: Mapping[str, Link], *, in_process: bool = False) -> None:
        super().__init__(config, links, in_process=in_process)
        self._split: SplitSteps | None = None  # where the server holds the top model
        self._taken: Mapping[str, Array] = {}  # the parameters of the last round

    def handlers(self) -> Handlers:
        return {**super().handlers(), Step: self.step}

    def begin_run(self, federation: HorizontalAgreement, order: Array) -> None:
        super().begin_run(federation, order)
        self._split = self._split_steps(self.run) if federation.horizontal.is_split else None

    def _split_steps(self, run: LocalRun) -> SplitSteps:
        return SplitSteps(
            self.name,
            self.leader,
            run,
            run.federation.model.passive_part(self.site(run.federation)),
            secret=self.secret,
            chain=self.chain,
            gate=self.gate,
            record=self.transcript.record,
        )

    def step(self, act: Step) -> StepReply:
        """Train the received parameters for a round and release their update; after the last round, keep
        them.
        """
        with self.lock:
            federation = self.run.federation
            point = federation.sent
            federation.check_step(act.exchange)
            self.settle()
            if self._split is not None:
                return self._split_step(act, self._split)
            answered = self.gate.answered(point, act.exchange)
            if answered is not None:
                return StepReply(answered)
            received, is_last = self._checked(act), act.exchange.step == federation.steps
            mask = None if is_last else self._mask(act, received)
            self._learn(received)
            if is_last:
                return StepReply(None)
            self.gate.take(act.exchange, _NO_ROWS)
            update = self._update(received)
            released = self.gate.release(point, act.exchange, _NO_ROWS, update, mask)
            self._keep_memory()
            return StepReply(released)

    def _split_step(self, act: Step, split: SplitSteps) -> StepReply:
        """A batch of a round, whose first step brings parameters and the others a gradient."""
        federation = self.run.federation
        answered = split.answered(act.exchange)
        if answered is not None:
            return StepReply(answered)
        if act.exchange.step % federation.epoch_steps:
            self.reached.check_training(act.exchange.step)
            reply = split.step(act)
            if reply.released is not None and reply.released.point is Point.UPDATE:
                self._keep_memory()
            return reply
        self._learn(self._checked(act))
        if act.exchange.step == federation.steps:
            return StepReply(None)
        return split.begin(act.exchange, self._taken)

    def _keep_memory(self) -> None:
        """Keep what a defence left of an update: it follows from no log."""
        if self.chain.memory:
            self.settle()
            self.recovery.checkpoint(self._state())

    def _learn(self, received: Released) -> None:
        """Take parameters that are due, on disk before they are answered."""
        if self._is_due(received):
            self.recovery.append(received)
            self.relearn([received])
            self.recovery.mark_learned(received.exchange.step)
            self.defer(lambda: self._remember(received))

    def sent_again(self, parameters: Iterable[Released]) -> Iterator[Released]:
        """The updates that it sent before masks, computed again from ``parameters``, those that it received:
        all of them and in order. Its model begins anew.
        """
        federation = self.run.federation
        private = federation.horizontal.private_bottom
        model = WholeModel(federation.model, self.site(federation), private_bottom=private)
        self._prepared = self._made._replace(run=replace(self.run, model=model))
        for received in parameters:
            self.relearn([received])
            update = self.gate.defended(federation.sent, received.exchange, _NO_ROWS, self._update(received))
            yield Released(self.name, received.exchange, Point.UPDATE, _NO_ROWS, tensors=update)

    def _mask(self, act: Step, received: Released) -> MaskedRound | None:
        if self.masking is None:
            return None
        return MaskedRound(self.run.federation, self.masking, self.name, act.participants, received=received)

    def _is_due(self, received: Released) -> bool:
        """Whether its parameters are new; those of the last step may come again, its answer may be lost.

        Other parameters may not: their update would get the same noise.
        """
        exchange = received.exchange
        self.reached.check_training(exchange.step)
        if exchange.step < self.recovery.learned:
            raise StateError(
                f"round {exchange.step} is over and its answer no longer kept: ask for round "
                f"{self.recovery.learned + 1}"
            )
        if self.run.federation.horizontal.has_gaps:
            due = exchange.step > self.recovery.learned
        else:
            due = self.recovery.is_due(exchange)
        if not due and any(received.tensor(n).tobytes() != v.tobytes() for n, v in self._taken.items()):
            raise StateError(
                f"round {exchange.round} came before with other parameters: send the same, or the next round"
            )
        return due

    def _checked(self, act: Step) -> Released:
        if act.exchange.step > self.run.federation.steps:
            raise StateError(
                f"round {act.exchange.step} of {self.run.federation.steps}: training is over, begin"
            )
        if act.received is None or act.received.exchange != act.exchange or len(act.rows):
            raise ProtocolError(f"round {act.exchange.step} carries no parameters of its own exchange")
        self.check_logged(act.received)
        return act.received

    def check_logged(self, released: Released) -> None:
        check_origin(released, self.leader, Point.PARAMETERS)
        finite_tensors(released, self._due_at(released.exchange.step))

    def _due_at(self, step: int) -> Mapping[str, Array]:
        """Parameters such as those that arrive at ``step``: a top model stays at its server to the end."""
        run = self.run
        whole = self._split is None or step == run.federation.steps
        return {n: v for n, v in run.model.parameters().items() if whole or n.startswith(BOTTOM)}

    def relearn(self, logged: Sequence[Released]) -> None:
        """See :meth:`vflens.member.member.Member.relearn`; a private bottom model learns in every round."""
        (released,) = logged
        self._take(released)
        federation = self.run.federation
        if federation.horizontal.private_bottom and released.exchange.step < federation.steps:
            self._train(released.exchange.round)

    def _take(self, released: Released) -> None:
        self._taken = {name: released.tensor(name) for name in released.tensors or {}}
        self.run.model.take(self._taken)

    def _update(self, received: Released) -> Mapping[str, Array]:
        """ω_k − ω_t by name, after the local steps of a round from ω_t."""
        run = self.run
        if not run.federation.horizontal.private_bottom:  # else it has learned in this round already
            self._take(received)
            self._train(received.exchange.round)
        trained = run.model.parameters()
        return {name: trained[name] - received.tensor(name) for name in trained}

    def _train(self, number: int) -> None:
        """The local steps of round ``number``."""
        run = self.run
        rows = run.federation.rows_of(self.name, Phase.TRAIN)
        for step, batch in enumerate(local_batches(run.federation, rows, self.secret, number)):
            exchange = Exchange(run.federation.run, Phase.TRAIN, number, step)
            x = self.chain.fold("on_batch", run.inputs[batch], exchange, batch)
            y = self.chain.fold("on_batch_labels", run.soft_labels[batch], exchange, batch)
            run.model.learn(x, y, exchange)

    def _remember(self, received: Released) -> None:
        """Record parameters that were logged and taken."""
        self.transcript.record(received)
        if self.run.federation.horizontal.private_bottom:  # a round costs more than a checkpoint
            self.recovery.checkpoint(self._state())
        else:
            self.recovery.checkpoint_if_due(self._state)

    def _state(self) -> dict[str, Array]:
        self.metrics.save()  # no later log holds them
        self.reached.acted = self.chain.acted
        taken = {_TAKEN + name: value for name, value in self._taken.items()}
        return {**taken, **self.run.model.state(), **self.chain.memory.state()}

    def load(self, state: Mapping[str, Array]) -> None:
        due = self._due_at(self.recovery.learned)
        own = {_TAKEN + name: value for name, value in due.items()}
        taken = {name: value for name, value in state.items() if name.startswith(_TAKEN)}
        check_state(taken, own)
        self._taken = {name.removeprefix(_TAKEN): value for name, value in taken.items()}
        self.run.model.load({name: value for name, value in state.items() if name not in taken})
        self.chain.memory.load(state)
