"""A party's certificate and those that it demands of its peers; nothing is imported without ``[tls]``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from vflens.config import PartyConfig, Tls
from vflens.errors import ConfigError
from vflens.types import Role

if TYPE_CHECKING:
    from vflens.member.signer import Signer
    from vflens.wire.tls.counterpart import Counterpart
    from vflens.wire.tls.identity import Identity

_DAY, _LOOK_SECONDS = 86_400.0, 60.0  # between warnings, and between looks without one


def identity_of(config: PartyConfig) -> Identity | None:
    """The party's identity, one in a process; None without ``[tls]``.

    Raises:
        ConfigError: as :class:`vflens.wire.tls.identity.Identity`.
    """
    return None if config.tls is None else _identity(config.tls, config.party, config.role)


@cache
def _identity(tls: Tls, name: str, role: Role) -> Identity:
    from vflens.wire.tls.identity import Identity

    return Identity(tls, name, role)


def counterpart(name: str, role: Role, config: PartyConfig) -> Counterpart | None:
    """What the party demands of the peer ``name`` in its ``role``; None without ``[tls]``."""
    identity = identity_of(config)
    if identity is None:
        return None
    from vflens.wire.tls.counterpart import Counterpart

    return Counterpart(identity, name, role)


def signer_of(config: PartyConfig) -> Signer | None:
    """Signs what the party of ``config`` states; None without ``[tls]``."""
    identity = identity_of(config)
    if identity is None:
        return None
    from vflens.wire.tls.signing import TlsSigner

    return TlsSigner(identity)


def check_trust(config: PartyConfig) -> None:
    """Refuse a party that trusts no certificate of one of its peers.

    Raises:
        ConfigError: names the peer; also, as :func:`identity_of`.
    """
    identity = identity_of(config)
    if identity is None:
        return
    files = identity.files
    for peer in config.peers:
        subject = files.subject_of(peer.name, peer.role)
        if not files.trust.roots(subject):
            raise ConfigError(
                f"tls.trust = {identity.tls.trust} holds no certificate of {subject} and no authority's: add "
                f"what {peer.name!r} sent you with: vflens certs trust"
            )


def certificate_warning(config: PartyConfig) -> str:
    """What the operator must do about the party's certificate; "" if nothing, or without ``[tls]``."""
    identity = identity_of(config)
    return "" if identity is None else identity.warning()


@contextmanager
def reminded(config: PartyConfig, say: Callable[[str], None], log: Any) -> Iterator[None]:
    """Say and log :func:`certificate_warning`, once a day, while the block runs."""
    if config.tls is None:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_remind, args=(config, say, log, ended), name="certificate", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _remind(config: PartyConfig, say: Callable[[str], None], log: Any, ended: threading.Event) -> None:
    while True:
        warning = certificate_warning(config)
        if warning:
            say(warning)
            log.warning("certificate", reason=warning)
        if ended.wait(_pause(config) if warning else _LOOK_SECONDS):
            return


def _pause(config: PartyConfig) -> float:
    """Seconds until the next warning: a day, or until the certificate ends."""
    identity = identity_of(config)
    left = 0.0 if identity is None else identity.left.total_seconds()
    return min(left, _DAY) if left > 0 else _DAY
