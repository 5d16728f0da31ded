"""Faults in tiny federations of both settings: each run ends with the undisturbed run's bits, or with a
numbered error and untouched logs, and goes on from there to the same bits; no noise is drawn twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from cells import Undisturbed, check, undisturbed_kinds
from criterion import Draws, assert_numbered, assert_untouched
from laboratory import payload
from thinned import thinned
from world import KINDS

from vflens.errors import StorageError, VflensError
from vflens.types import Phase

#: How many cells of each kind of federation over each link.
SHARES = {
    ("whole transcript", "plain"): 70,
    ("sampled transcript", "plain"): 50,
    ("active aggregates", "plain"): 40,
    ("protected training", "plain"): 40,
    ("whole transcript", "grpc"): 40,
    ("protected training", "grpc"): 10,
    ("number on shares", "plain"): 10,
    ("server averages", "plain"): 24,
    ("server averages", "grpc"): 6,
    ("masked updates", "plain"): 8,
    ("drawn clients", "plain"): 8,
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Undisturbed]]:
    """The run without a fault, by kind."""
    with undisturbed_kinds(tmp_path_factory) as of:
        yield of


@pytest.mark.parametrize(
    ("kind", "link", "number"), thinned(((*key, i) for key, n in SHARES.items() for i in range(n)), 8)
)
def test_one_fault(undisturbed: Callable[[str], Undisturbed], kind: str, link: str, number: int) -> None:
    cells = undisturbed(kind).cells(link, seed=number)
    cell = cells[number * len(cells) // SHARES[kind, link]]
    try:
        check(undisturbed(kind), link, cell.inject, cell.mend)
    except BaseException as error:
        error.add_note(str(cell))
        raise


def test_every_kind_has_its_share() -> None:
    assert sum(SHARES.values()) == 306
    assert {kind for kind, _ in SHARES} == set(KINDS)


def test_a_second_draw_is_found() -> None:
    rows = np.arange(3, dtype=np.int32)
    first, second = (payload({"embedding": np.full((3, 2), x)}, rows=rows) for x in (1.0, 1.5))
    draws = Draws()
    draws.note([first, first])
    with pytest.raises(AssertionError, match="was drawn twice"):
        draws.note([second])


def test_a_second_draw_for_one_row_of_another_request_is_found() -> None:
    values = np.arange(6.0).reshape(3, 2)
    rows = np.array([4, 7, 9], np.int32)
    first = payload({"embedding": values}, rows=rows, phase=Phase.PREDICT)
    again = payload({"embedding": values[1:]}, rows=rows[1:], phase=Phase.PREDICT, step=1)
    other = payload({"embedding": values[:2]}, rows=rows[1:], phase=Phase.PREDICT, step=2)
    draws = Draws()
    draws.note([first, again])
    with pytest.raises(AssertionError, match="was drawn twice"):
        draws.note([other])


@pytest.mark.parametrize("torn", [b"ab", b"", b"abc\n", b"abc\nde"])
def test_a_beginning_of_a_log_is_untouched(torn: bytes) -> None:
    assert_untouched({"a/transcript/index.jsonl": torn}, {"a/transcript/index.jsonl": b"abc\ndef\n"})


@pytest.mark.parametrize("other", [b"abd\n", b"abc\ndef\ng", b"def\n"])
def test_another_log_is_no_beginning(other: bytes) -> None:
    with pytest.raises(AssertionError, match="is no beginning"):
        assert_untouched({"a/transcript/index.jsonl": other}, {"a/transcript/index.jsonl": b"abc\ndef\n"})


def test_an_unexpected_error_is_no_numbered_one() -> None:
    assert_numbered(StorageError("the log of a party cannot be written: free space"))
    with pytest.raises(AssertionError):
        assert_numbered(VflensError("unexpected KeyError at 'passive': see its events.jsonl"))
