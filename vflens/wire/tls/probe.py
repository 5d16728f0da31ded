"""Connections apart from gRPC, which show what it does not tell."""

from __future__ import annotations

import socket
import ssl

from vflens.wire import sockets

_SECONDS = 5.0  # of a handshake


def speaks_tls(address: str) -> bool:
    """Whether the process at ``address`` answers in TLS."""
    try:
        with connected(address) as plain, tls_context("").wrap_socket(plain):
            return True
    except OSError:
        return False


def tls_context(roots: str) -> ssl.SSLContext:
    """One that trusts ``roots`` alone; without roots it trusts everything, and must send nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the name is that of a party, not of a host
    context.set_alpn_protocols(["h2"])
    if roots:
        context.load_verify_locations(cadata=roots)
    else:
        context.verify_mode = ssl.CERT_NONE
    return context


def connected(address: str) -> socket.socket:
    """A connection to ``address``.

    Raises:
        OSError: nobody listens there.
    """
    if not sockets.is_socket(address):
        host, _, port = address.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS)
    try:
        connection.connect(str(sockets.path_of(address)))
    except OSError:
        connection.close()
        raise
    return connection
