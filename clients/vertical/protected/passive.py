"""A passive party in protected training: it shares its columns; the first one computes on shares."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from vflens.clients.pace import Pace
from vflens.clients.training import PartyTraining
from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.protected.computing import Answering, Sharing
from vflens.clients.vertical.protected.secret import secret_of_masks
from vflens.errors import ProtocolError, StateError
from vflens.member.member import Member
from vflens.models.part import PassivePart, Taking
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.checks import check_exchange
from vflens.protocol.pair_key import PairKey
from vflens.protocol.vertical.shares import SharedRun, checked, sent
from vflens.types import Array, Exchange, Phase, Point, Released


class PassiveOnShares(PartyTraining):
    """Answers the active party with shares, and with what both have opened.

    Args:
        party: the party that trains.

    Raises:
        ConfigError, ProtocolError: see :class:`Sharing`.
    """

    learns_from: ClassVar = Point.OPENING
    asked_for_rows: ClassVar = False

    def __init__(self, party: VerticalParty[AlignedRun[PassivePart]], _: Pace) -> None:
        self._party = party
        run = SharedRun(party.run.federation)
        kind = Answering if party.name == run.computing[1] else Sharing
        #: What it gives of its columns; at the first passive party all its shares.
        self.sharing = kind(run, party.name, secret_of_masks(party), party.run.inputs)

    @staticmethod
    def key_of_masks(party: Member) -> str:
        """The public key of what ``party`` shares with another passive party, in hexadecimal."""
        return PairKey(secret_of_masks(party), "columns", party.config.run, party.name).public.hex()

    @property
    def _answering(self) -> Answering:
        if not isinstance(self.sharing, Answering):
            first, second = self.sharing.run.computing
            raise ProtocolError(
                f"an opening reached {self._party.name!r}: only {first!r} and {second!r} compute on shares"
            )
        return self.sharing

    def step(self, act: Step) -> StepReply:
        """Answer a message of protected training; see :mod:`vflens.protocol.vertical.shares`."""
        due, received = (act.exchange, act.rows.tobytes()), act.received
        if received is not None and (received.exchange, received.rows.tobytes()) != due:
            raise ProtocolError(f"message {act.exchange.step} carries nothing of its own exchange and rows")
        with self._party.lock:
            if act.exchange.phase is Phase.DISCLOSE:
                return StepReply(self._shared(act))
            self._party.run.federation.check_step(act.exchange)
            self._party.settle()
            self._replay()
            if (answered := self._party.gate.answered(Point.OPENING, act.exchange)) is not None:
                return StepReply(answered)
            return StepReply(self._opened(act))

    def _shared(self, act: Step) -> Released | None:
        """Its share of the rows asked for, or the opened features; after training it takes its parameters."""
        check_exchange(act.exchange, self._party.config.run, Phase.DISCLOSE)
        self._party.reached.check_training(self._party.recovery.learned + 1)
        sharing, received, rows = self.sharing, act.received, act.rows
        sharing.run.check_chunk(act.exchange.step, rows)
        if not len(rows):
            self._take_parameters(received)
            return None
        if not isinstance(sharing, Answering):
            return self._sent(act.exchange, rows, {"columns share": sharing.columns_share(rows)})
        due = {"features share": (len(rows), sharing.run.width)}
        share = checked(received, sharing.run.computing[0], Point.SHARES, due)["features share"]
        assert received is not None
        self._party.transcript.record(received)
        return self._sent(act.exchange, rows, {"features": sharing.opened_features(rows, share)})

    def _sent(self, exchange: Exchange, rows: Array, arrays: Mapping[str, Array]) -> Released:
        return self._party.gate.release(Point.SHARES, exchange, rows, sent(arrays))

    def _take_parameters(self, received: Released | None) -> None:
        sharing = self.sharing
        part = sharing.run.columns[self._party.name]
        due = {"parameters": (part.stop - part.start, sharing.run.logits)}
        hidden = checked(received, sharing.run.computing[0], Point.SHARES, due)["parameters"]
        assert received is not None
        self._party.transcript.record(received)
        self._keep(hidden - sharing.parameters_mask(self._party.name))
        self._party.recovery.checkpoint(self._party.kept_state())

    def _opened(self, act: Step) -> Released:
        self._party.reached.check_training(act.exchange.step)
        if not self._party.recovery.is_due(act.exchange):
            raise StateError(
                f"message {act.exchange.step} is over and its answer no longer kept: ask for "
                f"{self._party.recovery.learned + 1}"
            )
        own, received = self._answering, act.received
        if received is None:
            raise ProtocolError(f"message {act.exchange.step} carries nothing of its own exchange")
        arrays = self._arrays(received)
        own.end_step(arrays)
        self._checkpoint_between_steps(act.exchange.step)
        self._party.recovery.append(received)  # before anything of it is opened
        released = self._answered(received)
        self._party.recovery.mark_learned(act.exchange.step)
        self._party.defer(lambda: self.remember(received))
        return released

    def _checkpoint_between_steps(self, number: int) -> None:
        """Before the message ``number`` is logged, if it begins a step; always before the last one, which a
        restart then answers from the checkpoint alone.
        """
        if self._is_last(number):
            self._party.recovery.checkpoint(self._party.kept_state())
        elif number % 2 == 0:
            self._party.recovery.checkpoint_if_due(self._party.kept_state)

    def _is_last(self, number: int) -> bool:
        return number == 2 * self._party.run.federation.steps

    def _replay(self) -> None:
        """Take the messages that were logged before a restart, once the features are open again."""
        own = self._answering
        if not own.is_open:
            raise StateError(
                f"the features of {self._party.name!r} are not open yet: open them before a step"
            )
        for number in sorted(own.known):
            received = own.known.pop(number)
            own.end_step(self._arrays(received))
            self._answered(received)

    def _answered(self, received: Released) -> Released:
        """The answer to a message of checked arrays."""
        own, exchange, rows = self._answering, received.exchange, received.rows
        arrays = self._arrays(received)
        released = self._party.gate.release(
            Point.OPENING, exchange, rows, sent(own.answer(exchange.step, rows, arrays))
        )
        if "parameters share" in arrays:
            self._keep(own.theta[own.run.columns[self._party.name]] + arrays["parameters share"])
        return released

    def _keep(self, own: Array) -> None:
        """Keep its part of the model, ``own`` rows of θ, for good."""
        assert isinstance(self._party.run.model, Taking)
        self._party.run.model.take(self.sharing.own_parameters(own))

    def _arrays(self, received: Released) -> dict[str, Array]:
        run = self.sharing.run
        number, rows = received.exchange.step, received.rows
        run.check_rows(number, rows)
        return checked(received, run.computing[0], Point.OPENING, run.shapes(number, len(rows), answer=False))

    def remember(self, released: Released) -> None:
        self._party.transcript.record(released)

    def check_logged(self, released: Released) -> None:
        self._party.run.federation.check_step(released.exchange)
        self._arrays(released)

    def relearn(self, logged: Sequence[Released]) -> None:
        """Keep what was logged until the features are open again; the last message needs none of them."""
        (released,) = logged
        if self._is_last(released.exchange.step):
            self._answered(released)
        else:
            self._answering.known[released.exchange.step] = released

    def state(self) -> dict[str, Array]:
        """The shares of a party that computes."""
        return self.sharing.state() if isinstance(self.sharing, Answering) else {}

    def load(self, state: Mapping[str, Array]) -> None:
        if isinstance(self.sharing, Answering):
            self.sharing.load(state)
