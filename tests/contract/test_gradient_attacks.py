"""What the server of a real horizontal run reads from gradients: exact where theory says so, scored by
clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from horizontal import COLUMNS, deal, federation, table
from thinned import first

from vflens.experiments.pages.pictures import pictures
from vflens.experiments.results import fedadob
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_runs
from vflens.tables.table import Table

Attacks: TypeAlias = Sequence[Mapping[str, Any]]
EXACT = 1e-18  # of a mean squared error, from updates in float64
ONE_STEP = {"horizontal": {"rounds": 2, "local_steps": 1}}
MLP = {"family": "split_network", "architecture": "mlp", "width": 24, "top": [8], "precision": "float64"}


def _tables(train: int) -> dict[str, Table]:
    return {name: table(train + 6, seed) for seed, name in enumerate(("a", "b"), start=1)}


def _figures(
    folder: Path,
    tables: Mapping[str, Table],
    attacks: Attacks,
    *,
    batch: int = 1,
    **more: Any,
) -> dict[tuple[str, str, str], float]:
    """Run, and give the server's figures by metric, attack and target."""
    training = {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": batch}
    federation(deal(folder, tables, attacks=attacks, **{"training": training, **ONE_STEP, **more})).run()
    facts = read_party(folder / "server").metrics
    assert [(m.attack, m.detail) for m in facts if m.name in ("skipped", "failed")] == []
    return {(m.name, m.attack, m.target): m.value for m in facts}


def test_one_row_of_softmax_regression_is_exact(tmp_path: Path) -> None:
    attacks: Attacks = [{"name": "first_layer"}, {"name": "label_restoration"}, {"name": "dlg", "steps": 60}]
    found = _figures(tmp_path, _tables(20), attacks)
    for target in ("a", "b"):
        assert found["matched_mse", "first_layer", target] < EXACT
        assert found["matched_mse", "dlg", target] < EXACT
        assert found["matched_label_accuracy", "label_restoration", target] == 1


def test_a_report_shows_a_clients_image_beside_its_reconstruction(tmp_path: Path) -> None:
    image = tuple(replace(c, pixel=divmod(i, 2)) for i, c in enumerate(COLUMNS))
    tables = {name: replace(of, columns=image) for name, of in _tables(20).items()}
    _figures(tmp_path, tables, [{"name": "first_layer"}])
    (run,) = read_runs([tmp_path])
    shown = {block["target"]: block for block in pictures([run], {run.name: "here"})}
    assert set(shown) == {"a", "b"}
    for block in shown.values():
        (name, _), (attack, result), _ = block["heads"]
        assert (name, attack, result.mse < EXACT) == ("original", "first_layer", True)
        ((_, (original, estimate, _)),) = block["rows"]
        assert original == estimate  # as pictures of 256 grey values


@pytest.mark.parametrize("batch", first([2, 1]))
def test_a_linear_first_layer_with_bias_gives_its_rows_away(tmp_path: Path, batch: int) -> None:
    attacks: Attacks = [{"name": "first_layer"}, {"name": "dlg", "starts": 6, "steps": 100}]
    found = _figures(tmp_path, _tables(20), attacks, batch=batch, model=MLP)
    for target in ("a", "b"):
        assert found["matched_mse", "dlg", target] < EXACT
        if batch == 1:
            assert found["matched_mse", "first_layer", target] < EXACT


# -- what clients grant -----------------------------------------------------------------------------------

#: Of each client: the truth of six rows, and gradients and embeddings of eight others.
GRANTS = [
    {"what": what, "to": "server", "rows": rows}
    for what, rows in (("auxiliary", 6), ("labels", 6), ("gradients", 8), ("embeddings", 8))
]
PRIVATE: dict[str, Any] = {
    "horizontal": {"rounds": 2, "method": "lg_fedavg"},
    "training": {"batch_size": 8, "learning_rate": 0.05},
    "model": MLP,
}


def test_granted_gradients_and_embeddings_give_rows_away_one_by_one(tmp_path: Path) -> None:
    parameters = {"what": "parameters", "to": "server"}
    attacks: Attacks = [
        {"name": "wgi", "starts": 2, "steps": 100},
        {"name": "wgi_moments"},
        {"name": "wmi", "starts": 1, "steps": 300},
        {"name": "bmi", "starts": 1, "steps": 50, "learning_steps": 50},
    ]
    found = _figures(tmp_path, _tables(20), attacks, **PRIVATE, disclose=[*GRANTS, parameters])
    for target in ("a", "b"):
        assert found["mse", "wgi", target] < EXACT
        assert found["mse", "wgi_moments", target] < EXACT
        assert found["mse", "wmi", target] < 1e-4
        assert ("mse", "bmi", target) in found


@pytest.mark.parametrize(
    "layer",
    [{}, {"normalise": "authors"}, {"normalise": "authors", "keys": "fixed"}],
    ids=["printed", "authors", "authors, fixed"],
)
def test_behind_a_passport_the_mean_finds_what_guessing_does_not(
    tmp_path: Path, layer: dict[str, Any]
) -> None:
    """FedAdOb's Theorem 1 stands beside the guess alone."""
    attacks: Attacks = [
        {"name": "wgi", "starts": 1, "steps": 5, "passport": "random"},
        {"name": "wgi_moments"},
    ]
    granted = [*GRANTS, {"what": "moments", "to": "server"}, {"what": "parameters", "to": "server"}]
    passports = [{"name": "passport", "sigma": 1.0, **layer}]
    found = _figures(tmp_path, _tables(20), attacks, **PRIVATE, disclose=granted, defenses=passports)
    for target in ("a", "b"):
        assert found["mse", "wgi_moments", target] < 0.5 * found["mse", "wgi", target]
    beside = fedadob.beside(read_runs([tmp_path])[0])
    assert {(b.theorem, b.attack) for b in beside} == {("FedAdOb Theorem 1", "wgi")}


def test_a_private_bottom_model_takes_a_shadow(tmp_path: Path) -> None:
    attacks: Attacks = [{"name": "bgi", "starts": 1, "steps": 20, "learning_steps": 20}]
    one_step = {**PRIVATE, "horizontal": {"rounds": 1, "method": "lg_fedavg", "local_steps": 1}}
    one_step["training"] = {"optimizer": "sgd", "batch_size": 2, "learning_rate": 0.1}
    found = _figures(tmp_path, _tables(20), attacks, **one_step, disclose=GRANTS[:2])
    assert {key for key in found if key[0] == "matched_mse"} == {
        ("matched_mse", "bgi", t) for t in ("a", "b")
    }


@pytest.mark.parametrize("method", first(["lg_fedavg", "splitfed"]))
def test_granted_gradients_are_inverted_behind_a_shadow_row_by_row(tmp_path: Path, method: str) -> None:
    """It reads the top model alone, where the bottom model is shared too."""
    attacks: Attacks = [
        {"name": "bgi", "gradients": "granted", "starts": 1, "steps": 20, "learning_steps": 20}
    ]
    settings = {**PRIVATE, "horizontal": {"rounds": 2, "method": method}}
    found = _figures(tmp_path, _tables(20), attacks, **settings, disclose=GRANTS)
    assert {key for key in found if key[0] == "mse"} == {("mse", "bgi", t) for t in ("a", "b")}
