"""Which prediction rows an operator asks for."""

from __future__ import annotations

import re

import pytest

from vflens.clients.operator import numbered
from vflens.errors import ConfigError


@pytest.mark.parametrize(
    ("rows", "numbers"), [("all", list(range(18))), ("0-2,17", [0, 1, 2, 17]), ("5, 3,5", [3, 5])]
)
def test_numbers_are_distinct_and_in_order(rows: str, numbers: list[int]) -> None:
    assert numbered(rows, 18).tolist() == numbers


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("x", ": give all, or numbers and ranges such as 0-9,17"),
        ("", ": give all, or numbers and ranges such as 0-9,17"),
        ("-1", ": give all, or numbers and ranges such as 0-9,17"),
        ("5-3", " names no row: a range goes from the lower to the higher number"),
        ("9" * 5000, ": there are 18 prediction rows, counted from 0"),  # more digits than Python reads
        (f"0-{10**18}", ": there are 18 prediction rows, counted from 0"),
    ],
)
def test_rows_that_are_no_list_are_refused(rows: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(f'--rows {rows!r}{words}')}$"):
        numbered(rows, 18)


def test_a_list_has_a_bound() -> None:
    with pytest.raises(
        ConfigError, match=r"^--rows has 80000 characters: give at most 65536, ranges are short$"
    ):
        numbered("0-17," * 16_000, 18)
