"""Pairwise masks: an exact sum, uniform numbers without it; two clients or a missing one are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from nonempty import nonempty
from scipy.stats import chisquare, kstest

from vflens.errors import ConfigError, ProtocolError, UnavailableError
from vflens.numerics.fixed_point import decoded, encoded
from vflens.protocol.horizontal.secure_sum import Masking, check_clients, unmasked_sum
from vflens.types import Array
from vflens.words import counted

BITS = 32


def _clients(count: int, run: str = "run") -> dict[str, Masking]:
    return {f"client{i}": Masking(f"secret {i}".encode(), run, f"client{i}") for i in range(count)}


def _masked(clients: dict[str, Masking], values: list[Array], round_: int = 0) -> dict[str, Array]:
    publics = {name: client.public for name, client in clients.items()}
    return {
        name: client.masked(v, publics, round_)
        for (name, client), v in zip(clients.items(), values, strict=True)
    }


@settings(max_examples=40)
@given(st.data())
def test_the_sum_of_masked_updates_is_exact_and_that_of_the_numbers_nearly(data: st.DataObject) -> None:
    count, size = data.draw(st.integers(3, 7)), data.draw(st.integers(1, 9))
    numbers = data.draw(arrays(np.float64, (count, size), elements=st.floats(-1e6, 1e6)))
    values = [encoded(row, BITS, count) for row in numbers]
    clients = _clients(count)
    total = unmasked_sum(_masked(clients, values), list(clients), 0)
    assert [int(t) for t in total] == [sum(int(v[i]) for v in values) % 2**64 for i in range(size)]
    exact = [
        sum(int(v.view(np.int64)[i]) for v in values) for i in range(size)
    ]  # Python's integers do not wrap
    np.testing.assert_allclose(decoded(total, BITS), np.array(exact) / 2**BITS, rtol=1e-15)
    assert np.abs(decoded(total, BITS) - numbers.sum(axis=0)).max() <= count * 2.0 ** -(BITS + 1) + 1e-8


def test_a_masked_update_looks_uniform_and_so_does_a_sum_that_lacks_one() -> None:
    clients, size = _clients(4), 20_000
    masked = _masked(clients, [encoded(np.zeros(size), BITS, 4)] * 4)
    some = list(masked.values())
    for numbers in (some[0], some[3], some[0] + some[1] + some[2]):
        assert kstest(numbers / 2.0**64, "uniform").pvalue > 1e-4
        assert chisquare(np.bincount(numbers.view(np.uint8), minlength=256)).pvalue > 1e-4
    assert not unmasked_sum(masked, list(clients), 0).any()


def test_a_restart_gives_the_same_masks_and_another_round_or_run_others() -> None:
    zeros = [encoded(np.zeros(5), BITS, 3)] * 3
    first, again = (_masked(_clients(3), zeros) for _ in range(2))
    for name, values in nonempty(first.items()):
        np.testing.assert_array_equal(values, again[name])
        assert not np.isin(values, _masked(_clients(3), zeros, round_=1)[name]).any()
        assert not np.isin(values, _masked(_clients(3, run="other"), zeros)[name]).any()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_clients_are_refused(count: int) -> None:
    clients = _clients(count)
    message = (
        f"secure aggregation of {counted(count, 'client')}: from the sum each would know the other's update"
    )
    with pytest.raises(ConfigError, match=message):
        check_clients(list(clients))
    with pytest.raises(ConfigError, match=message):
        unmasked_sum({}, list(clients), 0)
    if count:
        with pytest.raises(ConfigError, match=message):
            _masked(clients, [np.zeros(2, np.uint64)] * count)


def test_a_missing_client_is_named() -> None:
    clients = _clients(4)
    received = _masked(clients, [np.zeros(2, np.uint64)] * 4, round_=7)
    del received["client3"], received["client1"]
    with pytest.raises(
        UnavailableError, match="round 7: no masked update came from 'client1', 'client3', and"
    ):
        unmasked_sum(received, list(clients), 7)


def test_updates_of_different_lengths_are_refused() -> None:
    received = {"a": np.zeros(2, np.uint64), "b": np.zeros(3, np.uint64), "c": np.zeros(2, np.uint64)}
    with pytest.raises(ProtocolError, match="all must be of one length"):
        unmasked_sum(received, ["a", "b", "c"], 0)


@pytest.mark.parametrize("public", [b"short", bytes(32)])
def test_a_key_that_is_none_is_refused(public: bytes) -> None:
    with pytest.raises(ProtocolError, match="the public key of 'b' is no X25519 key"):
        _clients(1)["client0"].masked(np.zeros(2, np.uint64), {"b": public, "c": public}, 0)


def test_the_largest_sum_fits_and_a_larger_number_is_refused() -> None:
    most = 2.0**63 / 3 / 2.0**BITS
    values = np.full((3, 1), most * (1 - 1e-9))
    total = np.stack([encoded(v, BITS, 3) for v in values]).sum(axis=0)
    assert decoded(total, BITS)[0] == pytest.approx(3 * most, rel=1e-8)
    for wrong in (most * (1 + 1e-9), -most * (1 + 1e-9), np.nan, np.inf):
        with pytest.raises(ValueError, match="clip the values, or take fewer bits"):
            encoded(np.array([wrong]), BITS, 3)
