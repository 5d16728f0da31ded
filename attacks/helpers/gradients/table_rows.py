"""Rows of a table as functions of free numbers: inside the box, and one category of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from vflens.types import ColumnInfo


def one_hot_groups(columns: Sequence[ColumnInfo]) -> tuple[tuple[int, ...], ...]:
    """The places of the columns "NAME=category" of each one-hot column NAME: neighbours of 0 and 1, two at
    least.
    """
    named = [(_of(column), place) for place, column in enumerate(columns)]
    runs = [[place for _, place in run] for name, run in groupby(named, lambda pair: pair[0]) if name]
    return tuple(tuple(run) for run in runs if len(run) > 1)


def _of(column: ColumnInfo) -> str:
    """The name before "=" of a column of 0 and 1; "" of another."""
    name, found, _ = column.name.partition("=")
    return name if found and column.alphabet == (0.0, 1.0) else ""


@dataclass(frozen=True)
class TableRows:
    """Rows of d columns, of which ``groups`` hold one category each.

    A free number stands for each column: a group's columns are the softmax of theirs, the others the sigmoid.
    """

    groups: Sequence[Sequence[int]] = ()

    def rows(self, free: Tensor) -> Tensor:
        """The rows (…, d) of ``free`` numbers (…, d), all inside [0, 1]."""
        x = torch.sigmoid(free)
        for group in self.groups:
            places = torch.tensor(group, device=free.device)
            x = x.index_copy(-1, places, torch.softmax(free.index_select(-1, places), dim=-1))
        return x
