"""A split network: bottom models at the parties, a top model at the active party; its layers in torch.

Bottom models turn each party's columns into an embedding; the embeddings are summed or concatenated in
party-name order, the active party's own last; its top model turns them into logits. Its settings are here,
without torch; the layers are :mod:`vflens.models.networks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from vflens.errors import ConfigError
from vflens.models.family import ModelFamily
from vflens.models.part import Site
from vflens.models.pixels import image_grid
from vflens.models.size import Size, fully_connected
from vflens.types import ColumnInfo, Role

if TYPE_CHECKING:
    from torch.nn import Module

    from vflens.models.networks.training import Bottom, Top

Width = Annotated[int, Field(ge=1, le=65536)]
_SMALLEST = {"cnn": 2, "lenet": 12}  # pixels per side below which the last layer has nothing left


class SplitNetwork(ModelFamily):
    """A split network (the extra `deep`); without a `[model]` a federation trains softmax regression."""

    title: ClassVar[str] = "a split network"
    scores_leave_at: ClassVar[Role] = Role.ACTIVE
    unused_hooks: ClassVar[frozenset[str]] = frozenset()
    devices: ClassVar[frozenset[str]] = frozenset({"cpu", "cuda"})

    family: Literal["split_network"] = "split_network"
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

    @property
    def dtype(self) -> np.dtype[Any]:
        """The configured precision."""
        return np.dtype(self.precision)

    @property
    def concatenates(self) -> bool:
        """As configured."""
        return self.combine == "concatenate"

    @property
    def layer_widths(self) -> Sequence[int]:
        """Of bottom and top models."""
        return (self.width, *self.hidden, *self.top)

    def width_of(self, columns: Sequence[ColumnInfo], classes: int) -> int:
        """That of the embedding."""
        return self.embedding_width(columns)

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

    def width_alone(self, columns: Sequence[ColumnInfo], received: int) -> int:
        """A sum takes the width of the own embedding; nothing stands beside it."""
        if not columns:
            return received
        return self.embedding_width(columns) if self.combine == "sum" else 0

    def part_size(self, role: Role, columns: Sequence[ColumnInfo], received: int, classes: int) -> Size:
        """A bottom model, and the top model at the active party."""
        own = bottom_size(self, columns) if columns else Size()
        if role is Role.PASSIVE:
            return own
        return own + top_size(self, self._top_width(columns, received, classes), classes)

    def passive_part(self, site: Site) -> Bottom:
        """A bottom model."""
        from vflens.models.networks.training import Bottom

        given = (site.columns, site.training, site.keys, site.wrap)
        return Bottom(self, *given, penalty=site.penalty, device=site.device)

    def active_part(self, site: Site) -> Top:
        """The top model, with a bottom model of its own where the party has columns."""
        from vflens.models.networks.training import Top

        return Top(
            self,
            site.columns,
            width=site.received,
            classes=site.classes,
            training=site.training,
            keys=site.keys,
            wrap=site.wrap,
            penalty=site.penalty,
            device=site.device,
        )

    def network(self) -> SplitNetwork:
        """Itself."""
        return self

    def module(self, role: Role, site: Site) -> Module:
        """A passive party's bottom model, the active party's top model."""
        from vflens.models.networks.architectures import bottom, top

        if role is Role.PASSIVE:
            return bottom(self, site.columns)
        return top(self, self._top_width(site.columns, site.received, site.classes), site.classes)

    def in_the_clear(self, *, direct: bool) -> str:
        """See :meth:`ModelFamily.in_the_clear`."""
        labels = "every passive party sees the gradient of its own embedding, which can tell labels."
        if direct:
            return (
                "embeddings went straight to the active party, which sees each passive party's own embedding "
                "of every row, in training and "
                f"prediction; the coordinator sees neither embeddings nor gradients; {labels}"
            )
        seen = "their sum" if self.combine == "sum" else "all of them side by side"
        return (
            "the coordinator sees each passive party's own embedding of every row, in training and "
            "prediction, and all gradients; "
            f"the active party sees {seen}; {labels}"
        )

    def _top_width(self, columns: Sequence[ColumnInfo], received: int, classes: int) -> int:
        own = [self.embedding_width(columns)] if columns else []
        return self.combined_width([received, *own], classes)


def bottom_size(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> Size:
    """A bottom model on ``columns``; the convolutions are those of
    :mod:`vflens.models.networks.architectures`.
    """
    d, width = len(columns), network.embedding_width(columns)
    if network.architecture == "cnn":
        return Size((9 + 1) * 8 + (8 * 9 + 1) * 16, 27 * d)
    if network.architecture == "lenet":
        return Size((25 + 1) * 6 + (6 * 25 + 1) * 16, 23 * d + width)
    return fully_connected([d, *network.hidden, width])


def top_size(network: SplitNetwork, width: int, classes: int) -> Size:
    """The top model on an embedding of ``width`` numbers."""
    if not network.trainable_top:
        return Size(0, classes)
    return fully_connected([width, *network.top, classes]) + Size(0, width)
