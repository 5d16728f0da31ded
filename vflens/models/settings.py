"""What every party of a split network must agree on, without torch: architecture, widths, combination.

Bottom models turn each party's columns into an embedding; the embeddings are summed or concatenated in
party-name order, the active party's own last; its top model turns them into logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from vflens.errors import ConfigError
from vflens.types import INT32_MAX, Array, ColumnInfo

Width = Annotated[int, Field(ge=1, le=65536)]
_SMALLEST = {"cnn": 2, "lenet": 12}  # pixels per side below which the last layer has nothing left


class SplitNetwork(BaseModel):
    """A split network; without it a federation trains softmax regression."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    architecture: Literal["mlp", "cnn", "lenet"] = Field(
        description="of every bottom model; `cnn` and `lenet` need a rectangle of pixels at every party"
    )
    width: Width = Field(64, description="`mlp`: numbers per row of an embedding")
    hidden: tuple[Width, ...] = Field(
        (), max_length=16, description="`mlp`: widths of the bottom model's hidden layers"
    )
    top: tuple[Width, ...] = Field(
        (32,), max_length=16, description="widths of the top model's hidden layers"
    )
    trainable_top: bool = Field(True, description="false: the summed embeddings are the logits")
    combine: Literal["sum", "concatenate"] = Field("sum", description="how the embeddings become one")
    dropout: float = Field(0.0, ge=0, lt=1, description="`mlp`: share of hidden units dropped in training")
    precision: Literal["float32", "float64"] = "float32"

    def embedding_width(self, columns: Sequence[ColumnInfo]) -> int:
        """Numbers per row of the embedding of a party with ``columns``.

        Raises:
            ConfigError: the architecture does not fit these columns.
        """
        if self.architecture == "mlp":
            return self.width
        height, across = map(int, image_grid(columns).shape)
        smallest = _SMALLEST[self.architecture]
        if min(height, across) < smallest:
            raise ConfigError(
                f"model.architecture {self.architecture!r} needs images of at least {smallest} by {smallest} "
                "pixels, "
                f"a party holds {height} by {across}: cut them otherwise, or choose mlp"
            )
        if self.architecture == "cnn":
            return 16 * (height // 2) * (across // 2)
        return 16 * ((height // 2 - 4) // 2) * ((across // 2 - 4) // 2)

    def combined_width(self, widths: Sequence[int], classes: int) -> int:
        """Numbers per row of the combination of embeddings of these ``widths``, for ``classes`` classes.

        Raises:
            ConfigError: widths that cannot be summed, or a sum that cannot be the logits.
        """
        if self.combine == "sum" and len(set(widths)) > 1:
            raise ConfigError(
                f"model.combine = 'sum' of embeddings of widths {sorted(set(widths))}: cut the columns "
                "alike, or concatenate"
            )
        total = sum(widths) if self.combine == "concatenate" else widths[0]
        if not self.trainable_top and (self.combine == "concatenate" or total != classes):
            raise ConfigError(
                "model.trainable_top = false makes the summed embeddings the logits: combine by sum with "
                f"width = {classes}"
            )
        return total


def image_grid(columns: Sequence[ColumnInfo]) -> Array:
    """The position of the column that holds each pixel, int64 (height, width).

    Raises:
        ConfigError: the columns are not the pixels of one full rectangle.
    """
    pixels = np.array([c.pixel for c in columns if c.pixel is not None]).reshape(-1, 2)
    if len(pixels) == len(columns) > 0:
        low = pixels.min(axis=0)
        shape = pixels.max(axis=0) - low + 1
        if shape.prod() == len(columns) == len(np.unique(pixels, axis=0)):
            grid = np.empty(shape, np.int64)
            grid[tuple((pixels - low).T)] = np.arange(len(columns))
            return grid
    raise ConfigError(
        f"a party's {len(columns)} columns are not the pixels of one rectangle: cut images by halves or "
        "tiles, or choose model.architecture = 'mlp'"
    )


Aggregator = Literal["coordinator", "active"]


AGGREGATORS: tuple[Aggregator, ...] = get_args(Aggregator)


class Training(BaseModel):
    """How the model is trained. The penalty is l2·Σθ² over weights and, by default, bias
    (``docs/notation.md``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimizer: Literal["adam", "sgd"] = "adam"
    epochs: int = Field(100, ge=1, le=INT32_MAX, description="passes over the training rows")
    batch_size: int = Field(
        256, ge=1, le=INT32_MAX, description="rows per step; the last batch of an epoch may be smaller"
    )
    learning_rate: FiniteFloat = Field(0.05, gt=0)
    l2: FiniteFloat = Field(1e-4, ge=0, description="weight of the penalty Σθ²")
    penalise_bias: bool = Field(
        True, description="the penalty includes the bias; false: x ↦ 1−x leaves the scores at the optimum"
    )
    patience: int = Field(
        0,
        ge=0,
        le=INT32_MAX,
        description="stop after so many epochs without a better training loss; 0: never",
    )
    tolerance: FiniteFloat = Field(1e-4, ge=0, description="what counts as better, in nats")
    staleness: int = Field(
        0,
        ge=0,
        # vflens.member.step_log.StepLog knows one step of the epoch before: more would need more of them
        le=1,
        description="1: passive parties compute an embedding while the gradient of the one before is still "
        "on its way; needs aggregator = 'active', and often a smaller learning rate",
    )
