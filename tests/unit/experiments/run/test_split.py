"""Vertical splits and the dealing of one table to several parties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from vflens.config import validate
from vflens.errors import ConfigError, DataError
from vflens.experiments.run.dealing import AnySplit, VerticalSplit, deal
from vflens.tables.table import Table
from vflens.types import ColumnInfo

SECRET = bytes(32)
ADAPTER: TypeAdapter[AnySplit] = TypeAdapter(VerticalSplit)


def split(kind: str, **options: Any) -> AnySplit:
    return validate(ADAPTER, {"kind": kind, **options}, "split")


def table(n: int = 10, d: int = 6, *, image_width: int | None = None, given: bool = False) -> Table:
    """Cell (i, j) holds 1000 i + j, so that a dealt value says where it came from."""
    pixels = [None if image_width is None else (j // image_width, j % image_width) for j in range(d)]
    return Table(
        ids=np.array([f"r{i}" for i in range(n)]),
        columns=tuple(ColumnInfo(f"x{j}", pixel=pixels[j]) for j in range(d)),
        features=1000.0 * np.arange(n)[:, None] + np.arange(d),
        labels=np.arange(n) % 2,
        class_names=("no", "yes"),
        split=(np.arange(n) % 3 == 0).astype(np.uint8) if given else None,
    )


def names(part: Table) -> list[str]:
    return [c.name for c in part.columns]


@pytest.mark.parametrize(
    ("options", "passive"),
    [
        ({"kind": "fraction", "fraction": 0.5}, ["x3", "x4", "x5"]),
        ({"kind": "window", "start": 1, "width": 2}, ["x1", "x2"]),
        ({"kind": "window", "start": 4, "width": 3}, ["x4", "x5", "x0"]),
        ({"kind": "columns", "columns": {"p": ["x5", "x2"]}}, ["x5", "x2"]),
    ],
)
def test_kinds(options: dict[str, Any], passive: list[str]) -> None:
    dealt = deal(table(), split(**options), ["p"], "a", secret=SECRET)
    assert names(dealt["p"]) == passive
    assert names(dealt["a"]) == [f"x{j}" for j in range(6) if f"x{j}" not in passive]


@pytest.mark.parametrize(("width", "right"), [(2, {1}), (3, {2})])
def test_image_halves(width: int, right: set[int]) -> None:
    dealt = deal(table(image_width=width), split("image_halves"), ["p"], "a", secret=SECRET)
    assert {c.pixel[1] for c in dealt["p"].columns if c.pixel} == right
    assert {c.pixel[1] for c in dealt["a"].columns if c.pixel}.isdisjoint(right)


@pytest.mark.parametrize(
    ("rows", "columns", "passive", "tiles"),
    [
        (1, 1, "p", {"p": range(24)}),  # the whole image; the active party has the labels
        (1, 2, "p", {"p": [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20]}),
        (2, 3, "pq", {"p": [0, 1, 6, 7], "q": [2, 3, 8, 9]}),
        (2, 3, "abcdef", {"d": [12, 13, 18, 19], "f": [16, 17, 22, 23]}),
    ],
)
def test_image_tiles(rows: int, columns: int, passive: str, tiles: dict[str, Any]) -> None:
    """Images of 4 by 6 pixels; every pixel belongs to one party."""
    made = table(d=24, image_width=6)
    dealt = deal(made, split("image_tiles", rows=rows, columns=columns), [*passive], "z", secret=SECRET)
    for party, tile in tiles.items():
        assert names(dealt[party]) == [f"x{j}" for j in tile]
    assert sorted(n for part in dealt.values() for n in names(part)) == sorted(names(made))
    assert all(len({c.pixel for c in dealt[p].columns}) == 24 // (rows * columns) for p in passive)
    assert dealt["z"].labels is not None


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"kind": "image_halves"}, [(0, 1), (1, 1)]),
        ({"kind": "image_tiles", "rows": 2, "columns": 1}, [(0, 0), (0, 1)]),
        ({"kind": "image_tiles", "rows": 1, "columns": 1}, [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_all_channels_of_a_pixel_go_to_one_party(options: dict[str, Any], places: list[Any]) -> None:
    """Images of 2 by 2 pixels; as in CIFAR's files all of a colour come before the next."""
    pixels = [(r, c, channel) for channel in range(3) for r in range(2) for c in range(2)]
    made = replace(table(d=12), columns=tuple(ColumnInfo(f"x{j}", pixel=p) for j, p in enumerate(pixels)))
    dealt = deal(made, split(**options), ["p"], "a", secret=SECRET)
    assert {c.pixel for c in dealt["p"].columns} == {(*place, k) for place in places for k in range(3)}
    assert len(dealt["p"].columns) + len(dealt["a"].columns) == 12


