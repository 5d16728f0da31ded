"""Blinded ids against the group's equation in plain Python; what is no element of the group is refused."""

from __future__ import annotations

import edwards
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vflens.errors import ProtocolError
from vflens.protocol.vertical.blinding import blinded_again, blinded_ids, blinding_key
from vflens.types import Array

SALTS = bytes(range(64))
KEY, OTHER = (blinding_key(secret, SALTS) for secret in (b"one", b"other"))


def _ids(*names: str) -> Array:
    return np.array([name.encode() for name in names])


def _split(elements: bytes) -> list[bytes]:
    return [elements[at : at + 32] for at in range(0, len(elements), 32)]


def test_a_key_times_an_element_is_that_of_the_group() -> None:
    (element,) = _split(blinded_ids(_ids("7"), KEY, SALTS))
    found = edwards.decoded(element)
    assert found is not None
    assert edwards.multiplied(edwards.ORDER, found) == edwards.NEUTRAL
    by_hand = edwards.multiplied(int.from_bytes(OTHER, "little"), found)
    assert blinded_again(element, OTHER, "a") == edwards.encoded(by_hand)


def test_a_key_is_a_number_below_the_order_and_of_one_run() -> None:
    keys = {blinding_key(secret, salts) for secret in (b"one", b"other") for salts in (SALTS, SALTS[::-1])}
    assert len(keys) == 4
    assert all(0 < int.from_bytes(key, "little") < edwards.ORDER for key in keys)
    assert blinding_key(b"one", SALTS) == KEY


def test_the_same_id_has_another_element_in_another_run() -> None:
    ids = _ids("1", "2")
    assert not {*_split(blinded_ids(ids, KEY, SALTS))} & {*_split(blinded_ids(ids, KEY, SALTS[::-1]))}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9), max_size=9))
def test_the_order_of_keys_does_not_count_and_that_of_rows_is_kept(names: list[str]) -> None:
    ids = np.array([name.encode() for name in names], "S")
    there = blinded_again(blinded_ids(ids, KEY, SALTS), OTHER, "a")
    back = blinded_again(blinded_ids(ids, OTHER, SALTS), KEY, "b")
    alone = b"".join(blinded_ids(ids[row : row + 1], KEY, SALTS) for row in range(len(ids)))
    assert there == back
    assert blinded_ids(ids, KEY, SALTS) == alone
    assert len(set(_split(there))) == len(set(ids.tolist()))


def _bad() -> dict[str, bytes]:
    good = edwards.decoded(blinded_ids(_ids("7"), KEY, SALTS))
    assert good is not None
    small = edwards.small()
    assert len({*map(edwards.encoded, small)}) == 8
    above = [y for y in range(19) if edwards.decoded(y.to_bytes(32, "little")) is not None]
    assert len(above) > 5
    no_element = next(y for y in range(2, 99) if edwards.decoded(y.to_bytes(32, "little")) is None)
    return {
        "zeros": bytes(32),
        "ones": b"\xff" * 32,
        "no element": no_element.to_bytes(32, "little"),
        "neutral, with a sign": (1 | 1 << 255).to_bytes(32, "little"),
        **{f"of small order, {k}": edwards.encoded(element) for k, element in enumerate(small)},
        **{
            f"of mixed order, {k}": edwards.encoded(edwards.added(good, element))
            for k, element in enumerate(small)
            if element != edwards.NEUTRAL
        },
        **{f"{y} written as p + {y}": (edwards.P + y).to_bytes(32, "little") for y in above},
    }


BAD = _bad()


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_element_of_the_group_is_refused(case: str) -> None:
    good = blinded_ids(_ids("1", "2", "3"), KEY, SALTS)
    sentence = (
        r"^blinded id 2 of 'mallory' is no element of Ed25519's group of prime order: use the same version "
        "everywhere$"
    )
    with pytest.raises(ProtocolError, match=sentence):
        blinded_again(good[:64] + BAD[case] + good[64:], KEY, "mallory")


@pytest.mark.parametrize("length", [1, 31, 33])
def test_other_lengths_are_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match=rf"have {length} bytes: expected 32 an id$"):
        blinded_again(bytes(length), KEY, "mallory")
