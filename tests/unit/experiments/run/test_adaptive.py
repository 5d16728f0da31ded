"""What ``vflens check`` says of attacks that are made for a defence, from made-up experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from vflens.experiments.run.adaptive import pairs
from vflens.experiments.run.any_experiment import DefenseAt, Scenario
from vflens.experiments.run.check import check
from vflens.plugins.attack import knowing
from vflens.registry import DEFENSES
from vflens.types import Setting

KNOWS = {"undoes_signs": frozenset({"instahide"}), "averages": frozenset({"dp_gaussian", "dp_laplace"})}


def _scenario(name: str, *defenses: str) -> Scenario:
    return Scenario(name=name, defenses=tuple(DefenseAt(name=d, at="passive") for d in defenses))


@pytest.mark.parametrize(
    ("defenses", "attacks", "text"),
    [
        ((), (), {}),
        (("instahide",), ("undoes_signs", "wmi"), {}),
        (("instahide",), ("wmi",), {"one, attacks": "none knows how 'instahide' works, add 'undoes_signs'"}),
        (("marvell",), ("wmi",), {}),  # no installed attack is made for it
        (
            ("instahide", "dp_laplace"),
            (),
            {
                "one, attacks": "none knows how 'instahide' works, add 'undoes_signs'; none knows how "
                "'dp_laplace' works, add 'averages'"
            },
        ),
        (
            (),
            ("averages",),
            {"averages": "it is made for 'dp_gaussian' or 'dp_laplace', which no scenario has"},
        ),
    ],
)
def test_a_defence_and_the_attack_that_is_made_for_it_are_paired(
    defenses: tuple[str, ...], attacks: tuple[str, ...], text: dict[str, str]
) -> None:
    assert pairs([_scenario("one", *defenses)], attacks, KNOWS) == text


def test_each_scenario_is_looked_at_and_one_attack_serves_all() -> None:
    scenarios = [_scenario("clear"), _scenario("first", "instahide"), _scenario("second", "instahide")]
    assert list(pairs(scenarios, (), KNOWS)) == ["first, attacks", "second, attacks"]
    assert pairs(scenarios, ("undoes_signs",), KNOWS) == {}


def test_what_an_attack_is_made_for_is_installed() -> None:
    known = [knowing(setting, linear=linear) for setting in Setting for linear in (False, True)]
    named = {d for found in known for of in found.values() for d in of}
    assert named <= set(DEFENSES.names())
    assert {"instahide", "privee"} <= named
    assert knowing(Setting.VERTICAL, linear=True).keys().isdisjoint(knowing(Setting.VERTICAL, linear=False))


def test_check_says_it_of_softmax_regression(tmp_path: Path) -> None:
    file = tmp_path / "scores.toml"
    file.write_text(
        """
name = "scores"
data = {name = "synthetic", rows = 60, classes = 2, features = 6}
split = {kind = "fraction", fraction = 0.5}
attacks = [{name = "ls"}]
disclose = [{what = "parameters", to = "active"}]

[[scenarios]]
name = "multiplied"
defenses = [{name = "privee", at = "coordinator"}]
"""
    )
    assert check(file)["multiplied, attacks"] == "none knows how 'privee' works, add 'lmmse_privee'"


def test_check_says_it_of_a_split_network(tmp_path: Path) -> None:
    file = tmp_path / "paired.toml"
    file.write_text(
        """
name = "paired"
data = {name = "synthetic", rows = 60, classes = 2, features = 6}
split = {kind = "fraction", fraction = 0.5}
model = {family = "split_network", architecture = "mlp", width = 4}
attacks = [{name = "wmi"}]
disclose = [{what = "parameters", to = "active"}]

[[scenarios]]
name = "mixed"
defenses = [{name = "instahide", at = "passive"}, {name = "instahide", at = "active"}]
"""
    )
    assert check(file)["mixed, attacks"] == "none knows how 'instahide' works, add 'wmi_signs'"
