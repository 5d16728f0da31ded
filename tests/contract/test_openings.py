"""An adversary that reads what protected training opens finds every mutant, and nothing in the real thing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mutants import (
    KINDS,
    MUTANTS,
    PARAMETERS,
    Mutant,
    found_labels,
    logits_without_mask,
    one_mask_for_two_rows,
    opened_at,
    share_of_blind,
    trained,
    zero_masks,
)
from oneprocess import LocalFederation
from openedcolumns import found_columns
from openings import Opened
from thinned import first, thinned

from vflens.coordinator.vertical.dealer import DealingCoordinator
from vflens.errors import KnowledgeError
from vflens.recorded.vertical.view import view_of
from vflens.storage.journal import Reader
from vflens.types import Array


def _at_coordinator(local: LocalFederation, received: Path) -> Array:
    """What the coordinator reads of the messages in ``received``, with the masks that it dealt."""
    coordinator = local.coordinator
    assert isinstance(coordinator, DealingCoordinator)
    assert coordinator._dealer is not None
    view = view_of(
        Opened(),
        coordinator.aligned,
        party="coordinator",
        target="passive",
        rows=coordinator.aligned.train,
        transcript=Reader(received / "transcript"),
        own={},
        every=1,
        device="cpu",
    )
    return found_columns(view, coordinator._dealer.mask)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grants", [0, 12])
@pytest.mark.parametrize("seed", thinned(((seed,) for seed in range(5)), 3))
def test_the_real_thing_gives_nothing_away_at_any_party(
    tmp_path: Path, seed: int, grants: int, kind: str
) -> None:
    local = trained(tmp_path, seed, kind=kind, grants=grants)
    assert share_of_blind(local) >= 1
    if kind == "logistic":  # no attack reads a number
        found, blind = found_labels(local)
        assert found <= max(blind, 1 - blind) + 0.02
    with pytest.raises(KnowledgeError, match="no features of training rows were opened at 'coordinator'"):
        _at_coordinator(local, tmp_path / "coordinator")


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_computing_party_reads_the_active_one_s_columns_without_masks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Both know the same arrays, which the active one recorded. What needs labels is out of its reach."""

    def answer(home: Path) -> tuple[Array, Array]:
        local = trained(home, kind=kind)
        received = Reader(home / "active/transcript")
        found = found_columns(opened_at(local, "passive", "active", transcript=received))
        return found, local.active.run.truth[local.coordinator.aligned.train]

    found, truth = answer(tmp_path / "sound")
    np.testing.assert_array_equal(found, np.full(truth.shape, 0.5))
    zero_masks(monkeypatch, PARAMETERS[kind])
    found, truth = answer(tmp_path / "bare")
    np.testing.assert_allclose(found, truth, atol=2**-16)


@pytest.mark.parametrize("kind", first(KINDS))
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: Mutant, kind: str
) -> None:
    mutant(monkeypatch, PARAMETERS[kind])
    due = MUTANTS[mutant]
    local = trained(tmp_path, kind=kind, grants=due.grants)
    assert share_of_blind(local) < due.columns
    if kind == "logistic" and due.labels is not None:
        assert found_labels(local)[0] > due.labels


LINEAR = KINDS["linear"]["training"]


def test_bare_logits_are_followed_though_the_penalty_spares_the_bias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits_without_mask(monkeypatch, PARAMETERS["linear"])
    training = {**LINEAR, "l2": 0.5, "penalise_bias": False}
    local = trained(tmp_path, kind="linear", grants=12, training=training)
    assert share_of_blind(local) < 1e-3


def test_steps_that_were_not_recorded_leave_a_blind_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """θ before a later step is not known: following from there would answer with confidence, and wrongly."""
    logits_without_mask(monkeypatch, PARAMETERS["linear"])
    local = trained(tmp_path, kind="linear", grants=12, transcript={"every": 2})
    found = found_columns(opened_at(local, "active", "passive"))
    np.testing.assert_array_equal(found, np.full(found.shape, 0.5))


def test_a_granted_row_gives_the_rows_that_share_its_mask_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_mask_for_two_rows(monkeypatch, PARAMETERS["logistic"])
    local = trained(tmp_path, grants=60)
    passive, train = local.passive["passive"], local.coordinator.aligned.train
    known = np.isin(train, passive.granted_rows("active"))
    partners = ~known & known[np.arange(len(train)) ^ 1]
    found = found_columns(opened_at(local, "active", "passive"))
    errors = np.abs(found - passive.run.truth[train]).max(axis=1)
    assert partners.sum() > 10
    assert errors[known | partners].max() < 2**-16
    assert errors[~(known | partners)].min() > 1e-3


def test_what_is_opened_must_not_pass_the_coordinator(tmp_path: Path) -> None:
    """With the masks that it dealt it reads every column: here in the messages of the active party."""
    local = trained(tmp_path)
    federated = local.coordinator.aligned
    found = _at_coordinator(local, tmp_path / "active")
    truth = local.passive["passive"].run.truth[federated.train]
    assert np.abs(found - truth).max() < 2**-16
