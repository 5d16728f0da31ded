"""A member's links: by the names of its peers, one of them replaced at any time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vflens.errors import StateError
from vflens.protocol.link import InProcessLink, Links
from vflens.types import PartyInfo, Role

TESTS = Path(__file__).parents[2]


def _link(name: str) -> InProcessLink:
    return InProcessLink(name, "coordinator", Role.COORDINATOR, {})


def test_a_link_put_in_the_place_of_another_is_the_one_that_is_used() -> None:
    links = Links({name: _link(name) for name in ("a", "b")})
    parties = [PartyInfo(name, Role.PASSIVE, columns=(), n_classes=0) for name in ("b", "a")]
    links["b"] = other = _link("b")
    assert links.to(parties) == [other, links["a"]]


def test_a_party_that_is_no_peer_is_refused_by_name() -> None:
    with pytest.raises(
        StateError, match=r"^party 'c' is no peer here: name it in peers, with address and token$"
    ):
        Links({"a": _link("a")})["c"]


def test_no_test_rewires_a_party_by_its_private_names() -> None:
    private = re.compile(r"\._(links|passive|active|coordinator|targets|joined|parties)\b")
    files = [file for file in TESTS.rglob("*.py") if file != Path(__file__)]
    found = [
        file.name for file in files if re.search(private, re.sub(r"(self|view)\._\w+", "", file.read_text()))
    ]
    assert files
    assert found == []
