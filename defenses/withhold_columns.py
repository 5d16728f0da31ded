"""Leave columns out of the model: it never sees them, and yet the other columns may give them away.

An attack on such a column is attribute inference: it knows the column only from rows that were granted.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError
from vflens.plugins.defense import Context, Defense
from vflens.types import Array, Owner
from vflens.words import counted


class WithholdColumns(Defense):
    """The model's inputs are 0 in ``columns``, in training and in predictions.

    The columns stay in the party's table: errors of attacks are measured on them too, and rows that it grants
    hold them.
    """

    unclaimed: ClassVar[str] = "columns that go together with a withheld one still tell of it"
    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ()  # no audit knows which columns matter

    columns: tuple[int | str, ...] = Field(
        (0,), min_length=1, description="names, or places from 0, of the party's columns"
    )

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """The places of the columns.

        Raises:
            ConfigError: the party has no such column.
        """
        width = owner.columns.shape[1] if owner.columns is not None else 0
        places = {name: place for place, name in enumerate(owner.names)}
        found = [places.get(c, -1) if isinstance(c, str) else c for c in self.columns]
        for column, place in zip(self.columns, found, strict=True):
            if not 0 <= place < width:
                raise ConfigError(
                    f"withhold_columns columns = {column!r} at {owner.name!r}: the party has "
                    f"{counted(width, 'column')}, {', '.join(owner.names[:8]) or 'without names'}"
                    f"{', …' if len(owner.names) > 8 else ''}: name one of them, or its place from 0"
                )
        return {"places": np.array(found, np.int64)}

    def on_inputs(self, x: Array, ctx: Context) -> Array:
        """``x`` (n, d) with 0 in the columns."""
        inputs = x.copy()
        inputs[:, ctx.state["places"]] = 0.0
        return inputs
