"""Protected training with sound masks, and mutants of it; what an adversary reads of openings there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from laboratory import federation
from oneprocess import LocalFederation
from openedcolumns import found_columns
from openings import Opened, likely_labels

from vflens.clients.vertical.protected import computing
from vflens.coordinator.vertical import dealer
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical import shares
from vflens.protocol.vertical.shares import SharedRun
from vflens.randomness import stream
from vflens.recorded.vertical.view import view_of
from vflens.storage.journal import Reader
from vflens.types import Array

TRAINING = {"batch_size": 20, "epochs": 12, "optimizer": "sgd", "protection": "shares"}
#: What is trained → its settings.
KINDS: dict[str, dict[str, Any]] = {
    "logistic": {
        "data": {"name": "synthetic", "rows": 150, "features": 8, "classes": 2, "informative": 6},
        "training": {**TRAINING, "learning_rate": 0.5},
        "attacks": [],
    },
    "linear": {
        "data": {"name": "diabetes", "sample": 150},
        "model": {"family": "linear_regression"},
        "training": {**TRAINING, "learning_rate": 0.04},
        "attacks": [],
    },
}
#: Columns and the bias, of one logit.
PARAMETERS = {"logistic": 9, "linear": 11}
BATCH = 20


def trained(
    home: Path, seed: int = 3, *, kind: str = "logistic", grants: int = 0, **changes: Any
) -> LocalFederation:
    """``grants``: rows of the passive party that the active one knows. ``changes``: of the settings."""
    granted = [{"what": "auxiliary", "to": "active", "rows": grants}] if grants else []
    local = federation(home, **KINDS[kind] | changes, disclose=granted, seed=seed)
    local.run()
    return local


def opened_at(local: LocalFederation, party: str, target: str, **changed: Any) -> AdversaryView:
    """What ``party`` sees on all training rows of ``target``; ``changed``: other messages, or own data."""
    member = local.data_parties[party]
    seen: dict[str, Any] = {
        "transcript": Reader(member.config.out / "transcript"),
        "own": member.adversary.own(),
    } | changed
    federated = local.coordinator.aligned
    rows = federated.train
    return view_of(Opened(), federated, party=party, target=target, rows=rows, every=1, device="cpu", **seen)


def share_of_blind(local: LocalFederation) -> float:
    """The error of the active party's reading of columns that were not granted over that of the best blind
    guess: ½, or the mean of granted rows.
    """
    view, passive = opened_at(local, "active", "passive"), local.passive["passive"]
    granted = np.isin(view.rows, passive.granted_rows("active"))
    truth = passive.run.truth[view.rows]
    guesses = [np.full(truth.shape[1], 0.5), *([truth[granted].mean(axis=0)] if granted.any() else [])]
    hidden = truth[~granted]
    blind = min(np.square(guess - hidden).mean() for guess in guesses)
    return float(np.square(found_columns(view)[~granted] - hidden).mean() / blind)


def found_labels(local: LocalFederation) -> tuple[float, float]:
    """The shares of training labels that the passive party's reading and the most frequent class name
    rightly.
    """
    view = opened_at(local, "passive", "active")
    truth = local.active.adversary.own()["labels"][view.rows]
    named = likely_labels(view).argmax(axis=1)
    return float((named == truth).mean()), float(np.bincount(truth).max() / len(truth))


def _patched(monkeypatch: pytest.MonkeyPatch, name: str, mutant: Callable[..., Array]) -> None:
    for module in (computing, dealer):
        monkeypatch.setattr(module, name, mutant)


#: Changes what is trained with so many parameters.
Mutant = Callable[[pytest.MonkeyPatch, int], None]


def zero_masks(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _patched(monkeypatch, "step_masks", lambda seed, step, count: np.zeros(count, np.uint64))
    _patched(monkeypatch, "features_mask", lambda seed, run: np.zeros_like(shares.features_mask(seed, run)))


def one_mask_for_all_rows(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    def mutant(seed: bytes, run: SharedRun) -> Array:
        mask = shares.features_mask(seed, run)
        return np.repeat(mask[:1], len(mask), axis=0)

    _patched(monkeypatch, "features_mask", mutant)


def one_mask_for_all_steps(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _patched(monkeypatch, "step_masks", lambda seed, step, count: shares.step_masks(seed, 0, count))


def _without(monkeypatch: pytest.MonkeyPatch, first: int, count: int) -> None:
    """Zeros in place of some of the drawn masks of each step: of θ, its change, residuals, and logits."""

    def mutant(seed: bytes, step: int, of: int) -> Array:
        drawn = shares.step_masks(seed, step, of)
        drawn[first : first + count] = 0
        return drawn

    _patched(monkeypatch, "step_masks", mutant)


def parameters_without_mask(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _without(monkeypatch, 0, parameters)


def truncation_without_mask(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _without(monkeypatch, parameters, parameters)


def residuals_without_mask(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _without(monkeypatch, 2 * parameters, BATCH)


def logits_without_mask(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    _without(monkeypatch, 2 * parameters + BATCH, BATCH)


def one_mask_for_two_rows(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    def mutant(seed: bytes, run: SharedRun) -> Array:
        mask = shares.features_mask(seed, run)
        return np.repeat(mask[::2], 2, axis=0)

    _patched(monkeypatch, "features_mask", mutant)


def philox_of_the_run_s_name(monkeypatch: pytest.MonkeyPatch, parameters: int) -> None:
    def mutant(seed: bytes, run: SharedRun) -> Array:
        shape = len(run.federation.train), run.width
        return stream(run.federation.run.encode(), "features").integers(0, 2**64, shape, np.uint64)

    _patched(monkeypatch, "features_mask", mutant)


class Found(NamedTuple):
    """What shows a mutant: the most of a blind guess's error that is left of columns, with so many rows that
    the passive party ``grants``, and the fewest labels found; None: nothing of these.
    """

    columns: float
    labels: float | None = None
    grants: int = 0


MUTANTS: dict[Mutant, Found] = {
    zero_masks: Found(1e-6, 0.99),
    one_mask_for_all_rows: Found(1e-6),
    one_mask_for_two_rows: Found(0.6, grants=12),
    one_mask_for_all_steps: Found(1e-6, 0.99),
    parameters_without_mask: Found(0.7, 0.8),
    truncation_without_mask: Found(0.7, 0.8),
    logits_without_mask: Found(1e-3, grants=12),
    residuals_without_mask: Found(0.01, 0.99, grants=12),
    philox_of_the_run_s_name: Found(1e-6),
}
