"""What an adversary sees who inverts the embeddings of a split network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vflens.models.families.split_network import SplitNetwork
from vflens.plugins.view import AdversaryView
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
        return Released(sender, Exchange("run", phase, 0, 0), point, rows[:n], tensors)

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
        parties=[PartyInfo("me", Role.ACTIVE), PartyInfo("target", Role.PASSIVE, columns)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
        model=network,
    )
