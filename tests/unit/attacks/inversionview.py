"""What an adversary sees who inverts the embeddings of a split network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vflens.models.families.split_network import SplitNetwork
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role


def inversion_view(
    network: SplitNetwork,
    columns: tuple[ColumnInfo, ...],
    *,
    embeddings: Array,
    disclosed: Mapping[str, Array],
    granted: Array,
) -> AdversaryView:
    """The view of "me" on "target", whose ``embeddings`` (n, w) crossed the wire, and who gave parameters and
    ``granted`` (m, d) rows.
    """
    rows = np.arange(max(len(embeddings), len(granted)), dtype=np.int32)

    def released(sender: str, phase: Phase, point: Point, n: int, **tensors: Array) -> Released:
        return Released(sender, Exchange("run", phase, 0, 0), point, rows[:n], tensors=tensors)

    return AdversaryView(
        party="me",
        target="target",
        rows=rows[: len(embeddings)],
        n_classes=2,
        transcript=Messages(
            [
                released("target", Phase.DISCLOSE, Point.PARAMETERS, 0, **disclosed),
                released("target", Phase.DISCLOSE, Point.AUXILIARY, len(granted), features=granted),
                released(
                    "coordinator", Phase.PREDICT, Point.EMBEDDING, len(embeddings), embedding=embeddings
                ),
            ]
        ),
        own={},
        parties=[PartyInfo("me", Role.ACTIVE), PartyInfo("target", Role.PASSIVE, columns=columns)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
        model=network,
    )


Batches = Sequence[tuple[Array, Array]]  # rows and embeddings of each exchange


def recorded_view(
    network: SplitNetwork,
    columns: tuple[ColumnInfo, ...],
    rows: Array,
    *,
    trained: Batches = (),
    epochs: int = 1,
    predicted: Batches = (),
    disclosed: Mapping[Point, tuple[Array, Mapping[str, Array]]],
    **settings: Any,
) -> AdversaryView:
    """The view of "me" on ``rows`` of "target", whose ``trained`` exchanges are equally many in each of the
    ``epochs``.
    """
    messages = [
        Released("target", Exchange("run", Phase.DISCLOSE, 0, 0), point, of, tensors=tensors)
        for point, (of, tensors) in disclosed.items()
    ]
    for step, (of, h) in enumerate(trained):
        exchange = Exchange("run", Phase.TRAIN, step * epochs // len(trained), step)
        messages.append(Released("coordinator", exchange, Point.EMBEDDING, of, tensors={"embedding": h}))
    for step, (of, h) in enumerate(predicted):
        exchange = Exchange("run", Phase.PREDICT, 0, step)
        messages.append(Released("coordinator", exchange, Point.EMBEDDING, of, tensors={"embedding": h}))
    defaults: dict[str, Any] = {
        "n_classes": 2,
        "own": {},
        "parties": [PartyInfo("me", Role.ACTIVE), PartyInfo("target", Role.PASSIVE, columns=columns)],
        "training": np.unique(np.concatenate([np.zeros(0, np.int32), *(of for of, _ in trained)])),
        "needs": frozenset(Knowledge),
    }
    return AdversaryView(
        party="me",
        target="target",
        rows=rows,
        transcript=Messages(messages),
        phases=frozenset(Phase),
        model=network,
        **defaults | settings,
    )
