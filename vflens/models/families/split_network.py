"""A split network: bottom models at the parties, a top model at the active party; its layers in torch.

Bottom models turn each party's columns into an embedding; the embeddings are summed or concatenated in
party-name order, the active party's own last; its top model turns them into logits. Its settings are here,
without torch; the layers are :mod:`vflens.models.networks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from vflens.errors import ConfigError
from vflens.models.blocks import blocks, bottom_layers, feature_blocks, top_layers
from vflens.models.family import ModelFamily
from vflens.models.layers import (
    Beside,
    Convolution,
    Residual,
    Shape,
    has_batch_norm,
    inputs_of,
    shape_of,
    size_of,
)
from vflens.models.part import Site
from vflens.models.pixels import image_grid
from vflens.models.size import Size
from vflens.types import ColumnInfo, Role

if TYPE_CHECKING:
    from torch.nn import Module

    from vflens.models.networks.training import Bottom, Top

Width = Annotated[int, Field(ge=1, le=65536)]
Preset = Literal["fedadob-vertical", "fedadob-horizontal"]
#: Architectures of rows of numbers; all others read images.
_OF_NUMBERS = frozenset({"mlp", "dcn"})
#: Settings that some architectures alone read.
_READ_BY = {"width": _OF_NUMBERS, "hidden": _OF_NUMBERS, "dropout": frozenset({"mlp"})}
#: Those whose baselines have a batch norm only where ``batch_norm`` puts one.
_WITHOUT_NORM = frozenset({"cnn", "lenet", "alexnet"})
#: FedAdOb's, of fully connected layers that its Table IX counts.
_DEFAULTS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "alexnet": {"top": ()},
    "resnet18": {"top": ()},
    "dcn": {"hidden": (64, 64), "top": ()},
}


def _known_cut(cut: object) -> object:
    if cut in get_args(Preset) or (type(cut) is int and cut >= 1):
        return cut
    raise ValueError(f"it is a number of blocks from 1, or one of {', '.join(get_args(Preset))}")


def _shown(value: object) -> str:
    """``value`` as the configuration's file has it."""
    return str(list(value) if isinstance(value, tuple) else value)


