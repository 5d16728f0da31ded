"""The attacks on protected training find every mutant of it, and nothing in the real thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mutants import MUTANTS, found_labels, share_of_blind, trained
from oneprocess import LocalFederation

from vflens.attacks.openings import Openings
from vflens.coordinator.vertical.dealer import DealingCoordinator
from vflens.errors import KnowledgeError
from vflens.recorded.vertical.view import view_of
from vflens.storage.journal import Reader
from vflens.types import Array


def _at_coordinator(local: LocalFederation, received: Path) -> Array:
    """What ``openings`` makes of the messages in ``received`` with the masks that the coordinator dealt."""
    coordinator = local.coordinator
    assert isinstance(coordinator, DealingCoordinator)
    federated, attack = coordinator.aligned, Openings()
    view = view_of(
        attack,
        federated,
        party="coordinator",
        target="passive",
        rows=federated.train,
        transcript=Reader(received / "transcript"),
        own={"masks": coordinator.dealt_mask()},
        every=1,
        device="cpu",
    )
    return attack.reconstruct(view, rng=np.random.default_rng(0)).values


@pytest.mark.parametrize("seed", range(5))
def test_the_real_thing_gives_nothing_away_at_any_party(tmp_path: Path, seed: int) -> None:
    local = trained(tmp_path, seed)
    assert share_of_blind(tmp_path) >= 1
    found, blind = found_labels(tmp_path)
    assert found <= max(blind, 1 - blind) + 0.02
    with pytest.raises(KnowledgeError, match="no features of training rows were opened at 'coordinator'"):
        _at_coordinator(local, tmp_path / "coordinator")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    mutant(monkeypatch)
    trained(tmp_path)
    columns, labels = MUTANTS[mutant]
    assert columns is None or share_of_blind(tmp_path) < columns
    assert labels is None or found_labels(tmp_path)[0] > labels


def test_what_is_opened_must_not_pass_the_coordinator(tmp_path: Path) -> None:
    """With the masks that it dealt it reads every column: here in the messages of the active party."""
    local = trained(tmp_path)
    federated = local.coordinator.aligned
    found = _at_coordinator(local, tmp_path / "active")
    truth = local.passive["passive"].run.truth[federated.train]
    assert np.abs(found - truth).max() < 2**-16
