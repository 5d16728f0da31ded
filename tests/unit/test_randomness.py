"""Streams without state: a function of a secret and of what they are for."""

from __future__ import annotations

import hashlib
from itertools import combinations

import numpy as np
import pytest
from nonempty import nonempty
from scipy.stats import kstest

from vflens.randomness import Key, derive, exchange_names, secret_from_seed, stream
from vflens.types import Exchange, Phase

EXCHANGE = Exchange("run", Phase.PREDICT, 1, 7)
DERIVED = "b89ff66d83ac7ccdda0f3edbcd614764d19848046ea2bcdda50d5057cfa44dbd"
INTEGERS = [2448458071169957419, 2069043384417724830, 6230807329833314596]
NORMAL = [-1.426058144766445, 0.7923318446175269]
SECRET = "83186383fc213a7391b065809edb1f02d8b225e79732dbd803c4918a6f210502"


def test_streams_never_change_silently() -> None:
    """Known answers: a change here changes every result that anyone has published."""
    assert derive(b"secret", "batches", 3, "a").hex() == DERIVED
    assert stream(b"secret", "batches", 3).integers(0, 2**63, 3).tolist() == INTEGERS
    normal = stream(b"secret", "defense", *exchange_names(EXCHANGE), "on_scores", 0, "").normal(size=2)
    np.testing.assert_array_equal(normal, NORMAL)
    assert secret_from_seed(7, "passive").hex() == SECRET
    assert secret_from_seed("7", "passive") == secret_from_seed(7, "passive")


def test_a_key_is_a_keyed_hash_of_the_json_of_its_names() -> None:
    by_hand = hashlib.blake2b('["split","α",2]'.encode(), key=b"secret", digest_size=32).digest()
    assert derive(b"secret", "split", "α", 2) == by_hand
    key = np.frombuffer(by_hand, "<u8")[:2]
    expected = np.random.Generator(np.random.Philox(key=key)).random(4)
    np.testing.assert_array_equal(stream(b"secret", "split", "α", 2).random(4), expected)


def test_a_key_gives_what_its_secret_gives_below_it() -> None:
    key = Key(b"secret", "split", "α")
    assert key.derive(2, "b") == derive(b"secret", "split", "α", 2, "b")
    assert key.derive(2) == derive(b"secret", "split", "α", 2)  # a key is not used up
    assert key.stream("b").random() == stream(b"secret", "split", "α", "b").random()


def test_whatever_differs_gives_another_stream() -> None:
    streams = [
        stream(b"secret", "noise"),
        stream(b"secres", "noise"),
        stream(b"secret", "noisf"),
        stream(b"secret", "noise", ""),
        stream(b"secret", "noise", "1"),
        stream(b"secret", "noise", 1),
        stream(b"secret", "noise", "1", "2"),
        stream(b"secret", "noise", "12"),
        stream(b"secret", 'noise","1'),
        stream(b"secret", "noise", *exchange_names(EXCHANGE)),
        stream(b"secret", "noise", *exchange_names(EXCHANGE), "name"),
        stream(b"secret", "noise", *exchange_names(Exchange("ruN", Phase.PREDICT, 1, 7))),
        stream(b"secret", "noise", *exchange_names(Exchange("run", Phase.TRAIN, 1, 7))),
        stream(b"secret", "noise", *exchange_names(Exchange("run", Phase.PREDICT, 2, 7))),
        stream(b"secret", "noise", *exchange_names(Exchange("run", Phase.PREDICT, 1, 8))),
        stream(b"secret", "noise", *exchange_names(Exchange("run", Phase.PREDICT, 7, 1))),
    ]
    draws = [s.random(8) for s in streams]
    for a, b in nonempty(combinations(draws, 2)):
        assert not np.isclose(a, b).any()


def test_the_same_names_give_the_same_stream_whatever_was_drawn_before() -> None:
    first = stream(b"secret", "noise", 1)
    first.random(100)
    np.testing.assert_array_equal(
        stream(b"secret", "noise", 1).random(5), stream(b"secret", "noise", 1).random(5)
    )


@pytest.mark.parametrize("place", [0, 1, 9])
def test_draws_across_streams_are_uniform(place: int) -> None:
    """One draw of each of many streams, as noise is drawn; a weak key schedule would show here."""
    draws = [stream(b"secret", "noise", i).random(10)[place] for i in range(4000)]
    assert kstest(draws, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(4000)
