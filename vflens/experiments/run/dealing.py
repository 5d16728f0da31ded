"""Splits of columns, and dealing one table into one table per party.

``[split]`` in a configuration is one of six kinds::

    kind = "fraction"      fraction = 0.5              the passive parties share the last columns
    kind = "window"        start = 3, width = 5        … a cyclic window of columns
    kind = "image_halves"                              … the right half of every image
    kind = "image_tiles"   rows = 2, columns = 2       a tile of every image each, in reading order
    kind = "image_channels"   channels = 2             so many channels each, such as views of an object
    kind = "columns"       columns.clinic = ["a", "b"] … these, party by party

The passive parties get contiguous blocks of their columns in the order of their names in the file; the first
blocks are the longer ones. The active party has the other columns and the labels. With as many tiles as
passive parties (one tile: the whole image), or without a channel left, it has the labels alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from vflens.clients.returning import with_returning
from vflens.errors import ConfigError, DataError
from vflens.names import repeated
from vflens.protocol.split import drawn_split
from vflens.randomness import stream
from vflens.tables.pixels import pixel_places
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo
from vflens.words import counted

Blocks: TypeAlias = Mapping[str, Sequence[int]]


class _Split(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        """Positions of the columns of each passive party.

        Raises:
            ConfigError: the split does not fit these columns.
        """


class Columns(_Split):
    """The names of the columns of each passive party."""

    kind: Literal["columns"]
    columns: dict[str, tuple[str, ...]]

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        if set(self.columns) != set(passive):
            raise ConfigError(
                f"split.columns names {sorted(self.columns)}, the passive parties are {sorted(passive)}"
            )
        place = {c.name: j for j, c in enumerate(columns)}
        named = [name for party in passive for name in self.columns[party]]
        unknown = next((name for name in named if name not in place), None)
        if unknown is not None:
            raise ConfigError(f"split.columns names {unknown!r}: the table's columns are {', '.join(place)}")
        twice = repeated(named)
        if twice is not None:
            raise ConfigError(f"split.columns names {twice!r} twice: a column belongs to one party")
        return {party: [place[name] for name in self.columns[party]] for party in passive}


class Fraction(_Split):
    """The last ``fraction`` of the columns, rounded to the nearest number of columns."""

    kind: Literal["fraction"]
    fraction: float = Field(gt=0, lt=1)

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        width = round(self.fraction * len(columns))
        return _shared(range(len(columns) - width, len(columns)), passive)


class Window(_Split):
    """``width`` columns from position ``start`` on, cyclically: RVG averages over all starts."""

    kind: Literal["window"]
    start: int = Field(ge=0)
    width: int = Field(ge=1)

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        if self.width >= len(columns) or self.start >= len(columns):
            raise ConfigError(
                f"split.start = {self.start} and split.width = {self.width} must both be less than "
                f"the table's number of columns, {len(columns)}"
            )
        return _shared([(self.start + i) % len(columns) for i in range(self.width)], passive)


class ImageHalves(_Split):
    """The right half of every image, all channels; of an odd width the middle column stays with the active
    party.
    """

    kind: Literal["image_halves"]

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        across = _places(columns, self.kind)[:, 1]
        width = max(across) + 1
        return _shared([j for j, column in enumerate(across) if 2 * column >= width], passive)


class ImageTiles(_Split):
    """Images cut into ``rows`` × ``columns`` equal tiles of all channels; each passive party has one, in
    reading order.
    """

    kind: Literal["image_tiles"]
    rows: int = Field(ge=1)
    columns: int = Field(ge=1)

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        pixels, grid = _places(columns, self.kind)[:, :2], np.array([self.rows, self.columns])
        size = pixels.max(axis=0) + 1
        if (size % grid).any():
            raise ConfigError(
                f"split.rows = {self.rows} and split.columns = {self.columns}: images of {size[0]} by "
                f"{size[1]} pixels cannot be cut into so many equal tiles"
            )
        if len(passive) > self.rows * self.columns:
            raise ConfigError(
                f"split.rows = {self.rows} and split.columns = {self.columns} make "
                f"{self.rows * self.columns} tiles: "
                f"the {counted(len(passive), 'passive party needs', many='passive parties need')} one each"
            )
        row, column = (pixels // (size // grid)).T
        tile = row * self.columns + column
        return {party: np.flatnonzero(tile == i).tolist() for i, party in enumerate(passive)}


class ImageChannels(_Split):
    """The next ``channels`` of every image for each passive party, in their order: views of an object."""

    kind: Literal["image_channels"]
    channels: int = Field(ge=1)

    def blocks(self, columns: Sequence[ColumnInfo], passive: Sequence[str]) -> Blocks:
        channel = _places(columns, self.kind)[:, 2]
        if len(passive) * self.channels > channel.max() + 1:
            raise ConfigError(
                f"split.channels = {self.channels}: the "
                f"{counted(len(passive), 'passive party needs', many='passive parties need')} "
                f"{len(passive) * self.channels} channels, the images have {channel.max() + 1}"
            )
        share = channel // self.channels
        return {party: np.flatnonzero(share == i).tolist() for i, party in enumerate(passive)}


def _places(columns: Sequence[ColumnInfo], kind: str) -> Array:
    """See :func:`pixel_places`."""
    places = pixel_places(columns)
    if places is None:
        other = next((c.name for c in columns if c.pixel is None), "")
        raise ConfigError(f"split.kind = {kind!r} needs images: column {other!r} is no pixel")
    return places


def _shared(block: Sequence[int], passive: Sequence[str]) -> Blocks:
    parts = np.array_split(np.array(block, np.int64), len(passive))
    return {party: part.tolist() for party, part in zip(passive, parts, strict=True)}


AnySplit: TypeAlias = Columns | Fraction | Window | ImageHalves | ImageTiles | ImageChannels
VerticalSplit: TypeAlias = Annotated[AnySplit, Field(discriminator="kind")]


def deal(
    table: Table,
    split: AnySplit,
    passive: Sequence[str],
    active: str,
    *,
    secret: bytes,
    predict_share: float = 0.2,
    overlap: float = 1.0,
    returning: int = 0,
) -> dict[str, Table]:
    """One table per party, the active one last: its columns, and its rows in its own order.

    ``overlap`` is the share of rows that all parties hold, at least one row. Each other row is missing at one
    party, drawn at random. If the table has no split, ``predict_share`` of its rows, at least one and not
    all, become prediction rows. ``returning`` training rows come back as prediction rows under another id,
    see :mod:`vflens.clients.returning`. All parties hold the same split; only ``active`` holds labels. All
    draws follow from ``secret``, a party's order of rows also from its name.

    Raises:
        ConfigError: a share out of range, no passive party, a party named twice or left without columns,
            or a split that these columns do not allow.
        DataError: the table has no labels.
    """
    _check(table, passive, active, predict_share, overlap)
    if table.split is None:
        drawn = drawn_split(len(table.ids), predict_share, stream(secret, "deal", "split"))
        table = replace(table, split=drawn)
    if returning:
        table = with_returning(table, returning, stream(secret, "deal", "returning"))
    blocks = _all_blocks(table, split, passive, active)
    missing_at = _missing_at(len(table.ids), list(blocks), overlap, secret)
    dealt = {}
    for party, block in blocks.items():
        rows = stream(secret, "deal", "order", party).permutation(np.flatnonzero(missing_at != party))
        dealt[party] = _part(table, block, rows, labelled=party == active)
    return dealt


def _check(table: Table, passive: Sequence[str], active: str, predict_share: float, overlap: float) -> None:
    parties = [*passive, active]
    if not passive or not all(parties) or len(set(parties)) < len(parties):
        raise ConfigError(f"parties {parties}: name at least one passive party and the active one, each once")
    if not 0 < predict_share < 1:
        raise ConfigError(f"predict_share = {predict_share}: it must be above 0 and below 1")
    if not 0 < overlap <= 1:
        raise ConfigError(f"overlap = {overlap}: it must be above 0 and at most 1")
    if table.labels is None:
        raise DataError(f"the table has no labels for the active party {active!r}: deal one that has")


def _all_blocks(table: Table, split: AnySplit, passive: Sequence[str], active: str) -> Blocks:
    blocks = dict(split.blocks(table.columns, passive))
    taken = {j for block in blocks.values() for j in block}
    blocks[active] = [j for j in range(len(table.columns)) if j not in taken]
    for party, block in blocks.items():
        if not block and not (party == active and isinstance(split, ImageTiles | ImageChannels)):
            raise ConfigError(
                f"party {party!r} gets none of the {counted(len(table.columns), 'column')}: change the "
                f"split, or name fewer parties than the {len(passive)} passive ones"
            )
    return blocks


def _missing_at(n: int, parties: Sequence[str], overlap: float, secret: bytes) -> Array:
    """For each of n rows the party without it, "" if all have it."""
    rng = stream(secret, "deal", "overlap")
    missing_at = rng.choice(np.array(parties), n)
    missing_at[rng.permutation(n)[: max(1, round(overlap * n))]] = ""
    return missing_at


def _part(table: Table, columns: Sequence[int], rows: Array, *, labelled: bool) -> Table:
    part = table.take(columns)
    if labelled:
        part = replace(part, labels=table.labels, class_names=table.class_names, label=table.label)
    return part.rows(rows)
