"""Unix sockets that no other user of the machine can have put there: who calls sends a token to whoever listens."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import stat
from pathlib import Path

from vfl.errors import AccessError, ConfigError, UnavailableError

_SCHEME = "unix:"
_MOST = 100  # bytes of a path, roughly what the system takes
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_socket(address: str) -> bool:
    """Whether ``address`` is a Unix socket's."""
    return address.startswith(_SCHEME)


def path_of(address: str) -> Path:
    """The path of a Unix socket's ``address``, which can be written ``unix:PATH`` or ``unix://PATH``."""
    return Path(address.removeprefix(_SCHEME).removeprefix("//"))


def check_path(address: str) -> None:
    """Refuse a Unix socket's ``address`` without a path, or with one that is too long.

    Raises:
        ConfigError: naming the remedy.
    """
    path = os.fsencode(path_of(address))
    if address.rstrip("/") == _SCHEME:
        raise ConfigError(f"address {address!r} names no path: write unix:PATH")
    if len(path) > _MOST:
        raise ConfigError(
            f"address {address!r}: a socket's path holds at most {_MOST} bytes, choose a shorter folder"
        )


def check_listener(address: str, party: str) -> None:
    """Refuse to call ``party`` at a Unix socket in whose place another user could listen; other addresses are taken as they are.

    Raises:
        AccessError: naming the remedy.
        UnavailableError: its folder is not there, or cannot be entered.
    """
    if not is_socket(address):
        return
    try:
        said = _doubt(path_of(address))
    except OSError as error:
        raise UnavailableError(
            f"party {party!r} cannot be reached ({address}: {error.strerror}): it stopped, or its address is wrong"
        ) from error
    if said:
        raise AccessError(f"address {address!r} may be another user's: {said}")


def check_free(address: str) -> None:
    """Refuse a Unix socket's ``address`` that is taken, that nobody can bind, or that another user could bind first.

    Raises:
        ConfigError: naming the remedy.
    """
    path = path_of(address)
    try:
        found = next(f for f in (path.parent, *path.parent.parents) if f.exists())
        said = _doubt(path) if found == path.parent else ""
    except OSError as error:
        raise ConfigError(
            f"address {address!r} cannot be bound ({error.strerror}): choose another path"
        ) from error
    if not found.is_dir():
        raise ConfigError(f"address {address!r} cannot be bound ({found} is no folder): choose another path")
    if said:
        raise ConfigError(f"address {address!r} is not this party's alone: {said}")
    if not path.exists():
        return
    if not path.is_socket():
        raise ConfigError(f"address {address!r} cannot be bound (a file is there): choose another path")
    # gRPC removes what stands at the path, even the socket of a live server.
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(ConnectionRefusedError):
        probe.settimeout(2)
        probe.connect(str(path))
        raise ConfigError(f"address {address!r} is in use: choose another path, or stop who uses it")


def make_folder(address: str) -> None:
    """Make the folder of a Unix socket's ``address``, for this user alone, where :func:`check_free` found none.

    Raises:
        ConfigError: it cannot be made.
    """
    folder = path_of(address).parent
    if not is_socket(address) or folder.exists():
        return
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise ConfigError(
            f"address {address!r} cannot be bound ({folder} cannot be made: {error.strerror}): choose another path"
        ) from error


def _doubt(path: Path) -> str:
    """Why a socket at ``path`` may be another user's, and what to do; "" where it and its folder are ours, or root's.

    Raises:
        OSError: there is no folder, or it cannot be entered.
    """
    folder, found = path.parent, path.parent.stat()
    if not _is_trusted(found):
        return f"{folder} belongs to another user: choose a folder of your own"
    if found.st_mode & _OTHERS_WRITE:
        return f"other users can write {folder} (mode {stat.S_IMODE(found.st_mode):o}): {_closing(folder, found)}"
    with contextlib.suppress(FileNotFoundError):  # only we can make it
        if not _is_trusted(path.stat()):
            return f"the socket {path} belongs to another user: choose another path"
    return ""


def _is_trusted(found: os.stat_result) -> bool:
    return found.st_uid in (0, os.geteuid())


def _closing(folder: Path, found: os.stat_result) -> str:
    """A folder for everybody, such as /tmp, stays as it is."""
    if found.st_mode & stat.S_ISVTX or found.st_uid != os.geteuid():
        return "choose a folder of your own"
    return f"chmod 700 {shlex.quote(str(folder))}"
