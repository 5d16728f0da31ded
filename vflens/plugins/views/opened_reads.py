"""What a view shows of protected training: what was opened, behind masks, and in which integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from vflens.errors import KnowledgeError
from vflens.models.settings import Training
from vflens.numerics.shares.scale import Scale, fitting
from vflens.plugins.opened import OpenedStep, opened_steps
from vflens.plugins.views.reads import read_only
from vflens.plugins.views.target import TargetView
from vflens.protocol.vertical.shared_columns import shared_columns
from vflens.types import Array, Point


class OpenedReads(TargetView):
    """:class:`TargetView` of a party that trains on ``schedule`` with the rows ``training`` int32 (n,)."""

    def __init__(self, *, schedule: Training | None, training: Array, **seen: Any) -> None:
        super().__init__(**seen)
        self.schedule, self.training_rows = schedule, read_only(training)

    def shared_scale(self) -> Scale:
        """The integers of protected training.

        Raises:
            KnowledgeError: the federation does not train so.
        """
        response, schedule = self._model.response, self.schedule
        if response is None or schedule is None or not schedule.is_protected:
            raise KnowledgeError(f"the federation does not train {self._model.title} on shares")
        return fitting(
            response,
            schedule.learning_rate,
            schedule.l2,
            schedule.batch_size,
            columns=sum(len(p.columns) for p in self._parties.values()) + 1,
            steps=schedule.epochs * math.ceil(len(self.training_rows) / schedule.batch_size),
        )

    def shared_columns(self) -> Mapping[str, slice]:
        """Where the columns of each party stand in protected training; the one between is the bias."""
        parts = shared_columns(list(self._parties.values()))
        return {n: slice(p.start, p.start + len(self._parties[n].columns)) for n, p in parts.items()}

    def opened_features(self) -> tuple[Array, Array]:
        """The training rows int32 (n,) whose features were opened behind their masks, and these uint64
        (n, d).

        Raises:
            KnowledgeError: nothing was opened at this party, or the attack did not declare OPENINGS.
        """
        found = [r for r in self.received(Point.SHARES) if "features" in (r.tensors or {})]
        if not found:
            raise KnowledgeError(f"no features of training rows were opened at {self.party!r}")
        features = np.concatenate([r.tensor("features") for r in found]).view(np.uint64)
        return np.concatenate([r.rows for r in found]), features

    def opened_in(self) -> str:
        """The name of the run in which features were opened, "" where none were."""
        return next((r.exchange.run for r in self.received(Point.SHARES)), "")

    def openings(self) -> list[OpenedStep]:
        """What each step of protected training opened, as it arrived.

        Raises:
            KnowledgeError: as :meth:`opened_features`.
        """
        steps = opened_steps(self.received(Point.OPENING))
        if not steps:
            raise KnowledgeError(f"no step of protected training was opened at {self.party!r}")
        return steps
