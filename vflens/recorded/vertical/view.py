"""The view of an attack in a party of a vertical run, and the rows that it estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vflens.plugins.attack import Attack
from vflens.plugins.findings import Joint
from vflens.plugins.steps import silent
from vflens.plugins.views.reads import Log
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Array, Point, Progress

if TYPE_CHECKING:
    from torch.nn import Module


def knows_rows(transcript: Log, target: str) -> bool:
    """Whether ``target`` granted rows of its columns to the party that received ``transcript``."""
    granted = transcript.select(Point.AUXILIARY, sender=target)
    return any("features" in (released.tensors or {}) for released in granted)


def view_of(
    attack: Attack,
    federation: VerticalAgreement,
    *,
    party: str,
    target: str,
    rows: Array,
    transcript: Log,
    own: Mapping[str, Array],
    every: int,
    device: str,
    joint: Joint | None = None,
    own_model: Callable[[], Module] | None = None,
    progress: Progress = silent,
    colluders: Sequence[str] = (),
) -> AdversaryView:
    """The view of ``attack`` in ``party`` on ``federation``, in a run or from its record; see
    :class:`AdversaryView`.
    """
    declared = attack.declared()
    return AdversaryView(
        party=party,
        target=target,
        rows=rows,
        n_classes=federation.n_classes,
        transcript=transcript,
        own=own,
        parties=federation.parties,
        needs=declared.needs | attack.helped_by,
        phases=declared.phases,
        training=federation.train,
        schedule=federation.training,
        model=federation.model,
        every=every,
        device=device,
        joint=joint,
        own_model=own_model,
        progress=progress,
        colluders=colluders,
    )


def scored_training_rows(federation: VerticalAgreement, transcript: Log, target: str) -> Array:
    """All training rows but those that ``target`` granted, which are not scored."""
    granted = [r.rows for r in transcript.select(Point.AUXILIARY, sender=target)]
    return np.setdiff1d(federation.train, np.concatenate([np.zeros(0, np.int32), *granted]))
