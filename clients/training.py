"""How a data party trains: an object that it holds, made from the agreement of its run."""

from collections.abc import Mapping, Sequence
from threading import Event
from typing import ClassVar, Protocol

from vflens.protocol.acts import Step, StepReply, Trained
from vflens.protocol.link import Link
from vflens.types import Array, Point, Released


class PartyTraining(Protocol):
    """Answers training steps, and learns again from those that were logged.

    ``learns_from`` is the kind of message that it learns from. ``asked_for_rows``: another party draws the
    rows of its steps.
    """

    learns_from: ClassVar[Point]
    asked_for_rows: ClassVar[bool]

    def step(self, act: Step) -> StepReply:
        """One training step; see :class:`vflens.protocol.acts.Step`."""

    def remember(self, released: Released) -> None:
        """Record a message that was logged before and learned from."""

    def check_logged(self, released: Released) -> None:
        """See :meth:`vflens.member.member.Member.check_logged`."""

    def relearn(self, logged: Sequence[Released]) -> None:
        """See :meth:`vflens.member.member.Member.relearn`."""

    def state(self) -> dict[str, Array]:
        """All that steps changed beside model and defences, for :meth:`load`."""

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            ProtocolError: it is none.
        """


class ActiveTraining(PartyTraining, Protocol):
    """PartyTraining as the active party does it, which may lead it."""

    @property
    def step_messages(self) -> int:
        """How many messages it learns from in a step."""

    def lead(self, coordinator: Link, passive: Sequence[Link], paused: Event) -> Trained:
        """Train to the end with the ``passive`` parties, in name order; ``paused`` ends it early.

        Raises:
            ProtocolError: a party's answer is wrong.
            UnavailableError: a party did not answer in time, or the run is over.
        """