@pytest.mark.parametrize(
    ("channels", "passive", "active"), [(2, "pqr", []), (1, "p", [1, 2, 3, 4, 5]), (2, "pq", [4, 5])]
)
def test_image_channels(channels: int, passive: str, active: list[int]) -> None:
    """Six views of 2 by 1 pixels; the active party keeps those that are left."""
    views = tuple(ColumnInfo(f"x{j}", pixel=(j // 6, 0, j % 6)) for j in range(12))
    made = replace(table(d=12), columns=views)
    dealt = deal(made, split("image_channels", channels=channels), [*passive], "a", secret=SECRET)
    for i, party in enumerate(passive):
        held = range(i * channels, (i + 1) * channels)
        assert [c.pixel for c in dealt[party].columns] == [(r, 0, k) for r in range(2) for k in held]
    assert [c.pixel for c in dealt["a"].columns] == [(r, 0, k) for r in range(2) for k in active]
    with pytest.raises(ConfigError, match="passive parties need 8 channels, the images have 6"):
        deal(made, split("image_channels", channels=4), ["p", "q"], "a", secret=SECRET)


def test_several_passive_parties_get_contiguous_blocks_in_the_order_named() -> None:
    dealt = deal(table(d=9), split("fraction", fraction=0.8), ["q", "p"], "a", secret=SECRET)
    assert list(dealt) == ["q", "p", "a"]
    assert names(dealt["q"]) == ["x2", "x3", "x4", "x5"]
    assert names(dealt["p"]) == ["x6", "x7", "x8"]


@given(
    n=st.integers(2, 40),
    d=st.integers(3, 12),
    overlap=st.floats(0.01, 1),
    given_split=st.booleans(),
    data=st.data(),
)
def test_dealing_partitions_the_columns_and_keeps_every_cell(
    n: int, d: int, overlap: float, given_split: bool, data: st.DataObject
) -> None:
    whole = table(n, d, given=given_split)
    parties = data.draw(st.integers(1, 2))
    start, width = data.draw(st.integers(0, d - 1)), data.draw(st.integers(parties, d - 1))
    passive = ["p", "q"][:parties]
    dealt = deal(
        whole, split("window", start=start, width=width), passive, "a", secret=SECRET, overlap=overlap
    )
    assert sorted(name for part in dealt.values() for name in names(part)) == sorted(names(whole))
    place = {row: i for i, row in enumerate(whole.ids)}
    splits: dict[str, int] = {}
    for party, part in dealt.items():
        rows = np.array([place[row] for row in part.ids], dtype=int)
        columns = [int(name[1:]) for name in names(part)]
        assert np.array_equal(part.features, whole.features[rows][:, columns])
        assert (part.labels is None) == (party != "a")
        assert part.split is not None
        for row, where in zip(part.ids, part.split, strict=True):
            assert splits.setdefault(row, where) == where
    labels = dealt["a"].labels
    assert labels is not None
    assert np.array_equal(labels, [place[row] % 2 for row in dealt["a"].ids])
    held = [set(part.ids) for part in dealt.values()]
    assert len(set.intersection(*held)) == max(1, round(overlap * n))
    assert set.union(*held) == set(whole.ids)
    if whole.split is not None:
        assert all(whole.split[place[row]] == where for row, where in splits.items())


def test_only_the_active_party_is_told_the_classes() -> None:
    dealt = deal(table(), split("fraction", fraction=0.5), ["p"], "a", secret=SECRET)
    assert (dealt["p"].class_names, dealt["a"].class_names) == ((), ("no", "yes"))


def test_the_drawn_split_has_the_share_asked_for() -> None:
    def predicted(share: float) -> int:
        part = deal(
            table(50), split("fraction", fraction=0.5), ["p"], "a", secret=SECRET, predict_share=share
        )["a"]
        assert part.split is not None
        return int(part.split.sum())

    assert [predicted(s) for s in (0.001, 0.2, 0.999)] == [1, 10, 49]


def test_draws_follow_from_the_secret_and_orders_from_the_names_too() -> None:
    def order(secret: bytes, party: str) -> list[str]:
        dealt = deal(table(100), split("fraction", fraction=0.5), ["p", "q"], "a", secret=secret)
        ids: list[str] = dealt[party].ids.tolist()
        return ids

    assert order(SECRET, "p") == order(SECRET, "p")
    assert len({tuple(order(s, p)) for s in (SECRET, b"other") for p in ("p", "q", "a")}) == 6


def test_several_draws_miss_rows_at_every_party() -> None:
    dealt = deal(table(1000), split("fraction", fraction=0.5), ["p", "q"], "a", secret=SECRET, overlap=0.4)
    # Each party lacks a third of 600 rows: 200, with standard deviation 11.5.
    assert max(abs(1000 - len(part.ids) - 200) for part in dealt.values()) < 5 * 11.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kind": "columns", "columns": {"p": ["x9"]}},
            "split.columns names 'x9': the table's columns are x0, x1",
        ),
        ({"kind": "columns", "columns": {"p": ["x1", "x1"]}}, "split.columns names 'x1' twice"),
        (
            {"kind": "columns", "columns": {"r": ["x1"]}},
            r"split.columns names \['r'\], the passive parties are \['p'\]",
        ),
        ({"kind": "columns", "columns": {"p": []}}, "party 'p' gets none of the 6 columns"),
        (
            {"kind": "columns", "columns": {"p": [f"x{j}" for j in range(6)]}},
            "party 'a' gets none of the 6 columns",
        ),
        ({"kind": "fraction", "fraction": 0.01}, "party 'p' gets none of the 6 columns"),
        ({"kind": "fraction", "fraction": 0.99}, "party 'a' gets none of the 6 columns"),
        ({"kind": "fraction", "fraction": 1.0}, r"fraction: give less than 1 \(got 1.0\)"),
        ({"kind": "fraction"}, "fraction: it is missing"),
        (
            {"kind": "window", "start": 0, "width": 6},
            "split.start = 0 and split.width = 6 must both be less than .* 6",
        ),
        (
            {"kind": "window", "start": 6, "width": 1},
            "split.start = 6 and split.width = 1 must both be less than .* 6",
        ),
        ({"kind": "image_halves"}, "split.kind = 'image_halves' needs images: column 'x0' is no pixel"),
        (
            {"kind": "image_tiles", "rows": 1, "columns": 1},
            "split.kind = 'image_tiles' needs images: column 'x0' is",
        ),
        ({"kind": "image_halves", "width": 3}, r"width: there is no such setting"),
        (
            {"kind": "halves"},
            "its 'kind' is 'halves': give .*, did you mean image_halves",
        ),
    ],
)
def test_splits_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deal(table(), split(**options), ["p"], "a", secret=SECRET)


