"""Views of a clinic that attacks an insurer and wards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import ModelFamily
from vflens.plugins.findings import Joint
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
)

NOTHING = np.zeros(0, np.int32)
EVERYTHING = frozenset(Knowledge)
PARTIES = [  # in no particular order
    PartyInfo("wards", Role.PASSIVE, columns=(ColumnInfo("w0"), ColumnInfo("w1"))),
    PartyInfo("clinic", Role.ACTIVE, columns=(ColumnInfo("y0"),), n_classes=3),
    PartyInfo(
        "insurer", Role.PASSIVE, columns=(ColumnInfo("i0", 0.0, 9.0), ColumnInfo("i1"), ColumnInfo("i2"))
    ),
]


def released_by(
    sender: str,
    point: Point,
    tensors: Mapping[str, Array] | None,
    *,
    phase: Phase = Phase.DISCLOSE,
    step: int = 0,
) -> Released:
    return Released(sender, Exchange("run", phase, 0, step), point, NOTHING, tensors=tensors)


def scores_of(rows: Sequence[int], log_c: Array, step: int) -> Released:
    exchange = Exchange("run", Phase.PREDICT, 0, step)
    return Released(
        "coordinator", exchange, Point.SCORES, np.array(rows, np.int32), tensors={"scores": log_c}
    )


def view_of(
    transcript: Sequence[Released] = (),
    *,
    target: str = "wards",
    rows: Sequence[int] = (),
    own: Mapping[str, Array] | None = None,
    needs: frozenset[Knowledge] = EVERYTHING,
    phases: frozenset[Phase] = frozenset(Phase),
    joint: Joint | None = None,
    model: ModelFamily = SOFTMAX_REGRESSION,
) -> AdversaryView:
    return AdversaryView(
        party="clinic",
        target=target,
        rows=np.array(rows, np.int32),
        n_classes=3,
        transcript=Messages(transcript),
        own=own or {},
        parties=PARTIES,
        needs=needs,
        phases=phases,
        joint=joint,
        model=model,
    )
