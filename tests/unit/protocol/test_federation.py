"""The agreed federation on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vflens.errors import StorageError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.settings import Training
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.storage.files import load_arrays, save_arrays
from vflens.types import ColumnInfo, PartyInfo, Role, Signature

COLUMNS = (
    ColumnInfo("plain"),
    ColumnInfo("bounded", 0.1, 1 / 3),
    ColumnInfo("finite", 0.0, 2.0, alphabet=(0.0, 1.0, 2.0)),
    ColumnInfo("pixel", 0.0, 16.0, alphabet=None, pixel=(0, 3)),
    ColumnInfo("green", 0.0, 255.0, alphabet=None, pixel=(0, 3, 1)),
)
PARTIES = (
    PartyInfo("b", Role.PASSIVE, columns=COLUMNS[:1]),
    PartyInfo("active", Role.ACTIVE, columns=(), n_classes=4),
    PartyInfo("a", Role.PASSIVE, columns=COLUMNS, signature=Signature("a certificate", "ab")),
)


def _federation(**training: int) -> VerticalAgreement:
    train, predict = np.array([0, 2, 4, 5, 6], np.int32), np.array([1, 3], np.int32)
    return VerticalAgreement(
        run="name/run",
        parties=PARTIES,
        rows=7,
        train=train,
        predict=predict,
        training=Training.model_validate(training),
        lab=True,
        aggregator="active",
        nonce="cd" * 32,
    )


def test_a_numeric_label_is_loaded(tmp_path: Path) -> None:
    label = ColumnInfo("price", 0.0, 90.0)
    parties = (*PARTIES[:1], replace(PARTIES[1], n_classes=1, label=label), *PARTIES[2:])
    replace(_federation(), parties=parties).save(tmp_path)
    assert VerticalAgreement.load(tmp_path).parties == parties


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved = _federation(epochs=7, patience=2)
    saved.save(tmp_path, party="a", clipped=3)
    loaded = VerticalAgreement.load(tmp_path)
    for field in ("run", "parties", "rows", "training", "lab", "model", "aggregator", "nonce"):
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
        StorageError,
        match=r"holds no (federation|readable arrays) \(.*\): give the folder of a",
    ):
        VerticalAgreement.load(tmp_path)


@pytest.mark.parametrize("nonce", [5, None, ["a" * 64], "a" * 63, "A" * 64])
def test_a_nonce_that_is_none_is_refused(tmp_path: Path, nonce: Any) -> None:
    _federation().save(tmp_path)
    file = tmp_path / "federation.json"
    members = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**members, "nonce": nonce}), encoding="utf-8")
    with pytest.raises(StorageError, match=r"holds no federation \(a nonce of .*64 hex"):
        VerticalAgreement.load(tmp_path)


CHANGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "optimizer": lambda members: members["training"].update(optimizer="sgd"),
    "out of range": lambda members: members["training"].update(epochs=0),
    "precision": lambda members: members["model"].update(precision="float64"),
    "no network": lambda members: members.update(model={"family": "softmax_regression"}),
    "run": lambda members: members.update(run="name/other"),
    "lab": lambda members: members.update(lab=False),
    "rows": lambda members: members.update(aligned_rows=8),
    "bounds": lambda members: members["parties"][2]["columns"][1].update(high=0.5),
    "aggregator": lambda members: members.update(aggregator="coordinator"),
    "nonce": lambda members: members.update(nonce="ab" * 32),
    "no nonce": lambda members: members.update(nonce=""),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_federation_that_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    """A run taken up with other settings than the ones it began with would go on to other figures."""
    replace(_federation(), model=SplitNetwork(architecture="mlp")).save(tmp_path, party="a")
    file = tmp_path / "federation.json"
    members = json.loads(file.read_text(encoding="utf-8"))
    CHANGED[change](members)
    file.write_text(json.dumps(members), encoding="utf-8")
    with pytest.raises(
        StorageError,
        match=rf"^{file} was changed after its run began: bring back the file as it was, or run again$",
    ):
        VerticalAgreement.load(tmp_path)


def test_rows_that_were_changed_are_refused(tmp_path: Path) -> None:
    _federation().save(tmp_path)
    saved = load_arrays(tmp_path / "rows.npz")
    save_arrays(tmp_path / "rows.npz", {**saved, "train": saved["train"][::-1]})
    with pytest.raises(StorageError, match="was changed after its run began"):
        VerticalAgreement.load(tmp_path)


def test_facts_for_reports_may_grow(tmp_path: Path) -> None:
    """Killed between the two files a party leaves new facts beside the digest of before."""
    _federation().save(tmp_path, party="a", clipped=3)
    rows = (tmp_path / "rows.npz").read_bytes()
    _federation().save(tmp_path, party="a", clipped=4, transcript_digest="f00")
    (tmp_path / "rows.npz").write_bytes(rows)
    assert VerticalAgreement.load(tmp_path).parties == PARTIES


def test_nothing_of_a_party_is_forgotten() -> None:
    """A field added to these classes has to be saved and loaded too."""
    of_all, of_clients = (
        {"name", "role", "columns", "n_classes", "label"},
        {"classes", "train_rows", "predict_rows", "mask_key", "signature", "categories"},
    )
    assert set(asdict(PARTIES[0])) == of_all | of_clients
    assert set(asdict(COLUMNS[0])) == {"name", "low", "high", "alphabet", "pixel"}
