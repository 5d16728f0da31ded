"""A row's budget: counted by epochs, so a restart that asks on does not begin anew; said before a run where
it can be.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from accidents import rebuild_all, train_until
from laboratory import SYNTHETIC, close, federation, figures

from vflens.clients.vertical.active import ActiveParty
from vflens.errors import ConfigError, StateError
from vflens.experiments.pages.report import write_report
from vflens.experiments.run.check import check
from vflens.models.families.split_network import SplitNetwork
from vflens.types import Phase, Point

LAPLACE = {"name": "dp_laplace", "level": 4.0}  # ε = ½ a release
BEYOND = (
    r"release 3 of a training row of '{}' makes ε = 1\.5 at δ = 1e-05, limits\.epsilon is 1: "
    r"train for fewer epochs"
)


@pytest.mark.parametrize("at", ["passive", "active"])
@pytest.mark.parametrize("restart", [False, True])
def test_the_release_beyond_the_budget_is_not_made(tmp_path: Path, at: str, restart: bool) -> None:
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": at}], limits={"epsilon": 1.0})
    local.coordinator.prepare()
    if restart:
        train_until(local, 6)
        rebuild_all(local)
    with pytest.raises(StateError, match=f"^{BEYOND.format(at)}"):
        local.coordinator.train()
    assert local.data_parties[at].gate.epochs == 2
    close(local)


def test_what_was_spent_is_a_figure_and_stands_in_the_report(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": "passive"}], limits={"epsilon": 1.5})
    local.run()
    found = figures(tmp_path / "passive")
    assert found["training_releases", "", ""] == 3
    assert found["training_epsilon", "", ""] == pytest.approx(1.5)
    assert found["prediction_epsilon", "", ""] == pytest.approx(0.5)
    assert ("training_epsilon", "", "") not in figures(tmp_path / "active")
    page = write_report([tmp_path / "passive"], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "What noise adds up to" in page
    assert "<td>no ε" not in _privacy(page)


def test_noise_that_has_no_epsilon_is_no_figure_and_the_report_says_why(tmp_path: Path) -> None:
    """The default level of dp_gaussian at both roles: the active party's predictions are counted too."""
    local = federation(tmp_path, defenses=[{"name": "dp_gaussian", "at": at} for at in ("passive", "active")])
    local.run()
    for at in ("passive", "active"):
        found = figures(tmp_path / at)
        assert (found["training_releases", "", ""], found["prediction_releases", "", ""]) == (3, 1)
        assert math.isnan(found["training_epsilon", "", ""])
        assert math.isnan(found["prediction_epsilon", "", ""])
        page = write_report([tmp_path / at], tmp_path / f"{at}.html").read_text(encoding="utf-8")
        assert _privacy(page).count("<td>no ε: noise too small for the sampler</td>") == 2


def _privacy(page: str) -> str:
    return page.partition('<section id="privacy">')[2].partition("</section>")[0]


