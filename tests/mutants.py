"""Protected training with sound masks, and mutants of it; what the attacks on openings find there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import federation
from oneprocess import LocalFederation

from vflens.clients.vertical.protected import computing
from vflens.coordinator.vertical import dealer
from vflens.protocol.vertical import shares
from vflens.protocol.vertical.shares import SharedRun
from vflens.randomness import stream
from vflens.storage.metrics import Name, metric_rows
from vflens.types import Array

SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 150, "features": 8, "classes": 2, "informative": 6},
    "training": {
        "epochs": 12,
        "batch_size": 20,
        "learning_rate": 0.5,
        "optimizer": "sgd",
        "protection": "shares",
    },
    "attacks": [{"name": "openings"}, {"name": "opened_labels", "at": "passive"}],
    "disclose": [],
}
PARAMETERS = 9  # eight columns and the bias, of one logit


def trained(home: Path, seed: int = 3) -> LocalFederation:
    local = federation(home, **SETTINGS, seed=seed)
    local.run()
    return local


def figures(home: Path, party: str, name: Name) -> dict[str, float]:
    """Attack → the figure ``name`` on training rows in the folder of ``party``."""
    rows = metric_rows(home / party / "metrics.parquet")
    return {r["attack"]: r["value"] for r in rows if r["metric"] == name and r["scored_set"] == "train"}


def share_of_blind(home: Path) -> float:
    """The error of ``openings`` on columns over that of the best blind guess."""
    blind = min(figures(home, "passive", Name.BLIND_MSE).values())
    return figures(home, "passive", Name.MSE)["openings"] / blind


def found_labels(home: Path) -> tuple[float, float]:
    """The shares of training labels that ``opened_labels`` and the most frequent class name rightly."""
    (blind,) = figures(home, "active", Name.BLIND_LABEL_ACCURACY).values()
    return figures(home, "active", Name.LABEL_ACCURACY)["opened_labels"], blind


def _patched(monkeypatch: pytest.MonkeyPatch, name: str, mutant: Callable[..., Array]) -> None:
    for module in (computing, dealer):
        monkeypatch.setattr(module, name, mutant)


def zero_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    _patched(monkeypatch, "step_masks", lambda seed, step, count: np.zeros(count, np.uint64))
    _patched(monkeypatch, "features_mask", lambda seed, run: np.zeros_like(shares.features_mask(seed, run)))


def one_mask_for_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(seed: bytes, run: SharedRun) -> Array:
        mask = shares.features_mask(seed, run)
        return np.repeat(mask[:1], len(mask), axis=0)

    _patched(monkeypatch, "features_mask", mutant)


def one_mask_for_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    _patched(monkeypatch, "step_masks", lambda seed, step, count: shares.step_masks(seed, 0, count))


def truncation_without_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(seed: bytes, step: int, count: int) -> Array:
        drawn = shares.step_masks(seed, step, count)
        drawn[PARAMETERS : 2 * PARAMETERS] = 0
        return drawn

    _patched(monkeypatch, "step_masks", mutant)


def philox_of_the_run_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(seed: bytes, run: SharedRun) -> Array:
        shape = len(run.federation.train), run.width
        return stream(run.federation.run.encode(), "features").integers(0, 2**64, shape, np.uint64)

    _patched(monkeypatch, "features_mask", mutant)


#: Mutant → the most of a blind guess's error that ``openings`` leaves, and the fewest labels that
#: ``opened_labels`` finds; None where the mutant shows nothing of these.
MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], tuple[float | None, float | None]] = {
    zero_masks: (1e-6, 0.99),
    one_mask_for_all_rows: (0.6, None),
    one_mask_for_all_steps: (None, 0.99),
    truncation_without_mask: (0.7, 0.8),
    philox_of_the_run_s_name: (1e-6, None),
}
