"""Calls between parties, with domain types on both sides, over gRPC or as plain calls."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from vflens.errors import StateError
from vflens.failpoints import fail_point
from vflens.protocol.access import Access, check_access, check_sender
from vflens.protocol.acts import Act
from vflens.types import PartyInfo, Role


class Fence:
    """The newest incarnation (number of restarts) that this process knows of each peer."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}
        self._lock = threading.Lock()

    def admit(self, peer: str, incarnation: int) -> None:
        """Take a message of this ``incarnation``; earlier ones have ended then.

        Raises:
            StateError: ``peer`` was started again since.
        """
        newest = self._newest.get(peer, 0)
        if incarnation == newest:  # nearly always: no lock
            return
        with self._lock:
            newest = self._newest[peer] = max(incarnation, self._newest.get(peer, 0))
        if incarnation < newest:
            raise StateError(
                f"party {peer!r} sent this before its restart {newest}, or from a copy of its folder "
                f"(restart {incarnation}): stop its other processes, then start it with its newest folder"
            )


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Handlers = Mapping[type[Act[Any]], Callable[[Any], Any]]
_YIELD_SECONDS = 0.05  # between two looks at whether a training in one process was cancelled


class Reply(Protocol[R_co]):
    """The result of :meth:`Link.submit`; a ``concurrent.futures.Future`` is one."""

    def result(self, timeout: float | None = None) -> R_co:
        """The reply; raises the callee's error.

        Raises:
            TimeoutError: it has not come within ``timeout`` seconds; it may be waited for again.
        """


class Party(ABC):
    """A party that answers acts, with its ``handlers``."""

    name: str
    role: Role
    access: Access  # permissions of its callers
    performed = 0  # acts that it answered

    @abstractmethod
    def handlers(self) -> Handlers:
        """The method that answers each act this party knows."""

    @property
    def moved(self) -> object:
        """The progress of its run: another object whenever it has come further."""
        return self.performed

    @cached_property
    def _answers(self) -> Handlers:
        return self.handlers()

    @cached_property
    def fence(self) -> Fence:
        """The newest incarnations of its peers."""
        return Fence()

    def settle(self) -> None:  # noqa: B027 - optional: most replies leave nothing to do
        """Do the deferred work after a reply: the optimiser step, the log. Idempotent."""

    def perform(self, act: Act[R], caller: str, caller_role: Role) -> R:
        """Answer ``act``.

        Raises:
            AccessError: the caller has no permission, or used another's name.
            VflensError: the error of the handler.
        """
        check_access(type(act), caller, caller_role, self.name, self.role, access=self.access)
        check_sender(act, caller)
        handler = self._answers.get(type(act))
        if handler is None:
            raise StateError(f"{self.role} {self.name!r} does not answer {type(act).__name__}")
        fail_point(type(act).__name__, "asked")
        reply: R = handler(act)
        self.performed += 1
        fail_point(type(act).__name__, "answered")
        return reply


class Stream(ABC, Generic[R]):
    """A persistent stream of one act; replies come in the order of the requests.

    Coroutines, so that a caller with several streams works in one thread: to wake another thread costs more
    than the message.
    """

    @abstractmethod
    async def send(self, act: Act[R]) -> None:
        """Send ``act``; does not wait for its reply."""

    @abstractmethod
    async def receive(self) -> R:
        """The next reply; raises the callee's error."""

    async def close(self) -> None:
        """End the stream."""


class Link(ABC):
    """A caller's connection to one party."""

    name: str

    @abstractmethod
    def submit(self, act: Act[R]) -> Reply[R]:
        """Send ``act`` without waiting; parties then work side by side."""

    def call(self, act: Act[R]) -> R:
        """Send ``act`` and wait for the reply."""
        return self.submit(act).result()

    @abstractmethod
    def stream(self, act: type[Act[R]]) -> Stream[R]:
        """Open a stream of ``act``, inside a running event loop."""

    def close(self) -> None:  # noqa: B027 - optional: a plain call holds nothing
        """Close the connection."""


class Links(dict[str, Link]):
    """A member's links by the names of its peers, looked up for every call: one can be replaced at any time.

    Without links a member works alone, on its own folder.

    Raises:
        StateError: a name without a link is looked up.
    """

    def __missing__(self, name: str) -> Link:
        raise StateError(f"party {name!r} is no peer here: name it in peers, with address and token")

    def to(self, parties: Iterable[PartyInfo]) -> list[Link]:
        """The links to ``parties``, in their order."""
        return [self[party.name] for party in parties]


class InProcessLink(Link):
    """A plain call to whichever of ``parties`` answers to ``name``; ``submit`` runs at once, its future is
    finished.
    """

    def __init__(self, name: str, caller: str, caller_role: Role, parties: Mapping[str, Party]) -> None:
        self.name = name
        self._caller, self._caller_role, self._parties = caller, caller_role, parties

    def submit(self, act: Act[R]) -> Reply[R]:
        try:
            party = self._parties[self.name]
            reply = party.perform(act, self._caller, self._caller_role)
            party.settle()
        except Exception as error:
            return _Failed(error)
        return _Answered(reply)

    def stream(self, act: type[Act[R]]) -> Stream[R]:
        return PlainStream(self)


@dataclass(frozen=True, slots=True)
class _Answered(Generic[R]):
    """A reply that is there: a tenth of a future's time."""

    reply: R

    def result(self, timeout: float | None = None) -> R:
        return self.reply


@dataclass(frozen=True, slots=True)
class _Failed:
    """The error of a call."""

    error: Exception

    def result(self, timeout: float | None = None) -> NoReturn:
        raise self.error


class PlainStream(Stream[R]):
    """Every send is a call over ``link``; its reply waits to be received."""

    def __init__(self, link: Link) -> None:
        self._link, self._yielded = link, 0.0
        self._replies: deque[Reply[R]] = deque()

    async def send(self, act: Act[R]) -> None:
        self._replies.append(self._link.submit(act))

    async def receive(self) -> R:
        if monotonic() - self._yielded > _YIELD_SECONDS:
            await asyncio.sleep(0)  # where a cancelled training ends: a plain call never waits
            self._yielded = monotonic()
        return self._replies.popleft().result()
