"""Data sets: what is listed, what is loaded, what is refused; whole local files are facts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datafiles import needs_file
from loaded import counts, load

import vflens.datasets
from vflens.datasets import _local
from vflens.datasets._build import checked_table, encoded, integers
from vflens.datasets._resolve import dataset
from vflens.datasets.cifar10 import CLASSES
from vflens.datasets.digits import Digits
from vflens.errors import ConfigError, DataError, PluginError
from vflens.plugins.dataset import Dataset
from vflens.registry import DATASETS
from vflens.tables.files import read_party_table, write_party_table
from vflens.tables.table import Table
from vflens.testing import DatasetContract
from vflens.testing.datasets import assert_sound
from vflens.types import Array, ColumnInfo

BUNDLED = {"digits": (1797, 64), "breast_cancer": (569, 30), "wine": (178, 13)}


#: Shapes and class counts (training part, prediction part) as published with the files.
LOCAL: Mapping[str, tuple[tuple[int, int], dict[str, int], dict[str, int] | None]] = {
    "bank": ((41188, 19), {"no": 36548, "yes": 4640}, None),
    "robot": (
        (5456, 24),
        {"Move-Forward": 2205, "Sharp-Right-Turn": 2097, "Slight-Right-Turn": 826, "Slight-Left-Turn": 328},
        None,
    ),
    "grid": ((10000, 12), {"unstable": 6380, "stable": 3620}, None),
    "satellite": (
        (6435, 36),
        {
            "red soil": 1072,
            "cotton crop": 479,
            "grey soil": 961,
            "damp grey soil": 415,
            "vegetation stubble": 470,
            "very damp grey soil": 1038,
        },
        {
            "red soil": 461,
            "cotton crop": 224,
            "grey soil": 397,
            "damp grey soil": 211,
            "vegetation stubble": 237,
            "very damp grey soil": 470,
        },
    ),
    "pendigits": (
        (10992, 16),
        dict(zip("0123456789", (780, 779, 780, 719, 780, 720, 720, 778, 719, 719), strict=True)),
        dict(zip("0123456789", (363, 364, 364, 336, 364, 335, 336, 364, 336, 336), strict=True)),
    ),
    "adult": ((48842, 13), {"<=50K": 24720, ">50K": 7841}, {"<=50K": 12435, ">50K": 3846}),
    "mnist": (
        (70000, 784),
        dict(zip("0123456789", (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949), strict=True)),
        dict(zip("0123456789", (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009), strict=True)),
    ),
    "criteo": ((10000, 13 + 26 * 8), {"no click": 7818, "click": 2182}, None),
    "cifar10": ((60000, 3072), dict.fromkeys(CLASSES, 5000), dict.fromkeys(CLASSES, 1000)),
    "cifar10_lossless": (
        (4000, 3072),
        dict(zip(CLASSES, (396, 366, 420, 384, 422, 393, 414, 385, 407, 413), strict=True)),
        None,
    ),
}


ABSENT = {"cifar100", "modelnet"}  # tested on files that tests make
needs_data = needs_file("sensor_readings_24.data.gz")


def values(table: Table, name: str) -> Array:
    column: Array = table.features[:, [c.name for c in table.columns].index(name)]
    return column


def half_error(x: Array) -> float:
    """MSE of the guess ½ when every column is scaled to [0, 1] by its extremes."""
    scaled = (x - x.min(0)) / np.ptp(x, axis=0)
    return float(((scaled - 0.5) ** 2).mean())


def test_the_registry_is_the_folder_and_every_summary_is_a_line() -> None:
    files = {f.stem for f in Path(vflens.datasets.__path__[0]).glob("[!_]*.py")}
    assert set(DATASETS.names()) >= files == {*BUNDLED, *LOCAL, *ABSENT, "diabetes", "synthetic", "openml"}
    assert all(DATASETS.summary(name).endswith(".") for name in files)


def test_importing_every_data_set_imports_no_slow_library() -> None:
    code = (
        "import sys; from vflens.registry import DATASETS; [DATASETS.get(n) for n in "
        "DATASETS.names()];"
        "print(sorted({'sklearn', 'scipy', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestEveryBundledSet(DatasetContract):
    @pytest.fixture(params=[*BUNDLED, "diabetes", "synthetic"])
    def dataset(self, request: pytest.FixtureRequest) -> Dataset:
        return dataset(request.param, {})


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_sets_load(name: str) -> None:
    table = load(name)
    assert table.features.shape == BUNDLED[name]
    assert table.split is None
    assert table.ids[0] == f"{name}-000000".encode()


def test_diabetes_has_a_number_as_label(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load("diabetes")
    assert table.features.shape == (442, 10)
    assert table.label == ColumnInfo("progression", 25.0, 346.0)
    assert table.labels is not None
    assert (table.labels.min(), table.labels.max(), table.labels[0]) == (25, 346, 151)
    assert table.features[0, 0] == 59  # years: unscaled
    monkeypatch.setattr("vflens.datasets.diabetes._SUM", 1.0)
    with pytest.raises(DataError, match="its source has changed"):
        load("diabetes")


def test_digits_are_pictures_with_the_known_blind_errors() -> None:
    table = load("digits")
    assert [c.pixel for c in table.columns[:9]] == [*((0, c) for c in range(8)), (1, 0)]
    assert table.columns[0] == integers("pixel_0_0", 0, 16, pixel=(0, 0))
    right = table.features[:, [c.pixel is not None and c.pixel[1] >= 4 for c in table.columns]] / 16
    assert right.shape == (1797, 32)
    assert ((right - right.mean(0)) ** 2).mean() == pytest.approx(0.0794, abs=5e-5)
    assert ((right - 0.5) ** 2).mean() == pytest.approx(0.1777, abs=5e-5)


def test_class_names_follow_the_source() -> None:
    assert counts(load("breast_cancer")) == {"malignant": 212, "benign": 357}
    assert counts(load("wine")) == {"class_0": 59, "class_1": 71, "class_2": 48}


def test_synthetic_follows_from_its_options() -> None:
    options = {"rows": 300, "features": 6, "classes": 3, "informative": 3}
    table = load("synthetic", **options, seed=4)
    assert table.features.shape == (300, 6)
    assert table.class_names == ("0", "1", "2")
    assert all(90 <= n <= 110 for n in counts(table).values())
    again, other = (load("synthetic", **options | {"seed": seed}) for seed in (4, 5))
    assert np.array_equal(table.features, again.features)
    assert not np.array_equal(table.features, other.features)
    assert table.labels is not None
    assert (np.diff(table.labels) < 0).sum() > 50  # not sorted by class
    between = np.ptp([table.features[table.labels == k].mean(0) for k in range(3)], axis=0)
    assert between.max() > 1  # the noise has standard deviation 1, its means .1


def test_a_data_set_survives_the_round_trip_through_a_party_file(tmp_path: Path) -> None:
    table = load("digits")
    again = read_party_table(write_party_table(table, tmp_path), tmp_path)
    assert again.columns == table.columns
    assert again.features.tobytes() == table.features.tobytes()
    assert np.array_equal(again.ids, table.ids)
    assert again.labels is not None
    assert table.labels is not None
    assert np.array_equal(again.labels, table.labels)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "synthetic",
            {"rows": 1},
            r"data set 'synthetic': rows: give 10 or more \(got 1\)",
        ),
        ("synthetic", {"row": 1}, r"data set 'synthetic': row: there is no such setting"),
        ("synthetic", {"informative": 11}, "informative = 11 exceeds features = 10"),
        ("synthetic", {"classes": 17}, "classes = 17 need more than informative = 5 columns"),
        ("synthetic", {"rows": 10, "classes": 6}, "rows = 10 are too few for classes = 6"),
        ("openml", {}, "data set 'openml': id: it is missing"),
        ("openml:iris", {}, r"data set 'openml:iris': id: give a whole number.* \(got 'iris'\)"),
        ("openml:61", {"id": 3}, "data set 'openml:61': only openml:ID takes a number after a colon"),
        ("wine:3", {}, "data set 'wine:3': only openml:ID takes a number after a colon"),
    ],
)
def test_options_that_cannot_work_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        dataset(name, options)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PluginError, match=r"unknown .*'iris': known are adult, bank, breast_cancer"):
        dataset("iris", {})


def test_local_files_are_verified_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VFLENS_DATA", raising=False)
    with pytest.raises(
        DataError, match="VFLENS_DATA is not set: set it to the folder that holds 'sensor_readings_24"
    ):
        load("robot")
    monkeypatch.setenv("VFLENS_DATA", str(tmp_path))
    file = tmp_path / "sensor_readings_24.data.gz"
    with pytest.raises(
        DataError, match=rf"cannot read '{file}' \(No such file or directory\): put the file where VFL"
    ):
        load("robot")
    file.write_bytes(b"something else")
    with pytest.raises(
        DataError, match=rf"'{file}' has sha256 [0-9a-f]{{64}}, not 5c0313fe.*: replace it by the original"
    ):
        load("robot")


def test_text_becomes_columns() -> None:
    text = b'"a";"b"\r\n1; "x;y"\r\n\r\n2;z\r\n'
    raw = _local.text_columns(text, delimiter=";")
    assert {name: column.tolist() for name, column in raw.items()} == {"a": ["1", "2"], "b": ["x;y", "z"]}
    columns, features = encoded(raw | {"c": np.array(["?", "-1"])})
    assert columns == (ColumnInfo("a"), integers("b", 0, 1), integers("c", 0, 1))
    assert features.tolist() == [[1, 0, 1], [2, 1, 0]]


@pytest.mark.parametrize(
    ("features", "classes", "message"),
    [
        (np.zeros((2, 1)), ["a", "b"], r"data set 'x' has shape \(2, 1\), not \(3, 1\)"),
        (
            np.array([[0.0], [np.nan], [1.0]]),
            ["a", "b", "b"],
            "data set 'x' holds values that are not finite",
        ),
        (
            np.zeros((3, 1)),
            ["a", "a", "b"],
            r"data set 'x' has class counts {'a': 2, 'b': 1}, not {'b': 2, 'a': 1}",
        ),
    ],
)
def test_a_source_that_changed_is_refused(features: Array, classes: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        checked_table("x", [ColumnInfo("c")], features, np.array(classes), {"b": 2, "a": 1})


@needs_data
def test_a_small_local_set_loads() -> None:
    table = load("robot")
    assert_sound(table)
    assert table.features.shape == (5456, 24)
    assert table.features[0, :3].tolist() == [0.438, 0.498, 3.625]


@pytest.mark.facts
@needs_data
@pytest.mark.parametrize("name", LOCAL)
def test_local_sets_are_what_was_published(name: str) -> None:
    shape, train, predict = LOCAL[name]
    table = load(name)
    assert_sound(table)
    assert table.features.shape == shape
    assert (table.split is None) == (predict is None)
    assert counts(table, 0) == train
    if predict is not None:
        assert counts(table, 1) == predict


@pytest.mark.facts
@needs_data
@pytest.mark.parametrize(
    ("name", "level", "tolerance"),
    # Adult: the papers do not say which column they drop, so its level is a range.
    [("satellite", 0.039, 0.0005), ("pendigits", 0.119, 0.0005), ("adult", 0.131, 0.009)],
)
def test_the_half_guess_errs_as_in_the_papers(name: str, level: float, tolerance: float) -> None:
    assert half_error(load(name).features) == pytest.approx(level, abs=tolerance)


@pytest.mark.facts
@needs_data
def test_first_rows_and_categories_are_those_of_the_files() -> None:
    satellite, bank, adult, grid = (load(name) for name in ("satellite", "bank", "adult", "grid"))
    assert satellite.features[0, :5].tolist() == [92, 115, 120, 94, 84]
    assert satellite.columns[0] == ColumnInfo("pixel1_band1", 0.0, 255.0)
    assert "duration" not in {c.name for c in bank.columns}
    assert values(bank, "job")[0] == 3  # admin., blue-collar, entrepreneur, housemaid
    assert (values(bank, "job") == 11).sum() == 330  # "unknown" is the last of twelve
    assert (values(bank, "pdays") == 999).sum() == 39673
    assert values(bank, "cons.conf.idx")[0] == -36.4
    assert "fnlwgt" not in {c.name for c in adult.columns}
    assert values(adult, "education-num")[0] == 13
    unknown = np.any(
        [values(adult, name) == 0 for name in ("workclass", "occupation", "native-country")], axis=0
    )
    assert (~unknown).sum() == 45222  # "?" sorts first
    assert "stab" not in {c.name for c in grid.columns}
    powers = values(grid, "p1") + values(grid, "p2") + values(grid, "p3") + values(grid, "p4")
    assert np.abs(powers).max() < 1e-13


@pytest.mark.facts
@needs_data
def test_mnist_begins_with_a_five() -> None:
    table = load("mnist")
    assert table.labels is not None
    assert table.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert table.columns[29] == ColumnInfo("pixel_1_1", 0.0, 255.0, pixel=(1, 1))
    assert (table.features.min(), table.features.max()) == (0, 255)


def test_a_run_reads_a_checked_file_once_and_cannot_change_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VFLENS_DATA", str(tmp_path / "one"))
    read = []

    class Checked(Digits):
        @_local.kept
        def load(self) -> Table:
            read.append(os.environ["VFLENS_DATA"])
            return super().load()

    first = Checked(recipe="clean").prepared()
    assert Checked(recipe="clean").prepared() is first
    with pytest.raises(ValueError, match="read-only"):
        first.features[0, 0] = 0
    monkeypatch.setenv("VFLENS_DATA", str(tmp_path / "other"))
    assert Checked(recipe="clean").prepared() is not first
    assert read == [str(tmp_path / "one"), str(tmp_path / "other")]
