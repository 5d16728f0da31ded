"""A party that was away is reached at once when it is back."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import pytest
from laboratory import payload
from stubparty import CALLERS, LIMITS, Stub, served_at, short_folder

from vflens.errors import UnavailableError
from vflens.protocol.acts import Step, StepReply
from vflens.types import Exchange, Phase, Role
from vflens.wire.grpc_link import GrpcLink

TOKEN = CALLERS["coordinator"][1]
STEP = Step(Exchange("run", Phase.TRAIN, 0, 0), payload({}).rows, None)


def step(link: GrpcLink) -> StepReply:
    """The answer to a step over a stream of its own."""

    async def one() -> StepReply:
        stream = link.stream(Step)
        try:
            await stream.send(STEP)
            return await stream.receive()
        finally:
            await stream.close()

    return asyncio.run(one())


def test_a_stream_opens_at_once_to_a_party_that_is_back() -> None:
    party = Stub(lambda act: StepReply(None), Role.PASSIVE)
    with (
        short_folder() as folder,
        closing(
            GrpcLink(
                "callee",
                address := f"unix:{folder}/s",
                caller="coordinator",
                token=TOKEN,
                limits=LIMITS,
            )
        ) as link,
    ):
        with served_at(address, party):
            step(link)
        with closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(address.removeprefix("unix:"))  # as a killed process leaves it
            for _ in range(3):  # each doubles the back-off of its connection
                with pytest.raises(UnavailableError, match="cannot be reached"):
                    step(link)
        with served_at(address, party):
            assert step(link).released is None