class SplitNetwork(ModelFamily):
    """A split network (the extra `deep`); without a `[model]` a federation trains softmax regression."""

    title: ClassVar[str] = "a split network"
    scores_leave_at: ClassVar[Role] = Role.ACTIVE
    unused_hooks: ClassVar[frozenset[str]] = frozenset()
    prepared: ClassVar[tuple[str, ...]] = ("vflens.models.networks.training",)
    devices: ClassVar[frozenset[str]] = frozenset({"cpu", "cuda"})

    family: Literal["split_network"] = "split_network"
    architecture: Literal["mlp", "cnn", "lenet", "alexnet", "resnet18", "dcn"] = Field(
        description="its blocks; all but `mlp` and `dcn` need a rectangle of pixels at every party"
    )
    cut: Annotated[Preset | int, BeforeValidator(_known_cut)] = Field(
        "fedadob-vertical",
        description="how many blocks every bottom model has; FedAdOb's are all before the layers of `top`, "
        "and 1 in its horizontal setting",
    )
    batch_norm: bool = Field(
        False,
        description="`cnn`, `lenet`, `alexnet`: a batch norm behind the last convolution of every bottom "
        "model, as FedAdOb's baselines have it; `resnet18` has its own",
    )
    width: Width = Field(
        64, description="`mlp`, `dcn`: numbers that the layer behind the hidden ones gives per row"
    )
    hidden: tuple[Width, ...] = Field(
        (), max_length=16, description="`mlp`, `dcn`: widths of hidden layers; default of `dcn`: 64, 64"
    )
    top: tuple[Width, ...] = Field(
        (32,),
        max_length=16,
        description="widths of the fully connected layers before the one to the classes; default: 32, of "
        "`alexnet`, `resnet18` and `dcn` none",
    )
    trainable_top: bool = Field(True, description="false: the summed embeddings are the logits")
    combine: Literal["sum", "concatenate"] = Field("sum", description="how the embeddings become one")
    dropout: float = Field(0.0, ge=0, lt=1, description="`mlp`: share of hidden units dropped in training")
    precision: Literal["float32", "float64"] = "float32"

    @model_validator(mode="before")
    @classmethod
    def _of_architecture(cls, settings: Any) -> Any:
        """Defaults that depend on the architecture."""
        if not isinstance(settings, dict):
            return settings
        return {**_DEFAULTS.get(str(settings.get("architecture")), {}), **settings}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        most = len(blocks(self))
        if self.bottom_blocks > most:
            raise ValueError(
                f"cut = {self.cut}: {self.architecture!r} with these settings has {most} blocks before the "
                f"layer to the classes: choose 1 to {most}"
            )
        if self.batch_norm and self.architecture not in _WITHOUT_NORM:
            raise ValueError(f"batch_norm = true: {self.architecture!r} has no place for one, leave it out")
        if self.concatenates and isinstance(self._first_of_top, Beside):
            raise ValueError(
                f"cut = {self.cut} of 'dcn' with combine = 'concatenate': the top cannot tell cross from "
                f"deep numbers, combine by sum or set cut = {len(feature_blocks(self))}"
            )
        return self

    @model_validator(mode="after")
    def _is_read(self) -> Self:
        for name, architectures in _READ_BY.items():
            value = getattr(self, name)
            if self.architecture not in architectures and value != type(self).model_fields[name].default:
                raise ValueError(
                    f"{name} = {_shown(value)}: {self.architecture!r} has no place for it, leave it out, or "
                    f"choose {' or '.join(sorted(architectures))}"
                )
        return self

    @property
    def bottom_blocks(self) -> int:
        """How many blocks a bottom model has."""
        if isinstance(self.cut, int):
            return self.cut
        return len(feature_blocks(self)) if self.cut == "fedadob-vertical" else 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The configured precision."""
        return np.dtype(self.precision)

    @property
    def concatenates(self) -> bool:
        """Whether embeddings are put side by side."""
        return self.combine == "concatenate"

    @property
    def layer_widths(self) -> Sequence[int]:
        """The widths of the layers of bottom and top models."""
        return (self.width, *self.hidden, *self.top)

    def width_of(self, columns: Sequence[ColumnInfo], classes: int) -> int:
        """That of the embedding."""
        return self.embedding_width(columns)

    def embedding_width(self, columns: Sequence[ColumnInfo]) -> int:
        """Numbers per row of the embedding of a party with ``columns``.

        Raises:
            ConfigError: the architecture does not fit these columns.
        """
        return prod(self.embedding_shape(columns))

    def embedding_shape(self, columns: Sequence[ColumnInfo]) -> Shape:
        """The shape of a row's embedding before it is flattened.

        Raises:
            ConfigError: the architecture does not fit these columns.
        """
        given = self.input_shape(columns)
        if len(given) == 3 and not self._holds(given):
            smallest = next(n for n in count(1) if self._holds((given[0], n, n)))
            raise ConfigError(
                f"model.architecture {self.architecture!r} needs images of at least {smallest} by {smallest} "
                f"pixels, a party holds {given[1]} by {given[2]}: cut them otherwise, or choose mlp"
            )
        return shape_of(bottom_layers(self), given)

    def input_shape(self, columns: Sequence[ColumnInfo]) -> Shape:
        """The shape of a row of ``columns`` as the bottom model reads it.

        Raises:
            ConfigError: the architecture reads images, and the columns are none.
        """
        if self.architecture in _OF_NUMBERS:
            return (len(columns),)
        return tuple(map(int, image_grid(columns).shape))

    @property
    def mixes_rows(self) -> bool:
        return self.batch_norm or any(has_batch_norm(block) for block in blocks(self))

    def _holds(self, given: Shape) -> bool:
        """Whether every layer before the fully connected ones leaves something of an image."""
        layers = [layer for block in blocks(self) for layer in block]
        return all(min(shape) >= 1 for _, shape in inputs_of(layers, given)) and (
            min(shape_of(layers, given)) >= 1
        )

    def top_shape(self, width: int, parties: Sequence[Sequence[ColumnInfo]]) -> Shape:
        """How the top model reads a row of the combined embedding (width,), of ``parties`` by their columns:
        as it is, or as an image (channels, height, width) where it begins with a convolution.

        Raises:
            ConfigError: such images of the parties differ in size.
        """
        if not isinstance(self._first_of_top, Convolution | Residual):
            return (width,)
        sides = sorted({self.embedding_shape(columns)[1:] for columns in parties if columns})
        if len(sides) != 1:
            raise ConfigError(
                f"model.cut = {self.cut!r}: the top model begins with a convolution, and the parties' "
                f"embeddings are images of {sides} places: cut the images alike, or choose a larger cut"
            )
        return (width // prod(sides[0]), *sides[0])

    @property
    def _first_of_top(self) -> object:
        return next(iter(top_layers(self, 1)), None)

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
                "model.trainable_top = false makes the summed embeddings the logits: combine by sum, of an "
                f"'mlp' with width = {classes}"
            )
        return total

    def width_alone(self, columns: Sequence[ColumnInfo], received: int) -> int:
        """A sum takes the width of the own embedding; nothing stands beside it."""
        if not columns:
            return received
        return self.embedding_width(columns) if self.combine == "sum" else 0

    def part_size(
        self, role: Role, columns: Sequence[ColumnInfo], peers: Sequence[Sequence[ColumnInfo]], classes: int
    ) -> Size:
        """A bottom model, and the top model at the active party."""
        own = bottom_size(self, columns) if columns else Size()
        if _holds_bottom_alone(role):
            return own
        parties = [*peers, columns] if columns else peers
        width = self.combined_width([self.embedding_width(c) for c in parties], classes)
        return own + top_size(self, self.top_shape(width, parties), classes)

    def passive_part(self, site: Site) -> Bottom:
        """A bottom model."""
        from vflens.models.networks.training import Bottom

        given = (site.columns, site.training, site.keys, site.wrap)
        return Bottom(self, *given, penalty=site.penalty, optimize=site.optimize, device=site.device)

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
            peers=site.peers,
            wraps_bottom=site.wraps_bottom,
        )

    def network(self) -> SplitNetwork:
        """Itself."""
        return self

    def module(self, role: Role, site: Site) -> Module:
        """A passive party's bottom model, the active party's top model."""
        from vflens.models.networks.architectures import bottom, top

        if _holds_bottom_alone(role):
            return bottom(self, site.columns)
        own = [self.embedding_width(site.columns)] if site.columns else []
        width = self.combined_width([site.received, *own], site.classes)
        return top(self, width, site.classes, [*site.peers, site.columns])

    def in_the_clear(self, *, direct: bool) -> str:
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


def _holds_bottom_alone(role: Role) -> bool:
    return role is Role.PASSIVE


def bottom_size(network: SplitNetwork, columns: Sequence[ColumnInfo]) -> Size:
    """A bottom model on ``columns``, and what it reads as images.

    Raises:
        ConfigError: the architecture does not fit the columns.
    """
    network.embedding_width(columns)
    given = network.input_shape(columns)
    read = Size(0, prod(given)) if len(given) == 3 else Size()
    return read + size_of(bottom_layers(network), given)


def top_size(network: SplitNetwork, shape: Shape, classes: int) -> Size:
    """The top model on a combined embedding that it reads in ``shape``."""
    return size_of(top_layers(network, classes), shape) + Size(0, classes)
