"""A passive party in protected training: it shares its columns; the first one computes on shares."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vflens.clients.vertical.passive import PassiveParty
from vflens.clients.vertical.protected.answering import Answering
from vflens.clients.vertical.protected.secret import secret_of_masks, seeded
from vflens.clients.vertical.protected.sharing import Sharing
from vflens.errors import ProtocolError, StateError
from vflens.models.part import Taking
from vflens.protocol.acts import Describe, Step, StepReply
from vflens.protocol.checks import check_exchange
from vflens.protocol.link import Handlers
from vflens.protocol.mask_acts import Seed
from vflens.protocol.pair_key import PairKey
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.shares import SharedRun, checked, sent
from vflens.types import Array, Exchange, PartyInfo, Phase, Point, Released


class ProtectedPassive(PassiveParty):
    """Answers the active party with shares, and with what both have opened."""

    learns_from = Point.OPENING
    _sharing: Sharing | None = None

    def handlers(self) -> Handlers:
        return {**super().handlers(), Seed: lambda act: seeded(self, act)}

    def describe(self, act: Describe) -> PartyInfo:
        """Its columns, and the key of what it shares with another passive party, signed."""
        key = PairKey(secret_of_masks(self), "columns", self.config.run, self.name)
        return self.with_signed_key(replace(super().describe(act), mask_key=key.public.hex()), act)

    def begin_run(self, federation: VerticalAgreement, order: Array) -> None:
        super().begin_run(federation, order)
        run = SharedRun(federation)
        kind = Answering if self.name == run.computing[1] else Sharing
        self._sharing = kind(run, self.name, secret_of_masks(self), self.run.inputs)

    @property
    def sharing(self) -> Sharing:
        """What it gives of its columns; at the first passive party all its shares.

        Raises:
            StateError: the run was not prepared yet.
        """
        if self._sharing is None:
            raise StateError(f"party {self.name!r} has no shares yet: the coordinator prepares the run first")
        return self._sharing

    @property
    def _answering(self) -> Answering:
        if not isinstance(self.sharing, Answering):
            first, second = self.sharing.run.computing
            raise ProtocolError(
                f"an opening reached {self.name!r}: only {first!r} and {second!r} compute on shares"
            )
        return self.sharing

    def step(self, act: Step) -> StepReply:
        """Answer a message of protected training; see :mod:`vflens.protocol.vertical.shares`."""
        with self.lock:
            if act.exchange.phase is Phase.DISCLOSE:
                return StepReply(self._shared(act))
            self.run.federation.check_step(act.exchange)
            self.settle()
            self._replay()
            if (answered := self.gate.answered(Point.OPENING, act.exchange)) is not None:
                return StepReply(answered)
            return StepReply(self._opened(act))

    def _shared(self, act: Step) -> Released | None:
        """Its share of the rows asked for, or the opened features; after training it takes its parameters."""
        check_exchange(act.exchange, self.config.run, Phase.DISCLOSE)
        self.reached.check_training(self.recovery.learned + 1)
        sharing, received = self.sharing, act.received
        if not len(act.rows):
            self._take_parameters(received)
            return None
        rows = sharing.run.federation.checked_rows(act.rows, Phase.TRAIN)
        if not isinstance(sharing, Answering):
            return self._sent(act.exchange, rows, {"columns share": sharing.columns_share(rows)})
        due = {"features share": (len(rows), sharing.run.width)}
        share = checked(received, sharing.run.computing[0], Point.SHARES, due)["features share"]
        assert received is not None
        self.transcript.record(received)
        return self._sent(act.exchange, rows, {"features": sharing.opened_features(rows, share)})

    def _sent(self, exchange: Exchange, rows: Array, arrays: Mapping[str, Array]) -> Released:
        return self.gate.release(Point.SHARES, exchange, rows, sent(arrays))

    def _take_parameters(self, received: Released | None) -> None:
        sharing = self.sharing
        part = sharing.run.columns[self.name]
        due = {"parameters": (part.stop - part.start, sharing.run.logits)}
        hidden = checked(received, sharing.run.computing[0], Point.SHARES, due)["parameters"]
        assert received is not None
        self.transcript.record(received)
        self._keep(hidden - sharing.parameters_mask(self.name))
        self.recovery.checkpoint(self.kept_state())

    def _opened(self, act: Step) -> Released:
        self.reached.check_training(act.exchange.step)
        if not self.recovery.is_due(act.exchange):
            raise StateError(
                f"message {act.exchange.step} is over and its answer no longer kept: ask for "
                f"{self.recovery.learned + 1}"
            )
        own, received = self._answering, act.received
        if received is None or received.exchange != act.exchange:
            raise ProtocolError(f"message {act.exchange.step} carries nothing of its own exchange")
        arrays = self._arrays(received)
        own.end_step(arrays)
        self._checkpoint_between_steps(act.exchange.step)
        self.recovery.append(received)  # before anything of it is opened
        released = self._answered(received)
        self.recovery.mark_learned(act.exchange.step)
        self.defer(lambda: self.remember(received))
        return released

    def _checkpoint_between_steps(self, number: int) -> None:
        """Before the message ``number`` is logged, if it begins a step; always before the last one, which a
        restart then answers from the checkpoint alone.
        """
        if self._is_last(number):
            self.recovery.checkpoint(self.kept_state())
        elif number % 2 == 0:
            self.recovery.checkpoint_if_due(self.kept_state)

    def _is_last(self, number: int) -> bool:
        return number == 2 * self.run.federation.steps

    def _replay(self) -> None:
        """Take the messages that were logged before a restart, once the features are open again."""
        own = self._answering
        if not own.is_open:
            raise StateError(f"the features of {self.name!r} are not open yet: open them before a step")
        for number in sorted(own.known):
            received = own.known.pop(number)
            own.end_step(self._arrays(received))
            self._answered(received)

    def _answered(self, received: Released) -> Released:
        """The answer to a message of checked arrays."""
        own, exchange, rows = self._answering, received.exchange, received.rows
        arrays = self._arrays(received)
        released = self.gate.release(
            Point.OPENING, exchange, rows, sent(own.answer(exchange.step, rows, arrays))
        )
        if "parameters share" in arrays:
            self._keep(own.theta[own.run.columns[self.name]] + arrays["parameters share"])
        return released

    def _keep(self, own: Array) -> None:
        """Keep its part of the model, ``own`` rows of θ, for good."""
        assert isinstance(self.run.model, Taking)
        self.run.model.take(self.sharing.own_parameters(own))

    def _arrays(self, received: Released) -> dict[str, Array]:
        run = self.sharing.run
        number, rows = received.exchange.step, received.rows
        run.check_rows(number, rows)
        return checked(received, run.computing[0], Point.OPENING, run.shapes(number, len(rows), answer=False))

    def remember(self, released: Released) -> None:
        self.transcript.record(released)

    def check_logged(self, released: Released) -> None:
        self.run.federation.check_step(released.exchange)
        self._arrays(released)

    def relearn(self, logged: Sequence[Released]) -> None:
        """Keep what was logged until the features are open again; the last message needs none of them."""
        (released,) = logged
        if self._is_last(released.exchange.step):
            self._answered(released)
        else:
            self._answering.known[released.exchange.step] = released

    def state(self) -> dict[str, Array]:
        shares = self.sharing.state() if isinstance(self.sharing, Answering) else {}
        return {**super().state(), **shares}

    def load(self, state: Mapping[str, Array]) -> None:
        super().load(state)
        if isinstance(self.sharing, Answering):
            self.sharing.load(state)
