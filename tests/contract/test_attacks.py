"""What every attack promises, checked for each plug-in; a new file in ``attacks/`` is held to it at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vflens import attacks
from vflens.config import Plugin, build_plugins
from vflens.errors import ConfigError, KnowledgeError, PluginError, ProtocolError
from vflens.plugins.attack import Attack, LinearAttack
from vflens.registry import ATTACKS
from vflens.testing import AttackContract, LinearAttackContract
from vflens.testing.attacks import holds
from vflens.types import Moments

ALL = ATTACKS.names()
CLASSES: Mapping[str, type[Attack]] = {name: ATTACKS.get(name) for name in ALL}
#: Those of softmax regression's columns; ``test_split_attacks.py`` has the others.
NAMES = [n for n in ALL if holds(CLASSES[n])]
LINEAR = [n for n in NAMES if issubclass(CLASSES[n], LinearAttack)]
SLOW = {"grna": pytest.mark.facts}  # it trains, half a second in each test


def test_registry_equals_the_files_on_disk() -> None:
    folder = Path(attacks.__file__).parent
    assert sorted(p.stem for p in folder.iterdir() if p.suffix == ".py" and p.stem[0] != "_") == ALL
    assert len(NAMES) >= 8
    assert len(LINEAR) >= 5


@pytest.mark.parametrize("name", ALL)
def test_has_a_one_line_summary(name: str) -> None:
    assert 10 < len(ATTACKS.summary(name)) <= 110


@pytest.mark.parametrize(
    ("name", "field"),
    [(n, f) for n in ALL for f in CLASSES[n].model_fields if f.endswith(("steps", "sweeps"))],
)
def test_iterations_have_a_bound(name: str, field: str) -> None:
    plugin = Plugin.model_validate({"name": name, field: 10**21})
    sentence = rf"^attacks plug-in '{name}': {field}: give 1000000 or less \(got 10{{21}}\)"
    with pytest.raises(ConfigError, match=sentence):
        build_plugins(ATTACKS, [plugin])


class TestEveryAttack(AttackContract):
    @pytest.fixture(params=[pytest.param(n, marks=SLOW.get(n, ())) for n in NAMES if n not in LINEAR])
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        return CLASSES[request.param]()


class TestEveryLinearAttack(LinearAttackContract):
    @pytest.fixture(params=LINEAR)
    def attack(self, request: pytest.FixtureRequest) -> Attack:
        return CLASSES[request.param]()


def test_not_every_attack_is_rowwise() -> None:
    assert not CLASSES["random_guess"].rowwise


# -- estimate(), the plain-array entry ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: attacks.estimate("ls", [1.0], [[1.0]]), r"A has shape \(1,\): give a two-dimensional array"),
        (lambda: attacks.estimate("ls", [[1.0]], [1.0]), r"b has shape \(1,\): give a two-dimensional array"),
        (lambda: attacks.estimate("ls", [[1.0]], [[np.nan]]), "b holds NaN or infinity: leave"),
        (lambda: attacks.estimate("ls", [[np.inf]], [[1.0]]), "A holds NaN or infinity: leave"),
        (lambda: attacks.estimate("ls", [["1"]], [[1.0]]), "A is not an array of real numbers: give float64"),
        (lambda: attacks.estimate("ls", [[1.0]], [[1j]]), "b is not an array of real numbers: give float64"),
        (lambda: attacks.estimate("ls", [[1.0], [1.0, 2.0]], [[1.0]]), "A is not an array of real numbers"),
        (
            lambda: attacks.estimate("rcc2", [[1.0]], [[1e300]]),
            r"b holds entries beyond 1e\+50: divide A and b",
        ),
        (
            lambda: attacks.estimate("ls", [[1e-200]], [[0.0]]),
            "A holds no entry above 1e-50: multiply A and b",
        ),
        (lambda: attacks.estimate("ls", [[1.0]], [[1.0, 2.0]]), "b has 2 columns and A 1 row: give one"),
        (
            lambda: attacks.estimate("mean_star", [[1.0]], [[1.0]], moments=Moments(np.zeros(2))),
            r"moments.mean has shape \(2,\): give one mean per column of A, \(1,\)",
        ),
        (
            lambda: attacks.estimate("lmmse", [[1.0]], [[1.0]], moments=Moments(np.zeros(1), np.eye(2))),
            r"moments.covariance has shape \(2, 2\): give \(1, 1\)",
        ),
        (
            lambda: attacks.estimate(
                "lmmse", [[1.0]], [[1.0]], moments=Moments(np.array([np.nan]), np.eye(1))
            ),
            "moments hold NaN or infinity: leave them out",
        ),
    ],
)
def test_estimate_refuses_arrays_that_do_not_fit(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        call()


def test_estimate_lists_the_known_names() -> None:
    with pytest.raises(PluginError, match=f"unknown attacks plug-in 'nothing': known are {', '.join(ALL)}"):
        attacks.estimate("nothing", [[1.0]], [[1.0]])


def test_estimate_refuses_an_attack_that_is_not_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "ATTACKS", SimpleNamespace(get=lambda name: Attack, given={}))
    with pytest.raises(PluginError, match="attack 'other' does not solve A x = b: run it on a federation"):
        attacks.estimate("other", [[1.0]], [[1.0]])


def test_estimate_pays_for_no_slow_import() -> None:
    code = "import sys, attacks; attacks.estimate('ls', [[1.0]], [[1.0]]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "vflens.attacks.ls" in loaded
    assert not {"torch", "grpc", "cvxpy", "sklearn", "vflens.attacks.half"} & set(loaded)


@pytest.mark.parametrize(
    ("name", "moments", "message"),
    [
        ("mean_star", None, "mean_star needs the columns' means: disclose moments"),
        ("lmmse", None, "lmmse needs the columns' mean and covariance: disclose both"),
        ("lmmse", Moments(np.zeros(1)), "lmmse needs the columns' mean and covariance: disclose both"),
    ],
)
def test_moments_that_were_not_given_are_asked_for(name: str, moments: Moments | None, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        attacks.estimate(name, [[1.0]], [[1.0]], moments=moments)
