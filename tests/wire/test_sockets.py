"""A token is sent to nobody but a socket that this user, or root, has put into a folder that no other user can write."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stubparty import LIMITS, short_folder

from vfl import acts
from vfl.errors import AccessError, ConfigError, UnavailableError, VflensError
from vfl.types import Exchange, Phase
from vfl.wire import sockets
from vfl.wire.channel import TOKEN_KEY, check_address, check_port_free, grpc
from vfl.wire.grpc_link import GrpcLink

TOKEN = "the-token-that-nobody-else-may-have"
FORWARD = acts.Forward(Exchange("run", Phase.PREDICT, 1, 0), np.zeros(1, np.int32))


class Thief(grpc.GenericRpcHandler):
    """Serves nothing, and keeps the tokens of all who call."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    def service(self, handler_call_details: Any) -> None:
        self.tokens += [v for k, v in handler_call_details.invocation_metadata if k == TOKEN_KEY]


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


@pytest.fixture
def thief(folder: Path) -> Iterator[Thief]:
    """A server at ``folder``/s."""
    found = Thief()
    with ThreadPoolExecutor(2) as workers:
        server = grpc.server(workers)
        server.add_generic_rpc_handlers((found,))
        server.add_insecure_port(f"unix:{folder}/s")
        server.start()
        yield found
        server.stop(0).wait()


def link_to(folder: Path) -> GrpcLink:
    return GrpcLink("passive", f"unix:{folder}/s", caller="active", token=TOKEN, limits=LIMITS)


async def _stream(link: GrpcLink) -> None:
    stream = link.stream(acts.Forward)
    try:
        await stream.send(FORWARD)
        await stream.receive()
    finally:
        await stream.close()


WAYS: dict[str, Callable[[GrpcLink], object]] = {
    "call": lambda link: link.call(acts.Describe("run")),
    "submit": lambda link: link.submit(acts.Describe("run")).result(),
    "stream": lambda link: link.submit(FORWARD).result(),
    "coroutine": lambda link: asyncio.run(_stream(link)),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_may_have_bound_it_first_gets_no_token(folder: Path, thief: Thief, way: str) -> None:
    link = link_to(folder)
    folder.chmod(0o770)
    sentence = f"address 'unix:{folder}/s' may be another user's: other users can write {folder} (mode 770): chmod 700 {folder}"
    with pytest.raises(AccessError, match=f"^{re.escape(sentence)}$"):
        WAYS[way](link)
    assert thief.tokens == []
    folder.chmod(0o700)
    with pytest.raises(VflensError):
        WAYS[way](link)
    assert thief.tokens == [TOKEN]  # so this thief would have had it
    link.close()


@pytest.mark.parametrize("where", ["", "s"])
def test_what_belongs_to_another_user_gets_no_token(
    folder: Path, thief: Thief, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    theirs = folder / where
    monkeypatch.setattr(sockets, "_is_trusted", lambda found: found.st_ino != theirs.stat().st_ino)
    link = link_to(folder)
    with pytest.raises(AccessError, match=rf"{re.escape(str(theirs))} belongs to another user: choose "):
        link.call(acts.Describe("run"))
    assert thief.tokens == []
    link.close()


def test_this_user_and_root_are_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = folder.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner)
    assert not sockets._doubt(folder / "s")
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert bool(sockets._doubt(folder / "s")) == (owner != 0)
    assert not sockets._doubt(Path("/s"))  # root's folder


def test_nobody_is_there_yet(folder: Path) -> None:
    for place in (folder, folder / "later"):
        link = link_to(place)
        with pytest.raises(UnavailableError):
            link.call(acts.Describe("run"))
        link.close()


class TestServer:
    def test_it_makes_its_folder_for_itself_alone(self, folder: Path) -> None:
        address = f"unix:{folder}/new/s"
        check_port_free(address)
        assert not (folder / "new").exists()
        sockets.make_folder(address)
        assert (folder / "new").stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
    def test_a_folder_that_others_can_write_is_refused(self, folder: Path, mode: int) -> None:
        folder.chmod(mode)
        sentence = f"address 'unix:{folder}/s' is not this party's alone: other users can write {folder} (mode {mode:o}): chmod 700 {folder}"
        with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}$"):
            check_port_free(f"unix:{folder}/s")

    def test_a_folder_for_everybody_stays_one(self, folder: Path) -> None:
        folder.chmod(0o1777)
        with pytest.raises(ConfigError, match=r"\(mode 1777\): choose a folder of your own$"):
            check_port_free(f"unix:{folder}/s")

    def test_others_may_look_into_it(self, folder: Path) -> None:
        folder.chmod(0o755)
        check_port_free(f"unix:{folder}/s")

    @pytest.mark.parametrize("address", ["unix:", "unix://", "unix:///"])
    def test_a_path_is_due(self, address: str) -> None:
        with pytest.raises(ConfigError, match="names no path: write unix:PATH"):
            check_address(address, insecure=False)
