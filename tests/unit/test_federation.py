"""The agreed federation on disk."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from vfl.errors import StorageError
from vfl.federation import Federation, Training
from vfl.types import ColumnInfo, Role
from vfl.view import PartyInfo

COLUMNS = (
    ColumnInfo("plain"),
    ColumnInfo("bounded", 0.1, 1 / 3),
    ColumnInfo("finite", 0.0, 2.0, (0.0, 1.0, 2.0)),
    ColumnInfo("pixel", 0.0, 16.0, None, (0, 3)),
)
PARTIES = (
    PartyInfo("b", Role.PASSIVE, COLUMNS[:1]),
    PartyInfo("active", Role.ACTIVE, (), 4),
    PartyInfo("a", Role.PASSIVE, COLUMNS),
)


def _federation(**training: int) -> Federation:
    train, predict = np.array([0, 2, 4, 5, 6], np.int32), np.array([1, 3], np.int32)
    return Federation(
        "name/run", PARTIES, 7, train, predict, Training.model_validate(training), True, None, "active"
    )


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved = _federation(epochs=7, patience=2)
    saved.save(tmp_path, party="a", clipped=3)
    loaded = Federation.load(tmp_path)
    for field in ("run", "parties", "rows", "training", "lab", "aggregator"):
        assert getattr(loaded, field) == getattr(saved, field)
    for field in ("train", "predict"):
        np.testing.assert_array_equal(getattr(loaded, field), getattr(saved, field), strict=True)
    written = json.loads((tmp_path / "federation.json").read_text(encoding="utf-8"))
    assert (written["party"], written["clipped"], written["train_rows"]) == ("a", 3, 5)


def test_members_have_their_places() -> None:
    federation = _federation()
    assert federation.active == PARTIES[1]
    assert federation.n_classes == 4
    assert [p.name for p in federation.passive] == ["a", "b"]


@pytest.mark.parametrize(
    ("batch_size", "last"), [(2, [2, 5, 8]), (5, [0, 1, 2]), (100, [0, 1, 2]), (1, [4, 9, 14])]
)
def test_an_epoch_ends_with_its_last_batch(batch_size: int, last: list[int]) -> None:
    federation = _federation(batch_size=batch_size)
    steps = len(range(0, 5, batch_size))
    assert [s for s in range(3 * steps) if federation.ends_epoch(s)] == last


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("federation.json", "{"),
        ("federation.json", "[]"),
        ("federation.json", '{"run": "r"}'),
        ("federation.json", None),
        ("rows.npz", ""),
        ("rows.npz", None),
    ],
)
def test_a_damaged_folder_is_a_sentence(tmp_path: Path, name: str, text: str | None) -> None:
    _federation().save(tmp_path)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(
        StorageError, match=r"holds no (aligned federation|readable arrays) \(.*\): give the folder of a"
    ):
        Federation.load(tmp_path)


def test_training_settings_out_of_range_are_refused_on_loading(tmp_path: Path) -> None:
    _federation().save(tmp_path)
    file = tmp_path / "federation.json"
    members = json.loads(file.read_text(encoding="utf-8"))
    members["training"]["epochs"] = 0
    file.write_text(json.dumps(members), encoding="utf-8")
    with pytest.raises(StorageError, match=r"(?s)holds no aligned federation .*epochs"):
        Federation.load(tmp_path)


def test_nothing_of_a_party_is_forgotten() -> None:
    """A field added to these classes has to be saved and loaded too."""
    assert set(asdict(PARTIES[0])) == {"name", "role", "columns", "n_classes"}
    assert set(asdict(COLUMNS[0])) == {"name", "low", "high", "alphabet", "pixel"}
