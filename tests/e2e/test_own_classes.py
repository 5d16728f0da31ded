"""A class of one's own, that nobody installed, in a run; a file of one's own on a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run
from pydantic import Field

import vflens as vl
from vflens.attacks.gradient_sign import GradientSign
from vflens.registry import ATTACKS

ROOT = Path(__file__).parents[2]
#: An experiment of a second.
SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "wine"},
    "split": {"kind": "fraction", "fraction": 0.3},
    "training": {"epochs": 5},
    "attacks": [{"name": "half_star"}],
    "disclose": [{"what": "parameters", "to": "active"}],
}


class Mine(vl.LinearAttack):
    """The same number for every unknown one."""

    level: float = Field(0.5, ge=0, le=1)

    def solve(self, A: Any, b: Any, *, rng: np.random.Generator, moments: vl.Moments | None = None) -> Any:
        return vl.linear_estimate(np.full((len(b), A.shape[1]), self.level), A, b)


class MySigns(GradientSign):
    """An attack on labels."""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> vl.Run:
    return vl.run(SMALL, out=tmp_path_factory.mktemp("runs"), attacks=[Mine(level=0.25)])


def test_it_runs_beside_those_of_the_experiment_with_its_parameters(done: vl.Run) -> None:
    values = {key: found.values for key, found in done.estimates.items()}
    assert values.keys() == {("passive", "half_star"), ("passive", "mine")}
    assert (values["passive", "mine"] == 0.25).all()
    assert "mine" not in ATTACKS.names()
    scored = {row["attack"]: row["mse"] for row in done.results.to_pylist()}
    assert 0 < scored["half_star"] != scored["mine"] > 0


def test_one_on_labels_sits_in_a_passive_party(tmp_path: Path) -> None:
    run = vl.run(SMALL, out=tmp_path, attacks=[MySigns])
    (found,) = (found for key, found in run.estimates.items() if key[1] == "my_signs")
    assert ("active", "my_signs", "passive", "train") in run.estimates
    (labels,) = vl.read_run(run.folder / "run").labels
    assert (labels.attack, labels.accuracy, labels.rows) == ("my_signs", 1.0, len(found.rows))


def test_a_horizontal_run_takes_one_in_its_server(tmp_path: Path) -> None:
    class MyLength(vl.Attack):
        needs = frozenset({vl.Knowledge.GRADIENTS})

        def reconstruct(self, view: Any, *, rng: np.random.Generator) -> Any:
            raise AssertionError

    clients = {"name": "clients", "data": {"name": "wine"}, "parties": {"clients": 2}}
    with pytest.raises(vl.errors.ConfigError, match="'my_length' at server 'server' is made for vertical"):
        vl.run({**clients, "horizontal": {"rounds": 2}}, out=tmp_path, attacks=[MyLength])


def test_other_processes_cannot_have_it(tmp_path: Path) -> None:
    with pytest.raises(vl.errors.ConfigError, match="in_process = False with attacks: other processes lack"):
        vl.run(SMALL, out=tmp_path, attacks=[Mine], in_process=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "text"),
    [([Mine, Mine(level=0.1)], "attack 'mine' is configured twice"), (["rcc2"], "is no public subclass")],
)
def test_what_is_no_class_of_ones_own_is_refused(tmp_path: Path, given: Any, text: str) -> None:
    with pytest.raises(vl.errors.VflensError, match=text):
        vl.run(SMALL, out=tmp_path, attacks=given)
    assert not list(tmp_path.iterdir())


def test_a_file_attacks_a_record_as_the_installed_one_does(vflens: Run, done: vl.Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine_of_test.py"
    shutil.copy(ROOT / "attacks" / "half_star.py", mine)
    folder, out = done.folder / "run" / "active", tmp_path / "estimate.npz"
    text = vflens("attack", folder, "--attack", mine, "--out", out, "--json").out
    assert json.loads(text)["attack"] == "mine_of_test"
    with np.load(out) as found:
        np.testing.assert_array_equal(found["values"], done.estimates["passive", "half_star"].values)
    config = done.folder / "run" / "passive" / "config.toml"
    scored = json.loads(vflens("score", out, "--config", config, "--json").out)
    assert scored["mse"] == {r.attack: r.mse for r in vl.read_run(done.folder / "run").results}["half_star"]
    refused = vflens("attack", folder, "--attack", tmp_path / "no.py")
    assert (refused.code, "is no Python file" in refused.err) == (2, True)
