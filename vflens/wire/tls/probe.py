"""Connections apart from gRPC, which show what it does not tell."""

import os
import socket
import ssl
import struct
from errno import ECONNREFUSED

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
        return _to_another(socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS))
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS)
    try:
        connection.connect(str(sockets.path_of(address)))
    except OSError:
        connection.close()
        raise
    return connection


def _to_another(connection: socket.socket) -> socket.socket:
    """``connection``, unless it leads to itself.

    On loopback the kernel may choose the port that nobody listens at yet as the caller's own: TCP then
    connects the socket to itself. It is reset: in TIME_WAIT its port would stay closed to the peer.
    """
    try:
        if connection.getsockname() != connection.getpeername():
            return connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise ConnectionRefusedError(ECONNREFUSED, os.strerror(ECONNREFUSED))
    except OSError:  # or the peer has closed it already
        connection.close()
        raise
