"""Images kept as bytes give what the same numbers give as float64, and every party keeps them as bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import estimates, experiment, figures, trained, transcripts
from oneprocess import LocalFederation

from vflens.array import ScaledColumns, in_unit
from vflens.experiments.run.dealer import write_parties
from vflens.experiments.run.dealing import ImageHalves, deal
from vflens.storage.files import load_arrays
from vflens.tables.table import Table
from vflens.types import ColumnInfo

SIDE, CHANNELS, ROWS = 4, 3, 90


def _images() -> Table:
    """Colour images, brighter in the second class, as bytes."""
    rng = np.random.default_rng(0)
    labels = np.arange(ROWS) % 2
    places = [(r, c, k) for r in range(SIDE) for c in range(SIDE) for k in range(CHANNELS)]
    return Table(
        np.array([b"%03d" % i for i in range(ROWS)]),
        tuple(ColumnInfo("pixel_{}_{}_{}".format(*p), 0.0, 255.0, pixel=p) for p in places),
        rng.integers(0, 156, (ROWS, len(places)), np.uint8) + 100 * labels[:, None].astype(np.uint8),
        labels,
        class_names=("dark", "bright"),
    )


def _run(table: Table, home: Path, **changes: Any) -> LocalFederation:
    what = experiment(
        home,
        lab=True,
        attacks=[{"name": "half_star"}, {"name": "lmmse"}, {"name": "agnostic"}],
        disclose=[{"what": w, "to": "active"} for w in ("parameters", "moments")]
        + [{"what": "auxiliary", "to": "active", "rows": 5}],
        **changes,
    )
    tables = deal(table, ImageHalves(kind="image_halves"), ["passive"], "active", secret=bytes(32))
    local = LocalFederation(
        write_parties(what, what.scenarios[0], tables, home), lambda stage, done, total: None
    )
    local.run()
    return local


@pytest.mark.parametrize(
    "defenses", [(), [{"name": "transform_inputs", "at": "passive", "kind": "complement"}]]
)
def test_bytes_give_the_bits_of_floats(tmp_path: Path, defenses: Any) -> None:
    table = _images()
    as_floats = replace(table, features=table.features.astype(np.float64))
    ours, theirs = (
        _run(t, tmp_path / name, defenses=defenses) for t, name in ((table, "bytes"), (as_floats, "floats"))
    )
    for local, kind in ((ours, np.uint8), (theirs, np.float64)):
        for party in local.data_parties.values():
            assert party.run.truth.kept.dtype == kind
            assert party.table.features.dtype == kind
            assert party.clipped == 0
    inputs = ours.data_parties["passive"].run.inputs.kept.dtype
    assert inputs == (np.float64 if defenses else np.uint8)  # a defence makes numbers between bytes
    assert trained(ours) == trained(theirs)
    assert transcripts(tmp_path / "bytes") == transcripts(tmp_path / "floats")
    assert estimates(tmp_path / "bytes") == estimates(tmp_path / "floats")
    assert len(estimates(tmp_path / "bytes")) == 4  # with the guess from own columns
    for name in ("passive", "active"):
        found, expected = (figures(tmp_path / kind / name) for kind in ("bytes", "floats"))
        assert found.keys() == expected.keys()
        times = {(name, "", "") for name in ("train_seconds", "predict_seconds", "steps_per_second")}
        for key in found.keys() - times:
            assert found[key] == pytest.approx(expected[key], rel=1e-12, nan_ok=True), key


def test_the_adversary_s_own_file_has_bytes(tmp_path: Path) -> None:
    local = _run(_images(), tmp_path)
    own = load_arrays(tmp_path / "active" / "own.npz")["features"]
    assert own.dtype == np.uint8
    np.testing.assert_array_equal(own / 255, local.active.run.inputs[:])


def test_scaled_columns_are_read_by_rows() -> None:
    kept = np.random.default_rng(1).integers(0, 256, (7, 3), np.uint8)
    columns, rows = ScaledColumns(kept), np.array([5, 0, 5])
    assert (columns.shape, len(columns)) == ((7, 3), 7)
    np.testing.assert_array_equal(columns[rows], kept[rows] / 255)
    np.testing.assert_array_equal(columns[2:4], kept[2:4] / 255)
    np.testing.assert_allclose(columns.mean(rows[:2]), kept[[0, 5]].sum(axis=0) / 510, rtol=1e-15)
    floats = ScaledColumns(columns[:])
    assert np.shares_memory(floats[:], floats.kept)
    np.testing.assert_allclose(floats.mean(rows[:2]), columns.mean(rows[:2]), rtol=1e-15)
    assert in_unit(np.array([3])).dtype == np.int64
