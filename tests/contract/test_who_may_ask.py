"""The page of threat models says who may ask whom: every party of every setting does as it says."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import horizontal
import pytest
from laboratory import federation, let_go_later
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.errors import AccessError
from vflens.protocol.access import check_access
from vflens.types import Role
from vflens.wire.messages import RPCS

PAGE = Path(__file__).parents[2] / "docs/threat-models.md"
NETWORK = {"architecture": "mlp", "width": 2, "hidden": [], "top": [3]}
SHARES = {"epochs": 1, "batch_size": 40, "learning_rate": 0.1, "optimizer": "sgd", "protection": "shares"}
#: A federation, the tables of the page that hold for it, the last first, and what the words beside forbid.
SETTINGS: dict[str, tuple[dict[str, Any], tuple[str, ...], set[str]]] = {
    "the coordinator aggregates": ({}, ("access",), set()),
    "the active party aggregates": (
        {"aggregator": "active", "model": NETWORK, "disclose": [], "attacks": []},
        ("direct", "access"),
        {"Predict"},
    ),
    "protected training": ({"training": SHARES}, ("shares", "access"), set()),
    "horizontal": ({"horizontal": {"rounds": 1}}, ("horizontal",), set()),
}
Allowed = dict[str, set[tuple[str, str]]]


def allowed(name: str) -> Allowed:
    """Act → who may ask whom, as the table ``name`` of the page says."""
    (table,) = re.findall(rf"<!-- table: {name} -->(.*?)<!-- end -->", PAGE.read_text("utf-8"), re.DOTALL)
    found: Allowed = defaultdict(set)
    for act, asking, answering in re.findall(
        r"^\| `(\w+)` \| ([\w, ]+) \| ([\w, ]+) \|", table, re.MULTILINE
    ):
        found[act] |= {(a, b) for a in asking.split(", ") for b in answering.split(", ")}
    assert found
    return found


def made(home: Path, settings: dict[str, Any]) -> LocalFederation:
    if "horizontal" in settings:
        tables = {name: horizontal.table(20, seed) for seed, name in enumerate("ab")}
        return let_go_later(horizontal.federation(horizontal.deal(home, tables, **settings)))
    return federation(home, **settings)


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_party_refuses_what_stands_in_no_table_of_its_setting(tmp_path: Path, setting: str) -> None:
    """And answers what stands there, for each act of the wire and each role that may ask."""
    settings, names, forbidden = SETTINGS[setting]
    tables = [allowed(name) for name in names]
    for party in nonempty(made(tmp_path, settings).members()):
        for act in nonempty(RPCS):
            due = next((table[act.__name__] for table in tables if act.__name__ in table), set())
            due = set() if act.__name__ in forbidden else due
            for role in nonempty(Role):
                try:
                    check_access(act, "caller", role, party.name, party.role, access=party.access)
                    answers = True
                except AccessError:
                    answers = False
                assert answers is ((role, party.role) in due), (act.__name__, role, party.role)
