"""Addresses of parties: "host:port" or "unix:PATH"."""

from os.path import realpath
from pathlib import Path


def is_local(address: str) -> bool:
    """Whether only this machine can reach ``address``: a loopback host or a Unix socket."""
    host = (address.rpartition(":")[0] or address).strip("[]")
    return address.startswith("unix:") or host in ("127.0.0.1", "::1", "localhost")


def seen_from(base: Path, address: str) -> str:
    """``address`` with the path of a Unix socket relative to ``base``."""
    path = address.removeprefix("unix:")
    return address if path in (address, "") or path.startswith("/") else f"unix:{realpath(base / path)}"