@pytest.mark.parametrize(
    ("passive", "options", "message"),
    [
        ([], {}, r"parties \['a'\]: name at least one passive party"),
        (["p", "p"], {}, r"parties \['p', 'p', 'a'\]: .* each once"),
        (["a"], {}, r"parties \['a', 'a'\]: .* each once"),
        (
            ["p", "q", "r", "s"],
            {},
            "party 's' gets none of the 6 columns: change the split, or name fewer parties",
        ),
        (["p"], {"predict_share": 0.0}, "predict_share = 0.0: it must be above 0 and below 1"),
        (["p"], {"predict_share": 1.0}, "predict_share = 1.0: it must be above 0 and below 1"),
        (["p"], {"overlap": 0.0}, "overlap = 0.0: it must be above 0 and at most 1"),
        (["p"], {"overlap": 1.1}, "overlap = 1.1: it must be above 0 and at most 1"),
        (["p"], {"overlap": float("nan")}, "overlap = nan"),
    ],
)
def test_deals_that_cannot_work_are_refused(
    passive: list[str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        deal(table(), split("fraction", fraction=0.5), passive, "a", secret=SECRET, **options)


def test_a_table_without_labels_is_refused() -> None:
    with pytest.raises(DataError, match="the table has no labels for the active party 'a'"):
        deal(replace(table(), labels=None), split("fraction", fraction=0.5), ["p"], "a", secret=SECRET)


def test_images_that_do_not_divide_and_tiles_that_do_not_suffice_are_refused() -> None:
    made = table(d=24, image_width=6)
    with pytest.raises(
        ConfigError, match=r"^split.rows = 3 and split.columns = 2: images of 4 by 6 pixels cannot be cut"
    ):
        deal(made, split("image_tiles", rows=3, columns=2), ["p"], "a", secret=SECRET)
    with pytest.raises(ConfigError, match=r"make 2 tiles: the 3 passive parties need one each$"):
        deal(made, split("image_tiles", rows=1, columns=2), ["p", "q", "r"], "a", secret=SECRET)
