"""What a coordinator may deliver to the active party."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from laboratory import NOTHING
from oneprocess import LocalFederation

from vflens.errors import ProtocolError
from vflens.protocol.acts import Deliver
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Exchange, Phase, Point, Released

#: What a delivery has in place of what the parameters of "passive" have, in the run of an agreement.
Changes: TypeAlias = Callable[[VerticalAgreement], dict[str, Any]]


def _exchange(step: int, run: str = "tiny/run", phase: Phase = Phase.DISCLOSE) -> Exchange:
    return Exchange(run, phase, 1, step)


PARAMETERS = Released("passive", _exchange(3), Point.PARAMETERS, NOTHING, tensors={})
CASES: dict[str, tuple[Changes, str]] = {
    "nobody's": (
        lambda run: {"sender": "mallory"},
        "^a disclosure of 'mallory': only a passive party discloses$",
    ),
    "another run": (
        lambda run: {"exchange": _exchange(3, run="x")},
        "^parameters that 'passive' discloses came in phase 'disclose' of run 'x', version 1: phase",
    ),
    "another phase": (
        lambda run: {"exchange": _exchange(3, phase=Phase.PREDICT)},
        "^parameters that 'passive' discloses came in phase 'predict' of run",
    ),
    "another number": (
        lambda run: {"exchange": _exchange(7 * 73)},
        "^parameters of 'passive' as disclosure number 511: 3 is its number$",
    ),
    "scores": (
        lambda run: {"point": Point.SCORES},
        "^scores delivered as a disclosure: parameters, auxiliary rows, moments and tables are disclosed",
    ),
    "no tensors": (
        lambda run: {},
        r"^parameters of 'passive' hold tensors of shapes {}: {'weight': \(3, 4\), 'bias': \(3,\)} are due$",
    ),
    "a column more": (
        lambda run: {"tensors": {"weight": np.zeros((3, 5))}},
        r"hold tensors of shapes {'weight': \(3, 5\)}: {'weight': \(3, 4\), ",
    ),
    "a bias alone": (
        lambda run: {"tensors": {"bias": np.zeros(3)}},
        r"hold tensors of shapes {'bias': \(3,\)}: {'weight'",
    ),
    "a tensor more": (
        lambda run: {"tensors": {"weight": np.zeros((3, 4)), "more": np.zeros(9)}},
        r"'more': \(9,\)}: {'weight'",
    ),
    "infinite numbers": (
        lambda run: {"tensors": {"weight": np.full((3, 4), np.inf)}},
        "^parameters of 'passive': weight of float64 holds something else than moderate numbers of",
    ),
    "float32": (
        lambda run: {"tensors": {"weight": np.zeros((3, 4), "<f4")}},
        "^parameters of 'passive': weight of float32 holds something else",
    ),
    "parameters of rows": (
        lambda run: {"rows": run.train[:1]},
        "^parameters of 'passive': numbers of no",
    ),
    "half of the moments": (
        lambda run: {
            "point": Point.MOMENTS,
            "tensors": {"mean": np.zeros(4)},
            "exchange": _exchange(6),
        },
        r"^moments of 'passive' hold tensors of shapes {'mean': \(4,\)}: .*'covariance': \(4, 4\)} are",
    ),
    "withheld moments": (
        lambda run: {"point": Point.MOMENTS, "tensors": None, "exchange": _exchange(6)},
        "^moments of 'passive' were withheld: parameters can be$",
    ),
    "prediction rows": (
        lambda run: {"point": Point.AUXILIARY, "rows": run.predict[:2]},
        "is no train row of run",
    ),
    "rows that descend": (
        lambda run: {"point": Point.AUXILIARY, "rows": run.train[[1, 0]]},
        "^auxiliary of 'passive': each row is due once, ascending$",
    ),
    "other numbers than rows": (
        lambda run: {
            "point": Point.AUXILIARY,
            "rows": run.train[:2],
            "tensors": {"features": np.zeros((3, 4))},
            "exchange": _exchange(5 + 7 * 2),
        },
        r"^auxiliary of 'passive' hold tensors of shapes {'features': \(3, 4\)}: {'features': \(2, 4\)} are "
        r"due$",
    ),
}


@pytest.mark.parametrize(("changes", "words"), CASES.values(), ids=CASES)
def test_only_disclosures_of_passive_parties_are_delivered(
    local: LocalFederation, changes: Changes, words: str
) -> None:
    released = replace(PARAMETERS, **changes(local.coordinator.aligned))
    with pytest.raises(ProtocolError, match=words):
        local.coordinator.links["active"].call(Deliver(released))
    assert list(local.active.transcript) == []
