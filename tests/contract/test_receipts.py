"""A target's receipt is believed for what was submitted, and its errors in lab mode alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vflens.errors import ProtocolError
from vflens.member.adversary import Adversary
from vflens.plugins.attack import Attack
from vflens.protocol.acts import Receipt
from vflens.registry import ATTACKS
from vflens.storage.metrics import Metrics
from vflens.types import Estimate, RowStatus


class _Target:
    """A link to a target that answers with ``receipt``."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    def call(self, act: Any) -> Receipt:
        return self._receipt


class _Log:
    """A log that keeps nothing."""

    def info(self, *_: Any, **__: Any) -> None:
        """Do nothing."""


class _Party:
    """An adversary's party with one link."""

    def __init__(self, folder: Path, receipt: Receipt, *, lab: bool) -> None:
        self.name, self.folder, self.secret = "active", folder, b""
        self.links, self.log = {"passive": _Target(receipt)}, _Log()
        self.metrics = Metrics(folder / "metrics.parquet")
        self.config = type("Config", (), {"run": "run", "lab": lab})()

    def patiently(self, work: Any) -> Any:
        return work()


def _submitted(
    folder: Path,
    errors: dict[str, float],
    *,
    lab: bool,
    rows: int = 2,
    attacks: int = 2,
    kinds: dict[str, Attack] | None = None,
) -> Any:
    """The figures of an adversary that submitted "half" and "gradient_sign", of columns and of labels, or
    attacks of other ``kinds``.
    """
    folder.mkdir(exist_ok=True)
    party: Any = _Party(folder, Receipt(rows, attacks, errors), lab=lab)
    kinds = kinds or {name: ATTACKS.get(name)() for name in ("half", "gradient_sign")}
    found = {
        name: Estimate(
            "passive", np.arange(2, dtype=np.int32), np.zeros((2, 3)), np.full(2, RowStatus.OK), extras={}
        )
        for name in kinds
    }
    Adversary(party, kinds).submit("passive", "predict", found)
    return party.metrics


def test_in_lab_mode_the_errors_become_figures(tmp_path: Path) -> None:
    metrics = _submitted(tmp_path, {"half": 0.25, "gradient_sign": 0.125}, lab=True)
    assert (metrics.last("mse"), metrics.last("label_accuracy")) == (0.25, 0.875)


def test_of_a_number_the_error_is_that_of_a_column(tmp_path: Path) -> None:
    kinds: dict[str, Attack] = {"first_residuals": ATTACKS.get("first_residuals")()}
    metrics = _submitted(tmp_path / "a", {"first_residuals": 0.25}, lab=True, attacks=1, kinds=kinds)
    assert (metrics.last("mse"), metrics.last("label_accuracy")) == (0.25, None)
    with pytest.raises(ProtocolError, match="a finite error of each submitted attack is due"):
        _submitted(tmp_path / "b", {"first_residuals": 1.5}, lab=True, attacks=1, kinds=kinds)


def test_elsewhere_they_do_not(tmp_path: Path) -> None:
    metrics = _submitted(tmp_path, {"half": 1e-9, "nonesuch": math.nan}, lab=False)
    assert metrics.last("mse") is metrics.last("label_accuracy") is None


RIGHT = {"half": 0.25, "gradient_sign": 0.125}
LIES: dict[str, dict[str, Any]] = {
    "an unknown attack": {"errors": {**RIGHT, "nonesuch": 1.0}},
    "an attack less": {"errors": {"half": 0.25}},
    "NaN": {"errors": {**RIGHT, "half": math.nan}},
    "infinite": {"errors": {**RIGHT, "half": math.inf}},
    "below 0": {"errors": {**RIGHT, "half": -1e-9}},
    "a share above 1": {"errors": {**RIGHT, "gradient_sign": 1.5}},
    "other rows": {"errors": RIGHT, "rows": 3},
    "another number of attacks": {"errors": RIGHT, "attacks": 1},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_receipt_of_something_else_is_refused(tmp_path: Path, lie: str) -> None:
    with pytest.raises(ProtocolError, match=r"^the receipt of 'passive' (is of|has) .* (submitted|due)$"):
        _submitted(tmp_path, **LIES[lie], lab=True)
