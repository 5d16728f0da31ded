"""How rows are aligned follows from what the data parties share."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vflens.config import PassiveConfig
from vflens.config.compatibility import build_defenses
from vflens.errors import ConfigError

KEY = {"alignment_key": "a key of sixteen or more"}


def _passive(**changes: Any) -> PassiveConfig:
    peer = {"name": "coordinator", "role": "coordinator", "address": "unix:leader", "token": "t" * 16}
    settings = {"party": "passive", "role": "passive", "run": "r", "address": "unix:own", "out": "out"}
    return PassiveConfig.model_validate(
        {**settings, "seed": "s", "peers": [peer], "data": {"file": "data.csv"}, **changes}
    )


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        (KEY, "hmac"),  # a file of an earlier release
        (KEY | {"align": {"mode": "psi"}}, "psi"),
        ({}, "psi"),
        ({"align": {"mode": "psi"}}, "psi"),
    ],
)
def test_who_shares_no_key_aligns_by_private_set_intersection(changes: dict[str, Any], mode: str) -> None:
    assert _passive(**changes).aligns_by == mode


def test_digests_need_a_key() -> None:
    with pytest.raises(
        ValidationError, match=r"align\.mode = 'hmac' without alignment_key: give all data parties the same"
    ):
        _passive(align={"mode": "hmac"})


def test_what_data_parties_draw_together_needs_a_key() -> None:
    together = {"defenses": [{"name": "instahide"}]}
    with pytest.raises(
        ConfigError,
        match=r"^defence 'instahide' at 'passive' is drawn by all data parties together: give them the same",
    ):
        build_defenses(_passive(**together))
    (named,) = build_defenses(_passive(**together, **KEY, align={"mode": "psi"}))
    assert named[0] == "instahide"
