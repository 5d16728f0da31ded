"""A party that was started again: what its earlier process still sends is refused, not acted on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from accidents import over_grpc, train_until
from laboratory import federation, fingerprint, payload
from stubparty import CALLERS, LIMITS, Stub, served

from vflens.errors import StateError
from vflens.protocol.acts import Act, Done, Finished, Step, StepReply, Stop
from vflens.protocol.link import Fence
from vflens.services.process import link_to
from vflens.types import Exchange, Phase, Role
from vflens.wire.channel import INCARNATION_KEY, PARTY_KEY, TOKEN_KEY
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.messages import RPCS

BEFORE = (
    r"^(party 'callee': )?party 'coordinator' sent this before its restart 2, or from a copy of its folder "
    r"\(restart 1\): stop"
)


class Asked:
    """A served party that counts what it is asked for."""

    def __init__(self) -> None:
        self.acts: list[Act[Any]] = []

    def __call__(self, act: Act[Any]) -> Any:
        self.acts.append(act)
        return StepReply(None) if isinstance(act, Step) else Done()


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def address(asked: Asked) -> Iterator[str]:
    with served(Stub(asked, Role.PASSIVE)) as found:
        yield found


@contextmanager
def linked(address: str, incarnation: int) -> Iterator[GrpcLink]:
    token = CALLERS["coordinator"][1]
    link = GrpcLink(
        "callee", address, caller="coordinator", token=token, limits=LIMITS, incarnation=incarnation
    )
    with closing(link):
        yield link


def test_an_earlier_process_is_refused_once_the_later_one_has_called(asked: Asked, address: str) -> None:
    with linked(address, 1) as old, linked(address, 2) as new:
        old.call(Stop("run"))
        new.call(Stop("run"))
        with pytest.raises(StateError, match=BEFORE):
            old.call(Stop("run"))
        new.call(Stop("run"))
    assert len(asked.acts) == 3


def test_a_stream_that_an_earlier_process_opened_ends_at_its_next_message(asked: Asked, address: str) -> None:
    step = Step(Exchange("run", Phase.TRAIN, 0, 0), payload({}).rows, None)

    async def steps() -> None:
        with linked(address, 1) as old, linked(address, 2) as new:
            stream = old.stream(Step)
            await stream.send(step)
            await stream.receive()
            new.call(Stop("run"))
            await stream.send(step)
            with pytest.raises(StateError, match=BEFORE):
                await stream.receive()
            await stream.close()

    asyncio.run(steps())
    assert [type(act) for act in asked.acts] == [Step, Stop]


@pytest.mark.parametrize("sent", ["-1", "", "one", "²", "9" * 10])
def test_a_wrong_number_of_restarts_is_refused(asked: Asked, address: str, sent: str) -> None:
    metadata = (
        (PARTY_KEY, "coordinator"),
        (TOKEN_KEY, CALLERS["coordinator"][1]),
        (INCARNATION_KEY, sent),
    )
    rpc = RPCS[Stop]
    with grpc.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(rpc.path, rpc.request.SerializeToString)
        with pytest.raises((grpc.RpcError, ValueError, UnicodeError)):
            call(rpc.encode(Stop("run")), metadata=metadata, timeout=60)
    assert not asked.acts


def test_a_peer_without_a_number_was_not_restarted() -> None:
    fence = Fence()
    for peer, number in (("a", 0), ("a", 3), ("b", 0), ("a", 3)):
        fence.admit(peer, number)
    with pytest.raises(StateError, match=r"^party 'a' sent this before its restart 3"):
        fence.admit("a", 0)


@pytest.mark.parametrize("who", ["active", "passive"])
def test_what_a_data_party_sent_before_it_rejoined_is_refused(tmp_path: Path, who: str) -> None:
    """The coordinator has seen its restart by asking; the new process has not called yet."""
    local = federation(tmp_path)
    local.coordinator.prepare()
    train_until(local, 3)
    old = local.parties[who]
    peer = next(p for p in old.config.peers if p.role is Role.COORDINATOR)
    old.reached.incarnation = 1
    with over_grpc(local, lambda parties, name: parties[name]):
        local.coordinator.rejoin()
        before = fingerprint(local)
        with (
            closing(link_to(peer, old.config)) as link,
            pytest.raises(StateError, match="before its restart 1"),
        ):
            link.call(Finished(old.config.run, who))
        assert fingerprint(local) == before


def test_a_coordinator_from_before_its_restart_is_refused_by_who_has_seen_it(tmp_path: Path) -> None:
    local = federation(tmp_path)
    local.coordinator.prepare()
    local.coordinator.reached.incarnation = 2
    local.coordinator.rejoin()
    local.coordinator.reached.incarnation = 1
    with pytest.raises(StateError, match=BEFORE):
        local.coordinator.rejoin()
