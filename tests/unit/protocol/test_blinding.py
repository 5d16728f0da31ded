"""Blinded ids against the curve's equation in plain Python; an element of small order is refused."""

from __future__ import annotations

import edwards
import nacl.bindings
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vflens.errors import ProtocolError
from vflens.protocol.vertical.blinding import blinded_again, blinded_ids, blinding_key, x_coordinates
from vflens.types import Array

SALTS = bytes(range(64))
KEY, OTHER = (blinding_key(secret, SALTS) for secret in (b"one", b"other"))


def _ids(*names: str) -> Array:
    return np.array([name.encode() for name in names])


def _split(elements: bytes) -> list[bytes]:
    return [elements[at : at + 32] for at in range(0, len(elements), 32)]


def test_a_key_times_an_element_is_that_of_the_group() -> None:
    (element,) = _split(blinded_ids(_ids("7"), KEY, SALTS))
    found = edwards.of_x25519(element)
    assert found is not None
    by_hand = edwards.multiplied(edwards.clamped(OTHER), found)
    assert blinded_again(element, OTHER, "a") == edwards.x25519(by_hand)


def test_all_elements_are_of_the_group_of_prime_order() -> None:
    """A number on the twist would stay there: a bit of its id for whoever has candidates."""
    ids = _ids(*map(str, range(40)))
    assert len({*_split(blinded_ids(ids, KEY, SALTS))}) == 40
    for element in _split(blinded_ids(ids, KEY, SALTS)):
        found = edwards.of_x25519(element)
        assert found is not None
        assert edwards.multiplied(edwards.ORDER, found) == edwards.NEUTRAL


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_x_coordinates_are_those_of_the_library(count: int) -> None:
    elements = [nacl.bindings.crypto_core_ed25519_from_uniform(bytes([k]) * 32) for k in range(1, count + 1)]
    assert x_coordinates(elements) == [
        nacl.bindings.crypto_sign_ed25519_pk_to_curve25519(element) for element in elements
    ]


def test_a_key_is_of_one_run() -> None:
    numbers = {
        edwards.clamped(blinding_key(secret, salts))
        for secret in (b"one", b"other")
        for salts in (SALTS, SALTS[::-1])
    }
    assert len(numbers) == 4
    assert blinding_key(b"one", SALTS) == KEY


def test_the_same_id_has_another_element_in_another_run() -> None:
    ids = _ids("1", "2")
    assert not {*_split(blinded_ids(ids, KEY, SALTS))} & {*_split(blinded_ids(ids, KEY, SALTS[::-1]))}


@settings(max_examples=20)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9), max_size=9))
def test_the_order_of_keys_does_not_count_and_that_of_rows_is_kept(names: list[str]) -> None:
    ids = np.array([name.encode() for name in names], "S")
    there = blinded_again(blinded_ids(ids, KEY, SALTS), OTHER, "a")
    back = blinded_again(blinded_ids(ids, OTHER, SALTS), KEY, "b")
    alone = b"".join(blinded_ids(ids[row : row + 1], KEY, SALTS) for row in range(len(ids)))
    assert there == back
    assert blinded_ids(ids, KEY, SALTS) == alone
    assert len(set(_split(there))) == len(set(ids.tolist()))


def _small() -> dict[str, bytes]:
    found = {edwards.x25519(element) for element in edwards.small()}
    assert len(found) == 4  # of eight elements: signs do not count, and 0 stands for two
    found |= {(edwards.P - 1).to_bytes(32, "little")}  # of order 4 on the twist
    above = {(edwards.P + u).to_bytes(32, "little") for u in (0, 1)}
    signed = {(int.from_bytes(u, "little") | 1 << 255).to_bytes(32, "little") for u in found | above}
    return {u.hex(): u for u in found | above | signed}


SMALL = _small()


@pytest.mark.parametrize("case", SMALL)
def test_what_is_of_small_order_is_refused(case: str) -> None:
    good = blinded_ids(_ids("1", "2", "3"), KEY, SALTS)
    sentence = (
        r"^blinded id 2 of 'mallory' is an element of small order, which neither its owner nor who blinded "
        "it before makes of an id: use the same version everywhere$"
    )
    with pytest.raises(ProtocolError, match=sentence):
        blinded_again(good[:64] + SMALL[case] + good[64:], KEY, "mallory")


@pytest.mark.parametrize("number", range(1, 8))
def test_a_part_of_small_order_does_not_show_in_an_answer(number: int) -> None:
    """Else who adds one would learn three bits of the key."""
    good = edwards.of_x25519(blinded_ids(_ids("7"), KEY, SALTS))
    assert good is not None
    mixed = edwards.x25519(edwards.added(good, edwards.small()[number]))
    assert mixed != edwards.x25519(good)
    assert blinded_again(mixed, OTHER, "a") == blinded_again(edwards.x25519(good), OTHER, "a")


@pytest.mark.parametrize("length", [1, 31, 33])
def test_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match=rf"have {length} bytes: expected 32 an id$"):
        blinded_again(bytes(length), KEY, "mallory")
