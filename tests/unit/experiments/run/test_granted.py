"""`vflens check` refuses an attack that every run of an experiment would skip for a missing grant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import experiment

from vflens.errors import KnowledgeError
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.horizontal.knowledge import check_served
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.knowledge import check_granted

EXAMPLES = Path(__file__).parents[4] / "examples"
MLP = {"model": {"architecture": "mlp", "width": 3}}
TWO = {"parties": {"passive": ["a", "b"]}}
PARAMETERS = {"what": "parameters", "to": "active"}
AUXILIARY = {"what": "auxiliary", "to": "active", "rows": 5}
LABELS = {"what": "labels", "to": "passive", "rows": 5}


def made(folder: Path, attack: Any, *disclose: Any, **more: Any) -> Any:
    plugin = {"name": attack} if isinstance(attack, str) else attack
    return experiment(folder, **{"attacks": [plugin], "disclose": disclose, **more})


CASES: dict[str, tuple[Any, dict[str, Any], list[Any], str]] = {
    "parameters": ("half_star", {}, [PARAMETERS], "'passive' does not grant it its parameters: add"),
    "moments": (
        "lmmse",
        {},
        [PARAMETERS, AUXILIARY],
        "its moments: add .* what = 'moments', to = 'active', or",
    ),
    "rows": ("bmi", MLP, [AUXILIARY], "its auxiliary: add .* what = 'auxiliary', to = 'active' and rows, or"),
    "all parties": ("half_star", TWO, [PARAMETERS], "'a' does not grant it its parameters"),
    "labels": (
        {"name": "pmc", "at": "passive"},
        MLP,
        [LABELS],
        "'active' does not grant it its known_labels",
    ),
    "by a setting": (
        {"name": "wmi", "start": "granted", "steps": 1},
        MLP,
        [PARAMETERS, AUXILIARY],
        "attack 'wmi' at 'active' would never run: 'passive' does not grant it its auxiliary",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_attack_without_its_last_grant_is_refused(tmp_path: Path, case: str) -> None:
    attack, more, grants, words = CASES[case]
    check_granted(made(tmp_path, attack, *grants, **more))
    with pytest.raises(KnowledgeError, match=words):
        check_granted(made(tmp_path, attack, *grants[:-1], **more))


def test_what_is_refused_would_have_been_skipped(tmp_path: Path) -> None:
    """For one target alone it is not refused: the other is attacked."""
    grant = {**AUXILIARY, "by": "b"}
    settings = {**TWO, **MLP, "aggregator": "active"}
    attack = {"name": "bmi", "steps": 2, "learning_steps": 2}
    what = made(tmp_path, attack, grant, **settings)
    check_granted(what)
    result = run(what, in_process=True)
    (found,) = result.scenarios
    assert (found / "active/estimates/b.bmi.npz").exists()
    assert not (found / "active/estimates/a.bmi.npz").exists()


def test_a_released_table_comes_from_a_defence(tmp_path: Path) -> None:
    defended = [{"name": "release_table", "at": "passive", "lam": 1.0}]
    check_granted(made(tmp_path, "released_table", defenses=defended))
    with pytest.raises(KnowledgeError, match="no party releases its table: add the defence 'release_table'"):
        check_granted(made(tmp_path, "released_table"))


@pytest.mark.parametrize("name", ["demo", "demo_deep", "own_csv", "compose", "gallery"])
def test_the_examples_grant_what_their_attacks_need(name: str) -> None:
    check_granted(load_experiment(EXAMPLES / f"{name}.toml"))


@pytest.mark.parametrize(
    ("attack", "what"),
    [("wgi", "gradients"), ("wmi", "embeddings"), ("half", "embeddings"), ("loss_threshold", "candidates")],
)
def test_an_attack_in_a_server_needs_a_client_that_grants_its_rows(attack: str, what: str) -> None:
    settings: dict[str, Any] = {
        "name": "served",
        "data": {"name": "digits"},
        "horizontal": {},
        "scenarios": [{"name": "undefended"}],
        "parties": {"clients": 2},
        "attacks": [{"name": attack}],
    }
    with pytest.raises(KnowledgeError, match=f"{attack!r} at 'server' would never run: .*what = {what!r}"):
        check_served(HorizontalExperiment.model_validate(settings))
    granted = [{"what": what, "to": "server", "rows": 4, "by": "client-2"}]
    check_served(HorizontalExperiment.model_validate(settings | {"disclose": granted}))
    of_round = settings | {"attacks": [{"name": "softmax_inversion"}]}
    check_served(HorizontalExperiment.model_validate(of_round))


def test_only_splitfed_sends_embeddings_to_attack() -> None:
    sent = {"name": "wmi", "embeddings": "sent"}
    settings: dict[str, Any] = {
        "name": "served",
        "data": {"name": "digits"},
        "horizontal": {},
        "scenarios": [{"name": "undefended"}],
        "parties": {"clients": 2},
        "attacks": [sent],
    }
    with pytest.raises(KnowledgeError, match="sends no embeddings in a round: let it"):
        check_served(HorizontalExperiment.model_validate(settings))
    split = settings | {"model": {"architecture": "mlp"}, "horizontal": {"method": "splitfed"}}
    check_served(HorizontalExperiment.model_validate(split))
    learning = split | {"attacks": [sent | {"name": "bmi"}]}
    with pytest.raises(KnowledgeError, match="no client grants embeddings"):
        check_served(HorizontalExperiment.model_validate(learning))
