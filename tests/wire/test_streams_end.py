"""Training streams that end early, by a failure or by a signal: in order, and without a word of gRPC's."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager

import numpy as np
import pytest
from stubparty import CALLERS, LIMITS, Stub, served

from vflens.errors import ProtocolError
from vflens.member.event_loop import run_to_end
from vflens.protocol.acts import Step, StepReply
from vflens.protocol.link import InProcessLink, Link
from vflens.protocol.streams import open_stream
from vflens.types import Exchange, Phase, Role
from vflens.wire.grpc_link import GrpcLink


class DefectError(Exception):
    """A defect of the loop itself."""


def answer(step: Step) -> StepReply:
    if step.exchange.step == 4:
        raise ProtocolError("no such step")
    return StepReply(None)


@contextmanager
def two_parties() -> Iterator[list[GrpcLink]]:
    with ExitStack() as stack:
        links = []
        for name in ("a", "b"):
            address = stack.enter_context(served(Stub(answer, Role.PASSIVE)))
            token = CALLERS["coordinator"][1]
            links.append(GrpcLink(name, address, caller="coordinator", token=token, limits=LIMITS))
            stack.callback(links[-1].close)
        yield links


async def train(links: list[Link], last: int, then: Callable[[], None] = lambda: None) -> None:
    """Steps up to ``last``, of which the first party's reply alone is received."""
    async with AsyncExitStack() as stack:
        streams = [open_stream(link, stack) for link in links]
        for number in range(last + 1):
            for stream in streams:
                await stream.send(Step(Exchange("r", Phase.TRAIN, 0, number), np.zeros(1, np.int32), None))
            for stream in streams[:1] if number == last else streams:
                await stream.receive()
        then()


def fail() -> None:
    raise DefectError


@pytest.mark.parametrize(
    ("last", "then", "error"),
    [(2, fail, DefectError), (2, lambda: None, None), (4, lambda: None, ProtocolError)],
    ids=["a defect here", "the end", "a refusal"],
)
def test_the_next_loop_hears_nothing_of_the_last(
    caplog: pytest.LogCaptureFixture,
    last: int,
    then: Callable[[], None],
    error: type[Exception] | None,
) -> None:
    with two_parties() as links:
        for _ in range(10):
            if error is None:
                run_to_end(train(list(links), last, then))
            else:
                with pytest.raises(error):
                    run_to_end(train(list(links), last, then))
    gc.collect()
    assert not [r for r in caplog.records if r.name.startswith(("asyncio", "grpc"))]


@pytest.fixture
def interrupting() -> Iterator[None]:
    """Ctrl-C raises, as in a party's process; never inside a loop, where gRPC's own code may lose it."""
    struck: list[bool] = []

    def handler(*_: object) -> None:
        struck.append(_in_loop())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    yield
    signal.signal(signal.SIGINT, before)
    assert struck == [False]


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.usefixtures("interrupting")
@pytest.mark.parametrize("seconds", [0.001, 0.01, 0.1])
def test_a_signal_ends_a_training_wherever_it_strikes(
    caplog: pytest.LogCaptureFixture, seconds: float
) -> None:
    def endless(step: Step) -> StepReply:
        return StepReply(None)

    with served(Stub(endless, Role.PASSIVE)) as address:
        token = CALLERS["coordinator"][1]
        link = GrpcLink("a", address, caller="coordinator", token=token, limits=LIMITS)
        _interrupted(link, seconds)
        link.close()
    gc.collect()
    assert not [r for r in caplog.records if r.name.startswith(("asyncio", "grpc"))]


@pytest.mark.usefixtures("interrupting")
def test_a_signal_ends_a_training_in_one_process() -> None:
    party = Stub(lambda _: StepReply(None), Role.PASSIVE)
    link = InProcessLink("callee", "coordinator", Role.COORDINATOR, {"callee": party})
    _interrupted(link, 0.05)


def _interrupted(link: Link, seconds: float) -> None:
    """Train on ``link`` for ever, and press Ctrl-C after ``seconds``."""
    pressed = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))

    async def endless() -> None:
        pressed.start()
        await train([link], 10**9)

    with pytest.raises(KeyboardInterrupt):
        run_to_end(endless())
    pressed.join()
