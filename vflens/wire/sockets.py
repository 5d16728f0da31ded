"""Unix sockets that no other user of the machine can create: a caller sends its token to any listener."""

import contextlib
import errno
import os
import shlex
import socket
import stat
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from vflens.errors import AccessError, ConfigError, UnavailableError
from vflens.storage.private import owner_only

_SCHEME = "unix:"
_MOST = 100  # bytes of a path, roughly what the system takes
_MOST_STEPS = 1000  # of a path; links that lead to each other have no end
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_Place = tuple[Path, os.stat_result]


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
    """Refuse to call ``party`` at a Unix socket in whose place another user could listen; other addresses are
    taken as they are.

    Raises:
        AccessError: naming the remedy.
        UnavailableError: its folder is not there, or cannot be entered.
    """
    if not is_socket(address):
        return
    try:
        path_of(address).parent.stat()
        reason = doubt(path_of(address))
    except OSError as error:
        raise UnavailableError(
            f"party {party!r} cannot be reached ({address}: {error.strerror}): it stopped, or its address is "
            "wrong"
        ) from error
    if reason:
        raise AccessError(f"address {address!r} may be another user's: {reason}")


def check_free(address: str) -> None:
    """Refuse a Unix socket's ``address`` that is in use, unusable, or open to other users.

    Raises:
        ConfigError: naming the remedy.
    """
    path = path_of(address)
    try:
        reason = doubt(path)
    except OSError as error:
        raise ConfigError(
            f"address {address!r} cannot be bound ({error.strerror}): choose another path"
        ) from error
    if reason:
        raise ConfigError(f"address {address!r} is not this party's alone: {reason}")
    if not os.path.lexists(path):
        return
    if not path.is_socket():
        raise ConfigError(f"address {address!r} cannot be bound (a file is there): choose another path")
    # gRPC removes an existing file at the path, even the socket of a live server.
    with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(ConnectionRefusedError):
        probe.settimeout(2)
        probe.connect(str(path))
        raise ConfigError(f"address {address!r} is in use: choose another path, or stop who uses it")


def make_folder(address: str) -> None:
    """Make the folder of a Unix socket's ``address``, for this user alone, where :func:`check_free` found
    none.

    Raises:
        ConfigError: it cannot be made.
    """
    folder = path_of(address).parent
    if not is_socket(address) or folder.exists():
        return
    try:
        with owner_only():  # those above it too
            folder.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(
            f"address {address!r} cannot be bound ({folder} cannot be made: {error.strerror}): choose "
            "another path"
        ) from error


def doubt(path: Path) -> str:
    """Why another user may put a socket or file at ``path``, and the remedy; "" if only this user and root
    can.

    As sshd's StrictModes, every folder on the path and a file at its end are ours or root's, and no other
    user can write them. A sticky folder such as /tmp may be on the way: others cannot rename what is ours in
    it. What is so stays so.

    Raises:
        OSError: the way leads through a file, has no end, or cannot be seen.
    """
    way = list(_way(path))
    for (place, found), following in zip_longest(way, way[1:]):
        if found.st_uid not in (0, os.geteuid()):
            return f"{place} belongs to another user: choose a folder of your own"
        if _is_open(found) and not _is_passed(found, following):
            return (
                f"other users can write {place} (mode {stat.S_IMODE(found.st_mode):o}): "
                f"{_closing(place, found)}"
            )
    return ""


def _way(path: Path) -> Iterator[_Place]:
    """The places on the way to ``path`` that exist, from the root, links and what they lead to among them.

    Raises:
        OSError: see :func:`doubt`.
    """
    at, rest = Path(), [*reversed(path.absolute().parts)]
    for _ in range(_MOST_STEPS):
        if not rest:
            return
        name = rest.pop()
        here = at.parent if name == ".." else at / name
        try:
            found = here.lstat()
        except FileNotFoundError:
            return
        yield here, found
        if stat.S_ISLNK(found.st_mode):
            rest += reversed((at / here.readlink()).parts)  # from the root again
        else:
            at = here
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_open(found: os.stat_result) -> bool:
    """Whether other users can write a folder or a file."""
    kept = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return kept and bool(found.st_mode & _OTHERS_WRITE)


def _is_passed(found: os.stat_result, following: _Place | None) -> bool:
    """Whether a sticky folder is only on the way; a socket in it could be another user's while its party
    restarts.
    """
    onward = following is not None and not stat.S_ISSOCK(following[1].st_mode)
    return onward and bool(found.st_mode & stat.S_ISVTX)


def _closing(folder: Path, found: os.stat_result) -> str:
    """A folder for everybody, such as /tmp, stays as it is."""
    if found.st_mode & stat.S_ISVTX or found.st_uid != os.geteuid():
        return "choose a folder of your own"
    return f"chmod go-w {shlex.quote(str(folder))}"
