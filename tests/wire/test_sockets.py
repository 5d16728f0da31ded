"""A token is sent to nobody but a socket that this user, or root, has put into a folder that no other user
can write.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stubparty import LIMITS, short_folder

from vflens.errors import AccessError, ConfigError, UnavailableError, VflensError
from vflens.protocol import acts
from vflens.types import Exchange, Phase
from vflens.wire import sockets
from vflens.wire.channel import TOKEN_KEY, check_address, check_port_free, grpc
from vflens.wire.grpc_link import GrpcLink

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
    sentence = (
        f"address 'unix:{folder}/s' may be another user's: other users can write {folder} (mode 770): "
        f"chmod go-w {folder}"
    )
    with pytest.raises(AccessError, match=f"^{re.escape(sentence)}$"):
        WAYS[way](link)
    assert thief.tokens == []
    folder.chmod(0o700)
    with pytest.raises(VflensError):
        WAYS[way](link)
    assert thief.tokens == [TOKEN]  # so this thief would have had it
    link.close()


def _give_away(monkeypatch: pytest.MonkeyPatch, theirs: Path) -> None:
    """``theirs``, be it a link, belongs to another user from now on."""
    lstat = Path.lstat

    def given_away(path: Path) -> os.stat_result:
        found = list(lstat(path))
        if path == theirs:
            found[stat.ST_UID] = os.geteuid() + 1
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", given_away)


@pytest.mark.parametrize("where", ["", "s", ".."])
def test_what_belongs_to_another_user_gets_no_token(
    folder: Path, thief: Thief, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    theirs = folder.parent if where == ".." else folder / where
    _give_away(monkeypatch, theirs)
    link = link_to(folder)
    with pytest.raises(AccessError, match=rf"{re.escape(str(theirs))} belongs to another user: choose "):
        link.call(acts.Describe("run"))
    assert thief.tokens == []
    link.close()


class TestWay:
    """What lies between the root and the socket."""

    def test_a_link_that_its_owner_can_lead_elsewhere_is_refused(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "mine").mkdir(mode=0o700)
        (folder / "link").symlink_to("mine")
        (folder / "onward").symlink_to(folder / "link")
        assert not sockets.doubt(folder / "onward/s")
        _give_away(monkeypatch, folder / "link")
        for way in ("link/s", "onward/s", "link/../mine/s"):
            assert sockets.doubt(folder / way).startswith(f"{folder}/link belongs to another user: ")
        assert not sockets.doubt(folder / "mine/s")

    def test_where_a_link_leads_is_looked_at(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "theirs/mine").mkdir(mode=0o700, parents=True)
        (folder / "link").symlink_to(folder / "theirs/mine")
        (folder / "back").symlink_to("theirs/../link")
        _give_away(monkeypatch, folder / "theirs")
        for way in ("link/s", "back/s"):
            assert sockets.doubt(folder / way).startswith(f"{folder}/theirs belongs to another user: ")

    def test_a_folder_above_that_others_can_write_is_refused_unless_sticky(self, folder: Path) -> None:
        (folder / "above/mine").mkdir(mode=0o700, parents=True)
        (folder / "above/s").symlink_to("mine/s")
        (folder / "above/t").symlink_to("u")
        (folder / "above").chmod(0o777)
        text = sockets.doubt(folder / "above/mine/s")
        assert text == f"other users can write {folder}/above (mode 777): chmod go-w {folder}/above"
        (folder / "above").chmod(0o1777)
        for name in ("mine/s", "s"):
            assert not sockets.doubt(folder / "above" / name)
        for name in ("u", "t", "missing/s"):  # anybody can be the first to make these
            assert sockets.doubt(folder / "above" / name).startswith(f"other users can write {folder}/above")

    def test_links_without_an_end_are_refused(self, folder: Path) -> None:
        (folder / "a").symlink_to("b")
        (folder / "b").symlink_to("a")
        with pytest.raises(ConfigError, match="Too many levels of symbolic links"):
            check_port_free(f"unix:{folder}/a/s")
        with pytest.raises(UnavailableError, match="Too many levels of symbolic links"):
            sockets.check_listener(f"unix:{folder}/a/s", "passive")


def test_this_user_and_root_are_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = folder.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner)
    assert not sockets.doubt(folder / "s")
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert bool(sockets.doubt(folder / "s")) == (owner != 0)
    assert not sockets.doubt(Path("/s"))  # root's folder


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

    def test_it_makes_none_below_another_user_s(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _give_away(monkeypatch, folder)
        with pytest.raises(ConfigError, match=f"alone: {folder} belongs to another user: choose a folder"):
            check_port_free(f"unix:{folder}/some/new/s")

    def test_those_that_it_makes_above_are_for_itself_too(self, folder: Path) -> None:
        before = os.umask(0)
        try:
            sockets.make_folder(f"unix:{folder}/some/new/s")
        finally:
            os.umask(before)
        check_port_free(f"unix:{folder}/some/new/s")

    def test_a_link_to_nothing_in_its_place_is_refused(self, folder: Path) -> None:
        (folder / "s").symlink_to("nothing")
        with pytest.raises(ConfigError, match="a file is there"):
            check_port_free(f"unix:{folder}/s")

    @pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
    def test_a_folder_that_others_can_write_is_refused(self, folder: Path, mode: int) -> None:
        folder.chmod(mode)
        sentence = (
            f"address 'unix:{folder}/s' is not this party's alone: "
            f"other users can write {folder} (mode {mode:o}): chmod go-w {folder}"
        )
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
