"""Counts agree with their nouns."""

import pytest

from vflens.words import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "row", "0 rows"),
        (1, "row", "1 row"),
        (2, "row", "2 rows"),
        (2, "class", "2 classes"),
        (3, "party", "3 parties"),
        (2, "entry", "2 entries"),
        (2, "key", "2 keys"),
        (2, "box", "2 boxes"),
        (2, "branch", "2 branches"),
    ],
)
def test_a_noun_follows_its_count(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_a_count_is_judged_as_it_is_shown() -> None:
    assert counted(1.0, "step", "g") == "1 step"
    assert counted(1.5, "step", "g") == "1.5 steps"
    assert counted(1000, "row", ",") == "1,000 rows"


def test_a_verb_agrees_as_well() -> None:
    assert counted(1, "record has", many="records have") == "1 record has"
    assert counted(2, "record has", many="records have") == "2 records have"
