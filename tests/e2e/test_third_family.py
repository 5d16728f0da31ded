"""A family of models from another package: trained over gRPC, asked for predictions, attacked."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import processes
import pytest
import tomli_w
from commandline import Refused, Run
from thirdfamily import fence, importable, installed

from vflens.errors import ConfigError, PluginError
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.check import check
from vflens.models.family import checked_model
from vflens.storage import journal
from vflens.types import Point

_FIXTURES = (importable, installed)  # used by name
#: The passive party holds as many columns as there are classes: one released row determines them.
EXPERIMENT: dict[str, Any] = {
    "name": "third",
    "out": "runs",
    "data": {"name": "wine"},
    "split": {"kind": "columns", "columns": {"passive": ["alcohol", "flavanoids", "proline"]}},
    "training": {"epochs": 30, "batch_size": 20, "learning_rate": 0.02},
    "attacks": [{"name": name} for name in ("half", "ls", "half_star", "mean_star")],
    "disclose": [{"what": "parameters", "to": "active"}, {"what": "moments", "to": "active"}],
    "network": {"transport": "unix"},
}


def _file(folder: Path, **changes: Any) -> Path:
    settings = {**EXPERIMENT, **tomllib.loads(fence("toml")), **changes}
    file = folder / "experiment.toml"
    file.write_text(tomli_w.dumps(settings), encoding="utf-8")
    return file


def _shown(out: str) -> dict[str, Any]:
    """Results and utility of the one run that the command prints."""
    (found,) = json.loads(out)["runs"]
    return {name: found[name] for name in ("results", "utility")}


def test_it_trains_in_processes_predicts_and_is_attacked(
    installed: Path, vflens: Run, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(_file(installed))
    found = _shown(processes.vflens("run", file, "--json", cwd=installed, PYTHONPATH=str(installed)).stdout)
    assert found["utility"]["accuracy"] > 0.9
    errors = {r["attack"]: r["mse"] for r in found["results"]}
    assert errors["half"] > 1e-2
    for attack in ("ls", "half_star", "mean_star"):  # W x = scores − known has one solution
        assert errors[attack] < 1e-12

    (home,) = (installed / "runs").glob("**/passive")
    assert read_party(home).federation.model == {"family": "one_hot_regression", "height": 2.0}
    received = journal.read(home.parent / "active" / "transcript")
    scores = np.concatenate([r.tensor("scores") for r in received if r.point is Point.SCORES])
    # A mean row's predictions add up to what its labels do: 2 in one class, 0 in the others.
    assert abs(scores.sum(axis=1).mean() - 2) < 0.1

    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.delitem(sys.modules, "one_hot_regression", raising=False)
    assert (
        _shown(vflens("run", _file(installed), "--out", installed / "one", "--in-process", "--json").out)
        == found
    )
    words = "trained one-hot regression: an audit simulates softmax or linear regression only"
    assert words in refused(2, "audit", home)


def test_a_family_that_builds_no_part_is_refused_in_one_sentence(importable: Path) -> None:
    source = fence("python").replace("active_part = passive_part", "")
    (importable / "one_hot_regression.py").write_text(source, encoding="utf-8")
    with pytest.raises(
        PluginError, match=r"^plug-in 'one_hot_regression' does not define active_part of vflens"
    ):
        checked_model({"family": "one_hot_regression"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": {"family": "quadratic_regression"}},
            "unknown models plug-in 'quadratic_regression': known are",
        ),
        (
            {"model": {"family": "one_hot_regression", "height": 0}},
            "model.height: give more than 0",
        ),
        (
            {"model": {"family": "one_hot_regression", "depth": 2}},
            "model.depth: there is no such setting",
        ),
        ({"aggregator": "active"}, "aggregator = 'active': one-hot regression releases its scores at the"),
        ({"device": "cuda"}, "device = 'cuda': one-hot regression computes on the processor"),
        (
            {"scenarios": [{"name": "s", "defenses": [{"name": "round_scores", "at": "coordinator"}]}]},
            "defence 'round_scores' at 'coordinator' has nothing to act on, one-hot regression has no "
            "log-probabilities: leave it out",
        ),
        (
            {"scenarios": [{"name": "s", "defenses": [{"name": "passport", "at": "passive"}]}]},
            "defence 'passport' at 'passive' has nothing to act on, one-hot regression has no layers",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_run(
    importable: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, PluginError), match=re.escape(words)):
        check(_file(importable, **changes))
