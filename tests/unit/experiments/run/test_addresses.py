"""Addresses that the dealer gives to local parties."""

from __future__ import annotations

import socket

from vflens.experiments.run.dealer import free_addresses


def port(address: str) -> int:
    host, _, number = address.partition(":")
    assert host == "127.0.0.1"
    return int(number)


def test_they_are_distinct_and_free() -> None:
    ports = [port(a) for a in free_addresses(50)]
    assert len(set(ports)) == 50
    for number in ports:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", number))


def test_no_outgoing_connection_can_have_taken_them() -> None:
    """Linux numbers those from 32768: even a peer that waits for the port could hold it."""
    assert max(port(a) for a in free_addresses(500)) < 32_768


def test_two_deals_at_a_time_rarely_meet() -> None:
    drawn = [frozenset(free_addresses(3)) for _ in range(20)]
    assert len(set(drawn)) == 20


def test_a_port_in_use_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port(free_addresses(1)[0])))
        taken.listen()
        name = "{}:{}".format(*taken.getsockname())
        assert name not in free_addresses(11_000)
