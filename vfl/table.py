"""A table: rows with identifiers, columns with public metadata, labels, a split; and where tables come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from vfl.errors import DataError
from vfl.types import Array, ColumnInfo

TRAIN, PREDICT = 0, 1


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one owner, in the units of its file.

    ``ids`` (n,) unique strings; ``features`` float64 (n, d), finite; ``labels`` int64 (n,) in 0..k−1 or
    None; ``class_names`` the k names; ``split`` uint8 (n,), 0 train and 1 predict, or None when the
    coordinator is to draw it.
    """

    ids: Array
    columns: tuple[ColumnInfo, ...]
    features: Array
    labels: Array | None = None
    class_names: tuple[str, ...] = ()
    split: Array | None = None

    def take(self, columns: Sequence[int]) -> Table:
        """The same rows with only these columns, without labels."""
        kept = tuple(self.columns[j] for j in columns)
        return replace(
            self,
            columns=kept,
            features=np.ascontiguousarray(self.features[:, list(columns)]),
            labels=None,
            class_names=(),
        )


Recipe: TypeAlias = Literal["clean", "paper", "authors"]


class Dataset(BaseModel, ABC):
    """One data set: its options as fields, its table from :meth:`load`, prepared by :meth:`prepared`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: Recipe = Field(
        "clean", description="clean, paper, or authors (bank, robot, satellite and synthetic only)"
    )

    def prepared(self) -> Table:
        """The table as ``recipe`` says (``docs/recipes.md``); under "paper" and "authors" it is in [0, 1].

        Raises:
            DataError: as :meth:`load`, or the data set has no recipe "authors".
        """
        from vfl.datasets._recipes import scaled_on_all_rows

        if self.recipe == "authors":
            return self.as_coded()
        return self.load() if self.recipe == "clean" else scaled_on_all_rows(self.load())

    def as_coded(self) -> Table:
        """The table as the scripts of Rassouli et al. make it.

        Raises:
            DataError: their scripts do not treat this data set.
        """
        raise DataError(
            f"data set {type(self).__module__.rpartition('.')[2]!r} has no recipe 'authors', their scripts do not treat it: "
            "choose clean or paper, or bank, robot, satellite or synthetic"
        )

    @abstractmethod
    def load(self) -> Table:
        """The whole table, checked for shape, classes and checksum.

        Raises:
            DataError: the file is absent (says where it was looked for) or not what it should be.
        """
