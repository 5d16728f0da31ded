"""Parties behind one address: each has its own callers, and a call reaches the one that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from laboratory import payload
from structlog import get_logger
from stubparty import LIMITS, Stub, short_folder

from vflens.config import Peer
from vflens.errors import AccessError, ConfigError, StateError, UnavailableError, VflensError
from vflens.protocol.acts import Step, StepReply, Stop
from vflens.protocol.streams import open_stream
from vflens.services.hall import Hall
from vflens.services.healthcheck import serves
from vflens.types import Exchange, Phase, Role
from vflens.wire import grpc_link
from vflens.wire.channel import CALLEE_KEY
from vflens.wire.grpc_link import GrpcLink

STEP = Step(Exchange("run", Phase.TRAIN, 0, 0), payload({}).rows, None)
MANY = 100  # more than the calls that one party's connection may have at a time


class Behind(Stub):
    """Notes what it was asked."""

    def __init__(self, name: str) -> None:
        self.asked: list[Any] = []
        self.before: Callable[[], object] = lambda: None
        super().__init__(self._noted, Role.PASSIVE)
        self.name = name

    def _noted(self, act: Any) -> Any:
        self.asked.append(act)
        self.before()
        if isinstance(act, Step):
            return StepReply(None)
        raise StateError(f"{self.name} heard {act.failure}")


class Shared:
    """``parties`` at one address of an open hall."""

    def __init__(self, address: str, parties: list[Behind]) -> None:
        self.address, self.hall, self._ends = address, Hall(shared=True), dict[str, ExitStack]()
        self.parties = parties
        for party in parties:
            self.add(party)
        self.hall.open()

    def add(self, party: Behind, tls: str | None = None) -> None:
        address, limits = self.address, LIMITS
        peers = (Peer(name="coordinator", role=Role.COORDINATOR, address=address, token=token(party.name)),)
        config: Any = SimpleNamespace(
            address=address, peers=peers, limits=limits, tls=tls, operators_token=None
        )
        with ExitStack() as end:
            end.enter_context(self.hall.holds(party, config, get_logger()))
            self._ends[party.name] = end.pop_all()

    def leave(self, name: str) -> None:
        self._ends.pop(name).close()

    def close(self) -> None:
        for name in list(self._ends):
            self.leave(name)

    def link(self, name: str, its: str | None = None) -> GrpcLink:
        sent = token(its or name)
        return GrpcLink(name, self.address, caller="coordinator", token=sent, limits=LIMITS)


def token(name: str) -> str:
    return f"the-token-of-party-{name}"


@pytest.fixture
def shared() -> Iterator[Shared]:
    with short_folder() as folder, closing(Shared(f"unix:{folder}/s", [Behind("a"), Behind("b")])) as made:
        yield made


def heard(link: GrpcLink) -> str:
    with pytest.raises(VflensError) as error:
        link.call(Stop("run", "a failure"))
    assert not isinstance(error.value, AccessError | UnavailableError)
    return str(error.value)


def test_a_call_reaches_the_party_that_it_names(shared: Shared) -> None:
    for name in ("a", "b"):
        with closing(shared.link(name)) as link:
            assert heard(link) == f"party '{name}': {name} heard a failure"


def test_the_token_of_one_opens_no_other(shared: Shared) -> None:
    with closing(shared.link("b", its="a")) as link, pytest.raises(AccessError, match="token is another"):
        link.call(Stop("run", "a failure"))


@pytest.mark.parametrize(
    ("named", "words"),
    [([], "nobody"), (["c"], "'c'"), (["a", "b"], "'a' and 'b'"), (["a", "a"], "'a' and 'a'")],
)
def test_a_call_for_no_party_here_or_for_several_is_refused_in_words(
    shared: Shared, named: list[str], words: str
) -> None:
    with closing(shared.link("a")) as link:
        callees = tuple((CALLEE_KEY, name) for name in named)
        link._metadata = (*callees, *(pair for pair in link._metadata if pair[0] != CALLEE_KEY))
        with pytest.raises(AccessError, match=f"the call is for {words}: name one party of this address"):
            link.call(Stop("run", "a failure"))
    assert not any(party.asked for party in shared.parties)


def test_an_address_has_each_name_once(shared: Shared) -> None:
    with pytest.raises(ConfigError, match="party 'b' is given twice at unix:"):
        shared.add(Behind("b"))
    with closing(shared.link("b")) as link:
        assert "b heard" in heard(link)


def test_one_with_certificates_shares_no_address(shared: Shared) -> None:
    with pytest.raises(ConfigError, match=r"is that of party 'a' too: with .tls. each party listens at its"):
        shared.add(Behind("c"), tls="its files")


def test_one_leaves_while_another_acts(shared: Shared) -> None:
    acts, goes_on = Event(), Event()

    def before() -> None:
        acts.set()
        goes_on.wait(60)

    shared.parties[0].before = before
    with closing(shared.link("a")) as link, ThreadPoolExecutor(1) as thread, ExitStack() as end:
        end.callback(goes_on.set)
        call = thread.submit(heard, link)
        assert acts.wait(60)
        shared.leave("b")  # it does not wait for the other
        assert not call.done()
        goes_on.set()
        assert "a heard" in call.result(60)


def test_one_that_left_answers_nothing_while_the_others_go_on(shared: Shared) -> None:
    with closing(shared.link("a")) as left, closing(shared.link("b")) as stays:
        shared.leave("a")
        with pytest.raises(UnavailableError, match="party 'a' has ended"):
            left.call(Stop("run", "a failure"))
        assert "b heard" in heard(stays)
        assert serves(shared.address, LIMITS)
        shared.leave("b")
        assert not serves(shared.address, LIMITS)


def test_links_to_one_address_share_a_channel_until_the_last_closes(shared: Shared) -> None:
    first, second = shared.link("a"), shared.link("b")
    assert first._channel is second._channel
    first.close()
    with pytest.raises(UnavailableError, match="the link to 'a' is closed"):
        first.call(Stop("run", "a failure"))
    assert "b heard" in heard(second)
    second.close()
    assert (shared.address, LIMITS) not in grpc_link._channels._open


def test_many_parties_of_an_address_train_side_by_side() -> None:
    """Each holds a call open, all on one connection."""
    names = [f"c{i}" for i in range(MANY)]

    async def train(links: list[GrpcLink]) -> None:
        async with AsyncExitStack() as stack:
            streams = [open_stream(link, stack) for link in links]
            for stream in streams:
                await stream.send(STEP)
            for stream in streams:
                assert (await asyncio.wait_for(stream.receive(), 60)).released is None

    parties = [Behind(name) for name in names]
    with short_folder() as folder, closing(Shared(f"unix:{folder}/s", parties)) as made, ExitStack() as end:
        links = [made.link(name) for name in names]
        for link in links:
            end.callback(link.close)
        asyncio.run(train(links))
    assert [len(party.asked) for party in parties] == [1] * MANY