@pytest.mark.parametrize("at", ["passive", "active"])
def test_the_prediction_beyond_the_budget_is_not_made(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One release of a prediction row costs ½: a budget below it, set once training is over, refuses."""
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": at}], limits={"epsilon": 1.5})
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    party = local.data_parties[at]
    limits = party.config.limits.model_copy(update={"epsilon": 0.4})
    monkeypatch.setattr(party.run.spending, "_limits", limits)
    active = local.data_parties["active"]
    assert isinstance(active, ActiveParty)
    words = rf"release 1 of a prediction row of '{at}' makes ε = 0\.5 at δ = 1e-05, limits\.epsilon is 0\.4"
    with pytest.raises(StateError, match=words):
        active.predictions.ask(active.run.federation.predict[:2])
    assert len(party.gate.released_rows(Point.EMBEDDING, 1)) == 0
    close(local)


def test_a_budget_that_a_training_exceeds_is_refused_before_it(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "name": "tiny", "data": SYNTHETIC, "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3}, "limits": {"epsilon": 1.0},
        "scenarios": [{"name": "run", "defenses": [{**LAPLACE, "at": "passive"}]}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(ConfigError, match=BEYOND.format("passive")):
        check(file)


def test_check_refuses_a_budget_for_noise_that_has_no_epsilon(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "name": "tiny", "data": SYNTHETIC, "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3}, "limits": {"epsilon": 1000.0},
        "scenarios": [{"name": "run", "defenses": [{"name": "dp_gaussian", "at": "active"}]}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(ConfigError, match=r"^release 3 of a training row of 'active' has no ε at δ = 1e-05"):
        check(file)


NORMED = {
    "data": {"name": "digits"},
    "split": {"kind": "image_halves"},
    "model": {"architecture": "cnn", "batch_norm": True},
    "training": {"epochs": 1, "batch_size": 400},
    "attacks": [],
    "disclose": [],
}


def test_noise_behind_a_batch_norm_has_no_epsilon_in_training(tmp_path: Path) -> None:
    """There a row moves the embeddings of its batch; in predictions the norm is fixed."""
    local = federation(tmp_path, defenses=[{**LAPLACE, "at": "passive"}], **NORMED)
    local.run()
    found = figures(tmp_path / "passive")
    assert found["training_epsilon", "", ""] == math.inf
    assert found["prediction_epsilon", "", ""] == pytest.approx(0.5)
    page = write_report([tmp_path / "passive"], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<td>∞</td>" in _privacy(page)


def test_a_budget_is_refused_for_noise_behind_a_batch_norm(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "name": "tiny", **NORMED, "limits": {"epsilon": 2.0},
        "scenarios": [{"name": "run", "defenses": [{**LAPLACE, "at": "passive"}]}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(
        ConfigError, match=r"^release 1 of a training row of 'passive' has no ε, as a batch norm"
    ):
        check(file)


@pytest.mark.parametrize("noise_first", [True, False])
def test_noise_behind_a_defence_that_mixes_rows_is_refused(tmp_path: Path, *, noise_first: bool) -> None:
    """Before it, the noisy rows are only averaged."""
    tables = [{**LAPLACE, "at": "active"}, {"name": "averaging", "at": "active"}]
    if noise_first:
        federation(tmp_path, defenses=tables)
        return
    with pytest.raises(
        ConfigError, match=r"'averaging' at 'active' puts one .* put 'dp_laplace' first, or use"
    ):
        federation(tmp_path, defenses=tables[::-1])


@pytest.mark.parametrize("labels_first", [True, False])
def test_noise_on_labels_goes_with_a_defence_that_mixes_gradients(
    tmp_path: Path, *, labels_first: bool
) -> None:
    """Labels are noisy before there is a gradient, in whatever order the defences stand."""
    tables = [{"name": "grad_perturb", "at": "active"}, {"name": "averaging", "at": "active"}]
    federation(tmp_path, defenses=tables if labels_first else tables[::-1])


@pytest.mark.parametrize("noise_first", [True, False])
def test_noise_on_gradients_has_no_epsilon_beside_a_loss_of_the_whole_batch(
    tmp_path: Path, *, noise_first: bool
) -> None:
    """The loss is ahead of the gate. Noise on labels is ahead of the loss; a passive party's own loss moves
    its parameters alone.
    """
    model = {"architecture": "mlp", "width": 4}
    for name, at in (("grad_perturb", "active"), ("dp_laplace", "passive"), ("dp_laplace", "active")):
        tables = [{"name": name, "at": at}, {"name": "distance_correlation", "at": at}]
        tables = tables if noise_first else tables[::-1]
        if (name, at) != ("dp_laplace", "active"):
            federation(tmp_path / name / at, model=model, defenses=tables)
            continue
        with pytest.raises(
            ConfigError, match=r"'distance_correlation' at 'active' puts one .* each row: use one of them$"
        ):
            federation(tmp_path / "refused", model=model, defenses=tables)


def test_noise_on_labels_keeps_its_epsilon_behind_a_batch_norm(tmp_path: Path) -> None:
    """A batch norm mixes embeddings, no labels: the ε of one epoch is that of one noisy label."""
    local = federation(
        tmp_path, defenses=[{"name": "grad_perturb", "at": "active", "epsilon": 0.5}], **NORMED
    )
    local.coordinator.prepare()
    assert local.active.run.federation.model.mixes_rows
    assert local.active.run.spending.accountants[Phase.TRAIN].total(1) == pytest.approx(0.5)
    close(local)


@pytest.mark.parametrize(
    ("settings", "mixes"),
    [
        ({"architecture": "mlp"}, False),
        ({"architecture": "lenet"}, False),
        ({"architecture": "lenet", "batch_norm": True}, True),
        ({"architecture": "resnet18"}, True),
        ({"architecture": "dcn"}, False),
    ],
)
def test_a_network_with_batch_norm_mixes_rows_in_training(settings: Any, mixes: bool) -> None:
    assert SplitNetwork(**settings).mixes_rows == mixes
