"""Schemes along v₁: the coordinator gets the weights by an explicit disclosure, or refuses."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from laboratory import THREE, close, deal, experiment, federation
from oneprocess import LocalFederation

from vflens.errors import ConfigError
from vflens.storage.metrics import Name
from vflens.types import Point

TO_BOTH = [{"what": "parameters", "to": to} for to in ("active", "coordinator")]


def _at(name: str, at: str = "coordinator", **params: Any) -> dict[str, Any]:
    return {"name": name, "at": at, **params}


@pytest.mark.parametrize("scheme", ["scheme_1", "scheme_2"])
def test_a_scheme_acts_on_the_disclosed_weights_of_all_passive_parties(tmp_path: Path, scheme: str) -> None:
    local = federation(tmp_path, defenses=[_at(scheme, alpha=2.0)], disclose=TO_BOTH, parties=THREE)
    local.run()
    passive = [local.passive[n].run.model.parameters()["weight"] for n in sorted(local.passive)]
    np.testing.assert_array_equal(local.coordinator.disclosed_parameters()["weight"], np.hstack(passive))
    received = [r for r in local.coordinator.transcript if r.point is Point.PARAMETERS]
    assert [r.sender for r in received] == ["a", "b", "c"]
    assert local.coordinator.metrics.last(Name.ARGMAX_KEPT) == 1.0
    kl = local.coordinator.metrics.last(Name.MEAN_KL)
    assert kl is not None
    assert 0 < kl < 10
    local.coordinator.gate.check_fired()


def test_a_scheme_without_the_disclosure_is_refused_before_the_start(tmp_path: Path) -> None:
    what = experiment(tmp_path, defenses=[_at("scheme_1")], disclose=TO_BOTH[:1])
    with pytest.raises(
        ConfigError,
        match="a defence of 'coordinator' needs the parameters of 'passive': let it disclose what = "
        '"parameters" to = "coordinator"',
    ):
        deal(what, tmp_path)


def test_a_coordinator_of_its_own_refuses_before_predictions(tmp_path: Path) -> None:
    """Real parties: nobody sees all configurations, so it shows when the disclosures are over."""
    configs = deal(experiment(tmp_path, defenses=[_at("scheme_2")], disclose=TO_BOTH), tmp_path)
    file = configs["passive"]
    settings = tomllib.loads(file.read_text(encoding="utf-8"))
    settings["disclose"] = [d for d in settings["disclose"] if d["to"] == "active"]
    file.write_text(tomli_w.dumps(settings), encoding="utf-8")
    local = LocalFederation(configs, lambda stage, done, total: None)
    with pytest.raises(ConfigError, match="needs the parameters of 'passive'"):
        local.run()
    close(local)


def test_one_minus_x_keeps_the_scores_of_a_federation_that_spares_the_bias(tmp_path: Path) -> None:
    """Full batches to the optimum: mean KL between the two federations' scores, by hand."""
    scores = {}
    for name, defenses in (("plain", []), ("complement", [_at("transform_inputs", "passive")])):
        for spared in (True, False):
            training = {
                "epochs": 300,
                "batch_size": 100,
                "learning_rate": 1.0,
                "optimizer": "sgd",
                "l2": 5e-2,
            }
            local = federation(
                tmp_path / f"{name}{spared}",
                defenses=defenses,
                training={**training, "penalise_bias": not spared},
                attacks=[],
            )
            local.run()
            scores[name, spared] = local.active.predictions.received(local.active.run.federation.predict)

    def kl(spared: bool) -> float:
        c, other = scores["plain", spared], scores["complement", spared]
        return float((np.exp(c) * (c - other)).sum(axis=1).mean())

    assert abs(kl(True)) < 1e-12
    assert kl(False) > 1e-6


@pytest.mark.parametrize("name", ["distorted_parameters", "transform_parameters"])
def test_disclosed_weights_move_and_scores_do_not(tmp_path: Path, name: str) -> None:
    plain = federation(tmp_path / "plain")
    plain.run()
    moved = federation(tmp_path / "moved", defenses=[_at(name, "passive")])
    moved.run()
    rows = plain.active.run.federation.predict
    np.testing.assert_array_equal(
        plain.active.predictions.received(rows), moved.active.predictions.received(rows)
    )
    sent = [r.tensor("weight") for r in moved.active.transcript if r.point is Point.PARAMETERS]
    true = moved.passive["passive"].run.model.parameters()["weight"]
    assert np.abs(sent[0] - true).max() > 1e-3
    if name == "distorted_parameters":
        np.testing.assert_allclose(np.mean((sent[0] - true) ** 2), 1e-3, rtol=1e-9)


def test_an_inadmissible_distortion_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=[_at("distorted_parameters", "passive", epsilon=1e6)])
    with pytest.raises(ConfigError, match="epsilon = 1e\\+06, but these weights admit 0 < epsilon <="):
        local.run()
    close(local)
